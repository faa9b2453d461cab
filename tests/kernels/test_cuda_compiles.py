"""Every CUDA kernel compiles for every architecture, and needs no more of it than its budget allows."""

import json
import shutil

import pytest

from bicliques.kernels.gpu.machine_code import FOLDER, KERNELS, Variant
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
    if is_of_now(variant) and (architecture != first or variant not in QUICK):
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


def test_a_budget_is_of_now_until_what_is_compiled_changes(monkeypatch, tmp_path):
    """So is what a wheel brings. A kernel that does not include what has changed need not be compiled again."""
    budget, copy = tmp_path / "budget.json", shutil.copytree(FOLDER, tmp_path / "cuda")
    notes = {"measured_with": {name: measured_with(name) for name in VARIANTS}, "shipped_with": shipped_with()}
    budget.write_text(json.dumps(notes))

    def stale():
        changed = {name for name in VARIANTS if not is_of_now(name, budget)}
        return changed | ({"shipped"} if not is_shipped_of_now(budget) else set())

    assert stale() == set()
    everything = {*VARIANTS, "shipped"}
    for place, name, other, gone in (
        (resources, "version", lambda package: "1.2.3", everything),
        (resources, "compile_options", lambda defines: ("--std=c++20",), everything),
        (resources, "ARCHITECTURES", ("sm_90",), {*VARIANTS}),
        (resources, "VARIANTS", VARIANTS | {"sieve, plain": ("sieve", (("PLAIN", 2),))}, {"sieve, plain"}),
        (resources.shipped, "shipped", lambda: [Variant("bitmatrix", (("ROW_CAP", 65),))], {"shipped"}),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, other)
            assert stale() == gone
    monkeypatch.setattr(resources, "FOLDER", copy)
    for file, line, gone in (
        ("common/warp.cuh", "// nothing\n/* is compiled\nof this */\n", set()),
        ("cumbe/cumbe.cu", "int other;\n", {"cumbe", "shipped"}),
        ("bitmatrix/sieve_word.cuh", "int other;\n", {name for name in VARIANTS if "sieve" in name} | {"shipped"}),
    ):
        text = (copy / file).read_text()
        (copy / file).write_text(text + line)
        assert stale() == gone
        (copy / file).write_text(text)


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
