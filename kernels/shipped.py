"""Makes the machine code that comes with the package: ``python -m bicliques.kernels.shipped`` (``make machine-code``).

It needs no GPU. NVRTC compiles all that engines with the usual sizes ask for, for every architecture, in a process per
core. Files that are there already stay, and files of other sources go. For cores it makes calls of every kind, in whose
place a user would wait for the compiler.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bicliques.kernels.bitmatrix import shapes
from bicliques.kernels.compiled import jit
from bicliques.kernels.compiled.sealed import sealed, unsealed
from bicliques.kernels.cumbe import memory as cumbe
from bicliques.kernels.gpu import pack, row_hashes
from bicliques.kernels.gpu.machine_code import (
    ARCHITECTURES,
    CODE,
    COMPILER,
    LATER,
    Variant,
    compile_options,
    file_name,
    source_of,
)


class CompileError(Exception):
    """NVRTC refused a kernel; the message is its log."""


class Compiled(NamedTuple):
    """What NVRTC made.

    Parameters
    ----------
    code : bytes
        Machine code (a cubin) for a real architecture such as ``sm_90``, else PTX.
    log : str
        Its warnings and reports.
    """

    code: bytes
    log: str


def version() -> tuple[int, int]:
    """The version of CUDA that NVRTC comes from: major, minor."""
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return major, minor


def compiled(source: str, name: str, options: list[str]) -> Compiled:
    """Compile a source.

    Parameters
    ----------
    name : str
        What the log calls the source.
    options : list of str
        See https://docs.nvidia.com/cuda/nvrtc/index.html#supported-compile-options.
    """
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(source.encode(), name.encode(), 0, [], [])
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = bytes(size + 1)  # of its own: NVRTC writes into it, and Python shares byte strings of length 1
        nvrtc.nvrtcGetProgramLog(program, log)
        text = log.decode(errors="replace").rstrip("\0 \n")
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(f"{name} with {' '.join(options)}: {status.name}\n{text}")
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        if size:
            code = bytes(size)
            nvrtc.nvrtcGetCUBIN(program, code)
        else:
            _, size = nvrtc.nvrtcGetPTXSize(program)
            code = bytes(size + 1)
            nvrtc.nvrtcGetPTX(program, code)
            code = code.rstrip(b"\0")
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return Compiled(code, text)


#: What there is code for: machine code, and last the PTX.
TARGETS = (*ARCHITECTURES.values(), LATER)


class Made(NamedTuple):
    """What `build` did: files that it made, the bytes of all files, seconds."""

    files: int
    n_bytes: int
    seconds: float


def shipped() -> list[Variant]:
    """All variants of kernels that engines with the usual sizes ask for."""
    return [*shapes.shipped(), *cumbe.shipped(), *pack.shipped(), *row_hashes.shipped()]


def wanted(variants: list[Variant], targets: tuple[str, ...] = TARGETS) -> dict[str, tuple[Variant, str]]:
    """File name -> the variant and the architecture that it is compiled for."""
    return {file_name(variant, target): (variant, target) for target in targets for variant in variants}


def make(folder: Path, variant: Variant, target: str) -> Path:
    """Compile a variant into its file."""
    options = [*compile_options(variant.defines), f"--gpu-architecture={target}"]
    code, log = compiled(source_of(variant.kernel), f"{variant.kernel}.cu", options)
    if log:
        raise CompileError(f"{variant.kernel} for {target} compiles with warnings:\n{log}")
    path = folder / file_name(variant, target)
    partial = path.with_suffix(".partial")  # a process that is killed leaves no file of this name
    partial.write_bytes(sealed(path.name, code))
    partial.rename(path)
    return path


def build(
    folder: Path = CODE,
    variants: list[Variant] | None = None,
    targets: tuple[str, ...] = TARGETS,
    processes: int | None = None,
) -> Made:
    """Make the files that are missing, and remove those that are not wanted.

    Raises `CompileError`: a kernel does not compile. Raises `ImportError`: NVRTC is not installed.

    Parameters
    ----------
    variants : list of Variant, optional
        None takes `shipped`.
    targets : tuple of str
        Architectures.
    processes : int, optional
        Compilers side by side. None takes one per core.
    """
    began = time.perf_counter()
    files = wanted(shipped() if variants is None else variants, targets)
    compiler = ".".join(map(str, version()))
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / COMPILER
    is_same = note.exists() and note.read_text() == compiler
    for path in folder.iterdir():
        if path.is_file() and (path.name not in files or not is_same):
            path.unlink()
    note.write_text(compiler)
    missing = [work for name, work in files.items() if not ((path := folder / name).exists() and unsealed(path))]
    # the longest first; NVRTC is not forked, because it may have threads
    missing.sort(key=lambda work: len(work[0].defines), reverse=True)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes or len(os.sched_getaffinity(0)), mp_context=context) as pool:
        for done in as_completed([pool.submit(make, folder, *work) for work in missing]):
            done.result()
    n_bytes = sum((folder / name).stat().st_size for name in files)
    return Made(len(missing), n_bytes, time.perf_counter() - began)


#: Calls of every kind. The last graph is large enough for what small ones do without.
_CALLS = (
    "mine words.tsv -o run --per-vertex --engine cpu",
    "mine words.tsv -o few --min-left 3 --min-right 3 --engine cpu",
    "verify run --complete",
    "show run --by surprise --distinct 0.5",
    "cover run",
    "explain run",
    "communities few --at 3x3",
    "diff run few -o changes",
    "refresh few fewer.tsv -o next",
    "diff few next -o changes-2",
    "diff words.tsv fewer.tsv -o edges --min-left 2 --min-right 2 --engine cpu",
    "largest words.tsv --engine cpu",
    "count words.tsv --min-left 3 --min-right 3 --missing-pairs 1 --engine cpu",
    "mine words.tsv -o near --min-left 3 --min-right 3 --missing-each 1 --engine cpu",
    "verify near",
    "count words.tsv --pq all --engine cpu",
    "count words.tsv --order two-hop --engine cpu",
    "count numbers.tsv --engine cpu",
    "generate -o large --n-left 200000 --n-right 200000 --edges 2000000",
    "mine large -o many --min-left 2 --min-right 2 --engine cpu",
    "count large --engine cpu --fingerprint --sizes",
)


def build_for_cores(folder: Path = CODE / "cpu", calls: Sequence[str] = _CALLS) -> Made:
    """Make machine code for all cores of the kind `jit.LEVEL`, if those of this machine are. Older files go."""
    began, shipped = time.perf_counter(), jit.shipped_folder()
    shutil.rmtree(folder, ignore_errors=True)
    if shipped is None:
        return Made(0, 0, 0.0)
    with TemporaryDirectory() as name:
        place = Path(name)
        words = [f"a{k % 97}\tb{k % 89}\n" for k in range(3000)]
        (place / "words.tsv").write_text("".join(words))
        (place / "fewer.tsv").write_text("".join(words[:-1]))
        (place / "numbers.tsv").write_text("".join(f"{k}\t{k // 2}\n" for k in range(300_000)))
        features = ",".join(f"+{feature}" for feature in jit.FEATURES)
        code = {"NUMBA_CPU_NAME": jit.LEVEL, "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": str(place / "code")}
        for call in calls:
            command = [sys.executable, "-m", "bicliques", *call.split()]
            ended = subprocess.run(command, env=os.environ | code, capture_output=True, text=True, cwd=place)
            if ended.returncode:
                raise RuntimeError(f"{call} ended with status {ended.returncode}: {ended.stderr}")
        [made] = (place / "code").iterdir()
        (folder / shipped.name).mkdir(parents=True)
        files = [Path(shutil.move(file, folder / shipped.name / file.name)) for file in made.iterdir()]
    return Made(len(files), sum(file.stat().st_size for file in files), time.perf_counter() - began)


def main() -> None:
    """Make the files, and say how long that took and how large they are."""
    parser = argparse.ArgumentParser(prog="python -m bicliques.kernels.shipped", description=__doc__)
    parser.add_argument("--folder", type=Path, default=CODE, help="where the files go")
    parser.add_argument("--processes", type=int, help="compilers side by side; one per core if it is left out")
    arguments = parser.parse_args()
    made = build(arguments.folder, processes=arguments.processes)
    variants = len(shipped())
    print(
        f"{arguments.folder} has {variants} kernels for {', '.join(TARGETS)}: {made.n_bytes / 1e6:.1f} MB; "
        f"{made.files} files were compiled in {made.seconds:.0f} s"
    )
    made = build_for_cores(arguments.folder / "cpu")
    print(f"{made.files} files for cores of the kind {jit.LEVEL}: {made.n_bytes / 1e6:.1f} MB, in {made.seconds:.0f} s")


if __name__ == "__main__":
    main()
