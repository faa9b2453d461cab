"""Every CUDA kernel compiles for every architecture, and needs no more of it than its budget allows."""

from __future__ import annotations

import json

import pytest

from bicliques.kernels.gpu import machine_code
from bicliques.kernels.gpu.source import FOLDER, KERNELS, Variant
from tests.kernels import resources
from tests.kernels.resources import (
    ARCHITECTURES,
    QUICK,
    VARIANTS,
    CompileError,
    Resources,
    is_of_now,
    is_shipped_of_now,
    measure,
    measured_with,
    read_budget,
    shipped_with,
)

first, *others = ARCHITECTURES

pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed (pip install '.[nvrtc]')")


@pytest.mark.parametrize(
    "architecture", [first, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in others)]
)
@pytest.mark.parametrize("variant", VARIANTS)
def test_kernel_compiles_within_its_budget(variant, architecture):
    if is_of_now() and (architecture != first or variant not in QUICK):
        pytest.skip("its budget was measured with this compiler, these options and these sources")
    budget = read_budget().get((variant, architecture))
    kernel, defines = VARIANTS[variant]
    needs = measure(kernel, architecture, defines)
    assert budget is not None, f"{variant} for {architecture} has no budget (it needs {needs}): run make budget"
    over = needs.over(budget)
    assert not over, (
        f"{variant} for {architecture} is over budget: {'; '.join(over)}. If that is worth it, run make budget"
    )


def test_every_source_is_a_kernel_and_every_budget_has_one():
    assert {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.cu")} == set(KERNELS.values())
    assert {variant for variant, _ in read_budget()} == set(VARIANTS)
    assert {kernel for kernel, _ in VARIANTS.values()} == set(KERNELS)


def test_a_budget_is_of_now_until_a_source_an_option_or_the_compiler_changes(monkeypatch, tmp_path):
    stored, budget = measured_with(), tmp_path / "budget.json"
    budget.write_text(json.dumps({"measured_with": stored}))
    assert is_of_now(budget)
    for name, other in {
        "version": lambda package: "1.2.3",
        "compile_options": lambda defines: ("-G",),
        "source_digest": lambda: "0" * 16,
        "VARIANTS": {},
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(resources, name, other)
            assert not is_of_now(budget)
    assert is_of_now(budget)


def test_what_a_wheel_brings_is_compiled_when_a_size_a_source_or_the_compiler_changes(monkeypatch, tmp_path):
    stored, budget = shipped_with(), tmp_path / "budget.json"
    budget.write_text(json.dumps({"shipped_with": stored}))
    assert is_shipped_of_now(budget)
    for place, name, other in (
        (resources, "version", lambda package: "1.2.3"),
        (resources, "compile_options", lambda defines: ("-G",)),
        (machine_code, "source_digest", lambda: "0" * 16),
        (resources.shipped, "shipped", lambda: [Variant("bitmatrix", (("ROW_CAP", 65),))]),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, other)
            assert not is_shipped_of_now(budget)
    assert is_shipped_of_now(budget)


def test_exceeded_budgets_are_named_with_both_numbers():
    needs = Resources(registers=40, stack_bytes=0, spill_bytes=12, shared_bytes=0)
    assert needs.over(needs) == []
    assert needs.over(needs.with_headroom()) == []
    assert needs.over(Resources(32, 0, 8, 0)) == ["registers 40, budget 32", "spill_bytes 12, budget 8"]


def test_source_that_does_not_compile_is_an_error_with_the_log():
    with pytest.raises(CompileError, match=r"hub_bits\.cu with .*NVRTC_ERROR_COMPILATION(?s:.*)error"):
        measure("hub_bits", "sm_90", (("atomicOr", 1),))


def test_the_compilers_report_is_parsed(monkeypatch):
    """The report shows the registers, shared memory and spills of a kernel that was written to need many."""
    plain = measure("hub_bits", "sm_90")
    assert 16 <= plain.registers <= 64
    assert plain.spill_bytes == plain.shared_bytes == 0
    heavy = """
    extern "C" __global__ void __launch_bounds__(1024, 2) heavy(float* out) {
        __shared__ float tile[512];
        float a[64];
        #pragma unroll
        for (int i = 0; i < 64; ++i) a[i] = out[i * 1024 + threadIdx.x];
        tile[threadIdx.x & 511] = a[0];
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < 8; ++k)
            #pragma unroll
            for (int i = 0; i < 64; ++i) a[i] = a[i] * a[(i * 7 + k) & 63] + tile[i];
        #pragma unroll
        for (int i = 0; i < 64; ++i) out[i * 1024 + threadIdx.x] = a[i];
    }
    """
    monkeypatch.setattr("tests.kernels.resources.source_of", lambda kernel: heavy)
    needs = measure("heavy", "sm_90")
    assert needs.registers == 32
    assert needs.shared_bytes == 2048
    assert needs.spill_bytes > 0
    assert needs.stack_bytes > 0
