"""Bare pointers for compiled code.

The search works on some forty arrays. A Numba array that is handed from function to function is seven words
and a reference count. This was measured to cost 2 to 50 times as much as the search itself. So Python owns
the arrays, and compiled code gets their addresses. The functions of this module make typed pointers of
addresses. ``p[i]`` is one unchecked load or store, as in C. A record pointer has its fields as attributes.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype


def _pointer_maker(target):
    @intrinsic
    def make(typing, address):
        def codegen(context, builder, signature, args):
            return builder.inttoptr(args[0], context.get_value_type(target))

        return target(types.int64), codegen

    return make


def record_type(dtype: np.dtype):
    """A function from an address to the first record there."""
    return _pointer_maker(from_dtype(dtype))


def records_of(dtype: np.dtype):
    """A function from an address and a number to the record of that number there; its fields can be assigned."""
    target, size = from_dtype(dtype), dtype.itemsize

    @intrinsic
    def record(typing, address, i):
        def codegen(context, builder, signature, args):
            at = builder.add(args[0], builder.mul(args[1], args[1].type(size)))
            return builder.inttoptr(at, context.get_value_type(target))

        return target(types.int64, types.int64), codegen

    return record


int32s = _pointer_maker(types.CPointer(types.int32))
int64s = _pointer_maker(types.CPointer(types.int64))
uint64s = _pointer_maker(types.CPointer(types.uint64))


@intrinsic
def as_int64s(typing, pointer):
    """The same words as int64."""

    def codegen(context, builder, signature, args):
        return args[0]

    return types.CPointer(types.int64)(types.CPointer(types.uint64)), codegen
