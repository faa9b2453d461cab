"""The few machine instructions that cannot be written in Python for Numba.

Each is an LLVM intrinsic that every target knows, except `extract_bits`. That is one instruction on x86-64
with BMI2, and a short loop elsewhere. None of them allocates memory.
"""

from __future__ import annotations

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kernels.compiled.jit import compiled

__all__ = ["PADDING", "covers", "extract_bits", "popcount", "trailing_zeros"]

#: Words that `covers` reads at once. Arrays that it reads are longer than their content by this number.
PADDING = 8

_U64 = ir.IntType(64)
_HAS_PEXT = llvm.get_host_cpu_features().get("bmi2", False)


@intrinsic
def popcount(typing, x):
    """Number of one bits of a uint64, as int64."""

    def codegen(context, builder, signature, args):
        return builder.call(builder.module.declare_intrinsic("llvm.ctpop", [_U64]), args)

    return types.int64(types.uint64), codegen


@intrinsic
def trailing_zeros(typing, x):
    """Index of the lowest one bit of a uint64, as int64; 64 for zero."""

    def codegen(context, builder, signature, args):
        function = builder.module.declare_intrinsic("llvm.cttz", [_U64], ir.FunctionType(_U64, [_U64, ir.IntType(1)]))
        return builder.call(function, [args[0], ir.Constant(ir.IntType(1), 0)])

    return types.int64(types.uint64), codegen


@intrinsic
def covers(typing, rows, i, t):
    """Which of the eight words ``rows[i:i + 8]`` contain all bits of `t`, as a uint64 of eight bits.

    `rows` is a pointer (`kernels.cpu.memory`). All eight words are read. So the caller pads the array, and
    masks the words beyond its range.
    """

    def codegen(context, builder, signature, args):
        vector = ir.VectorType(_U64, PADDING)
        pointer = builder.bitcast(builder.gep(args[0], [args[1]]), vector.as_pointer())
        words = builder.load(pointer, align=8)
        undefined = ir.Constant(vector, ir.Undefined)
        one = builder.insert_element(undefined, args[2], ir.Constant(ir.IntType(32), 0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), PADDING), [0] * PADDING)
        wanted = builder.shuffle_vector(one, undefined, lanes)
        hits = builder.icmp_unsigned("==", builder.and_(words, wanted), wanted)
        return builder.zext(builder.bitcast(hits, ir.IntType(PADDING)), _U64)

    return types.uint64(types.CPointer(types.uint64), types.intp, types.uint64), codegen


@intrinsic
def _pext(typing, x, mask):
    def codegen(context, builder, signature, args):
        function = ir.FunctionType(_U64, [_U64, _U64])
        return builder.call(builder.module.declare_intrinsic("llvm.x86.bmi.pext.64", [], function), args)

    return types.uint64(types.uint64, types.uint64), codegen


@compiled
def _extract_one_by_one(x, mask):
    out = types.uint64(0)
    k = types.uint64(0)
    while mask:
        low = mask & (~mask + types.uint64(1))
        if x & low:
            out |= types.uint64(1) << k
        mask ^= low
        k += types.uint64(1)
    return out


if _HAS_PEXT:

    @compiled
    def extract_bits(x, mask):
        """The bits of `x` at the one bits of `mask`, packed to the low end of a uint64."""
        return _pext(x, mask)

else:
    extract_bits = _extract_one_by_one
