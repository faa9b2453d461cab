"""The few machine instructions that cannot be written in Python for Numba.

Each is made of LLVM instructions that every target knows, except `extract_bits`. That is one instruction on x86-64
with BMI2, and a short loop elsewhere. None of them allocates memory.
"""

from __future__ import annotations

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once_value, for_range, for_range_slice, get_or_insert_function
from numba.extending import intrinsic

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.cpu.constants import PADDING

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


def _lanes(bits):
    return ir.VectorType(ir.IntType(bits), PADDING)


def _load(builder, pointer, at, bits):
    """Eight entries of `bits` bits from position `at` on."""
    where = builder.bitcast(builder.gep(pointer, [at]), _lanes(bits).as_pointer())
    return builder.load(where, align=bits // 8), where


def _splat(builder, x):
    undefined = ir.Constant(_lanes(64), ir.Undefined)
    one = builder.insert_element(undefined, x, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(_lanes(32), [0] * PADDING))


@intrinsic
def overlaps(typing, rows, i, x, shift, count, k, kept):
    """Write how many bits the words ``rows[i:i + 8]`` share with `x`, shifted by `shift`, to ``count[k:k + 8]``.

    They are added to ``count[k:k + 8] & kept``.
    """

    def codegen(context, builder, signature, args):
        words, _ = _load(builder, args[0], args[1], 64)
        bits = get_or_insert_function(builder.module, ir.FunctionType(_lanes(64), [_lanes(64)]), "llvm.ctpop.v8i64")
        shared = builder.call(bits, [builder.and_(words, _splat(builder, args[2]))])
        before, where = _load(builder, args[4], args[5], 64)
        before = builder.and_(before, _splat(builder, args[6]))
        total = builder.add(builder.shl(shared, _splat(builder, args[3])), before)
        builder.store(total, where, align=8)
        return context.get_dummy_value()

    arguments = types.CPointer(types.uint64), types.intp, types.uint64, types.int64
    return types.none(*arguments, types.CPointer(types.int64), types.intp, types.int64), codegen


def _at_least(builder, pointer, at, least, n):
    """A vector of eight bits: which counts from position `at` on are at least `least`. Only the first `n` may be."""
    counts, _ = _load(builder, pointer, at, 64)
    lanes = ir.Constant(_lanes(64), list(range(PADDING)))
    there = builder.icmp_signed("<", lanes, _splat(builder, n))
    return builder.and_(there, builder.icmp_signed(">=", counts, _splat(builder, least)))


@intrinsic
def at_least(typing, count, k, n, least):
    """Which of ``count[k:k + min(n, 8)]`` are at least `least`, as a uint64 of eight bits. All eight are read."""

    def codegen(context, builder, signature, args):
        hits = _at_least(builder, args[0], args[1], args[3], args[2])
        return builder.zext(builder.bitcast(hits, ir.IntType(PADDING)), _U64)

    return types.uint64(types.CPointer(types.int64), types.intp, types.int64, types.int64), codegen


@intrinsic
def members_of(typing, count, k, n, least, weight, i):
    """The sum of those of ``weight[i:i + n]`` whose ``count[k:k + n]`` is at least `least`.

    Up to seven more of each are read.
    """

    def codegen(context, builder, signature, args):
        total = alloca_once_value(builder, ir.Constant(_lanes(64), [0] * PADDING))
        step = ir.Constant(ir.IntType(64), PADDING)
        with for_range_slice(builder, step.type(0), args[2], step) as (at, _):
            hits = _at_least(builder, args[0], builder.add(args[1], at), args[3], builder.sub(args[2], at))
            weights, _ = _load(builder, args[4], builder.add(args[5], at), 32)
            chosen = builder.select(hits, builder.zext(weights, _lanes(64)), ir.Constant(_lanes(64), [0] * PADDING))
            builder.store(builder.add(builder.load(total), chosen), total)
        add = get_or_insert_function(
            builder.module, ir.FunctionType(_U64, [_lanes(64)]), "llvm.vector.reduce.add.v8i64"
        )
        return builder.call(add, [builder.load(total)])

    arguments = types.CPointer(types.int64), types.intp, types.int64, types.int64
    return types.int64(*arguments, types.CPointer(types.int32), types.intp), codegen


@intrinsic
def occurring(typing, rows, at, n, count, k, least, weight, i, need):
    """The bits that occur in rows whose weights add up to `need`, at most 255. A bit is a lane of eight bits.

    The rows are those of ``rows[at:at + n]`` whose ``count[k:k + n]`` is at least `least`. Their weights are
    ``weight[i:i + n]``.
    """

    def codegen(context, builder, signature, args):
        rows, at, n, count, k, least, weight, i, need = args
        byte, most = ir.IntType(8), ir.Constant(ir.IntType(32), 255)
        bytes_, flags = ir.VectorType(byte, 64), ir.VectorType(ir.IntType(1), 64)
        nothing = ir.Constant(bytes_, [0] * 64)

        def splat(x):
            one = builder.insert_element(ir.Constant(bytes_, ir.Undefined), x, ir.Constant(ir.IntType(32), 0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
            return builder.shuffle_vector(one, ir.Constant(bytes_, ir.Undefined), zeros)

        def entry(pointer, position, r):
            return builder.load(builder.gep(pointer, [builder.add(position, r)]))

        add = get_or_insert_function(builder.module, ir.FunctionType(bytes_, [bytes_] * 2), "llvm.uadd.sat.v64i8")
        total = alloca_once_value(builder, nothing)
        with for_range(builder, n) as loop:
            own = entry(weight, i, loop.index)
            own = builder.select(builder.icmp_signed("<", own, most), own, most)
            alive = builder.icmp_signed(">=", entry(count, k, loop.index), least)
            own = builder.select(alive, builder.trunc(own, byte), byte(0))
            bits = builder.bitcast(entry(rows, at, loop.index), flags)
            builder.store(builder.call(add, [builder.load(total), builder.select(bits, splat(own), nothing)]), total)
        enough = builder.icmp_unsigned(">=", builder.load(total), splat(builder.trunc(need, byte)))
        return builder.bitcast(enough, _U64)

    arguments = (
        types.CPointer(types.uint64),
        types.intp,
        types.int64,
        types.CPointer(types.int64),
        types.intp,
        types.int64,
    )
    return types.uint64(*arguments, types.CPointer(types.int32), types.intp, types.int64), codegen


@intrinsic
def _pext(typing, x, mask):
    def codegen(context, builder, signature, args):
        function = ir.FunctionType(_U64, [_U64, _U64])
        return builder.call(builder.module.declare_intrinsic("llvm.x86.bmi.pext.64", [], function), args)

    return types.uint64(types.uint64, types.uint64), codegen


@compiled
def extract_one_by_one(x, mask):
    """As `extract_bits`, on processors without an instruction for it."""
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
    extract_bits = extract_one_by_one
