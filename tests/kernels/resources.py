"""What every CUDA kernel needs of a multiprocessor. Compiling a kernel measures it, without a GPU.

``python -m tests.kernels.resources`` (``make budget``) compiles all of them and writes the budget anew, and compiles
all that a wheel brings. The budget says what each kernel was `measured_with`, and what a wheel `shipped_with`: where
nothing of that has changed, compiling again would give the same.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from bicliques.kernels import shipped
from bicliques.kernels.gpu import machine_code
from bicliques.kernels.gpu.machine_code import FOLDER, KERNELS, Variant, compile_options, source_of
from bicliques.kernels.shipped import CompileError, compiled

#: A100, H100 and H200, B200, RTX 50.
ARCHITECTURES = tuple(machine_code.ARCHITECTURES.values())
#: The kernels that launchers compile: name in the budget -> the kernel, and the macros that differ from its defaults.
VARIANTS = {kernel: (kernel, ()) for kernel in KERNELS}
VARIANTS["bitmatrix, plain"] = ("bitmatrix", (("PLAIN", 1),))
VARIANTS["bitmatrix, merging"] = ("bitmatrix", (("MERGING", 1),))
VARIANTS["bitmatrix, not measured"] = ("bitmatrix", (("MEASURED", 0),))
VARIANTS["sieve, plain"] = ("sieve", (("PLAIN", 1),))
VARIANTS["pivot, one side"] = ("pivot", (("ONE_SIDE", 1),))
VARIANTS["sieve, bounded"] = ("sieve", (("BOUNDED", 1),))
#: Those that are compiled in a second. They are measured whatever the budget says of itself.
QUICK = ("hub_bits", "pack", "row_hashes")
BUDGET = FOLDER / "budget.json"

_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_STACK = re.compile(r"(\d+) bytes cumulative stack size")
_INCLUDE = re.compile(r'#include "(.+)"')
_COMMENT = re.compile(r"//.*|/\*[\s\S]*?\*/")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True)
class Resources:
    """Needs of one kernel on one architecture.

    Parameters
    ----------
    registers : int
        Registers per thread.
    stack_bytes, spill_bytes : int
        Bytes per thread in local memory. Spills are the stores and loads in the code of all functions. How often they
        run does not count.
    shared_bytes : int
        Bytes per block, without those that a launch adds.
    """

    registers: int
    stack_bytes: int
    spill_bytes: int
    shared_bytes: int

    def over(self, budget: Resources) -> list[str]:
        """One clause for every number that is larger than in `budget`."""
        mine, allowed = asdict(self), asdict(budget)
        return [f"{name} {mine[name]}, budget {allowed[name]}" for name in mine if mine[name] > allowed[name]]

    def with_headroom(self) -> Resources:
        """The budget for a kernel that needs this: up to where registers and shared memory cost no more.

        Registers are handed out in eights and shared memory in units of 1 KiB; stack and spills get 32 to 95 bytes.
        """
        return Resources(
            registers=_round_up(self.registers, 8),
            stack_bytes=_round_up(self.stack_bytes + 32, 64),
            spill_bytes=_round_up(self.spill_bytes + 32, 64),
            shared_bytes=_round_up(self.shared_bytes, 1024),
        )


def _round_up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


def measure(kernel: str, architecture: str, defines: tuple[tuple[str, int], ...] = ()) -> Resources:
    """Compile a kernel to machine code as `kernels.gpu.machine_code.load` does, and read the assembler's report.

    Raises
    ------
    CompileError
        If it does not compile, or if a warning is given.
    """
    options = [*compile_options(defines), f"--gpu-architecture={architecture}", "--ptxas-options=-v"]
    log = compile_source(source_of(kernel), f"{kernel}.cu", options)
    if "warning" in log:
        raise CompileError(f"{kernel} for {architecture} compiles with warnings:\n{log}")
    registers = [int(n) for n in _REGISTERS.findall(log)]
    if not registers:
        raise CompileError(f"{kernel} for {architecture}: no registers in the assembler's report:\n{log}")
    return Resources(
        registers=max(registers),
        stack_bytes=max(map(int, _STACK.findall(log)), default=0),
        spill_bytes=sum(int(n) for pair in _SPILLS.findall(log) for n in pair),
        shared_bytes=max(map(int, _SHARED.findall(log)), default=0),
    )


def compile_source(source: str, name: str, options: list[str]) -> str:
    """NVRTC's log of compiling `source`."""
    return compiled(source, name, options).log


def measured_with(variant: str) -> str:
    """What the needs of a kernel follow from: the compiler, its options, and the sources."""
    return _compiler_with([Variant(*VARIANTS[variant])], ARCHITECTURES)


def shipped_with() -> str:
    """What the files that a wheel brings follow from: the same of each of them."""
    return _compiler_with(sorted(shipped.shipped()), (machine_code.LATER,))


def _compiler_with(variants: list[Variant], targets: tuple[str, ...]) -> str:
    options = [option for option in compile_options(()) if not option.startswith(("-I", "-DSOURCE_DIGEST"))]
    what = [(defines, _code_of(KERNELS[kernel])) for kernel, defines in variants]
    digest = hashlib.sha256(repr((options, what, targets)).encode()).hexdigest()[:16]
    return f"nvidia-cuda-nvrtc {version('nvidia-cuda-nvrtc')}, sources and options {digest}"


def _code_of(source: str) -> dict[str, str]:
    """Name -> text of a source and of all that it includes, without comments, which are not compiled."""
    found = {}
    todo = [source]
    while todo:
        name = todo.pop()
        if name not in found:
            found[name], included = _read((FOLDER / name).read_text())
            todo += included
    return found


@functools.cache
def _read(text: str) -> tuple[str, list[str]]:
    return " ".join(_COMMENT.sub("", text).split()), _INCLUDE.findall(text)


def read_budget(path: Path = BUDGET) -> dict[tuple[str, str], Resources]:
    """The stored budget: (variant, architecture) -> the resources that the kernel may need."""
    stored = json.loads(path.read_text())
    return {
        (variant, arch): Resources(**stored[variant][arch])
        for variant in stored.keys() - {"measured_with", "shipped_with"}
        for arch in stored[variant]
    }


def is_of_now(variant: str, path: Path = BUDGET) -> bool:
    """Whether compiling a kernel again would give what its stored budget was made of."""
    return json.loads(path.read_text())["measured_with"].get(variant) == measured_with(variant)


def is_shipped_of_now(path: Path = BUDGET) -> bool:
    """Whether all that a wheel brings was compiled when the budget was stored, as it would be now."""
    return json.loads(path.read_text()).get("shipped_with") == shipped_with()


def compile_shipped(folder: Path) -> shipped.Made:
    """Compile all that a wheel brings, as PTX, which is quicker than machine code.

    Raises
    ------
    CompileError
        If one does not compile, or if a warning is given.
    """
    return shipped.build(folder, targets=(machine_code.LATER,))


def write_budget(path: Path = BUDGET):
    """Measure all variants and store what they need, with headroom, and compile what a wheel brings."""
    budget = {
        name: {arch: asdict(measure(kernel, arch, defines).with_headroom()) for arch in ARCHITECTURES}
        for name, (kernel, defines) in VARIANTS.items()
    }
    with TemporaryDirectory() as folder:
        compile_shipped(Path(folder))
    notes = {"measured_with": {name: measured_with(name) for name in VARIANTS}, "shipped_with": shipped_with()}
    path.write_text(json.dumps(notes | budget, indent=1) + "\n")


if __name__ == "__main__":
    write_budget()
