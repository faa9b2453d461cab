"""NVRTC without a GPU and without CuPy. It makes the machine code of the package, and tests measure kernels with it."""

from __future__ import annotations

from typing import NamedTuple


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

    Raises
    ------
    CompileError
        It does not compile.
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
