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


#: The type of a field, by what `kernels.cpu.workspace` says that it is.
_OF_FIELD = {
    "I32": types.CPointer(types.int32),
    "I64": types.CPointer(types.int64),
    "U64": types.CPointer(types.uint64),
    "Address": types.int64,
}


def tuple_at(kind: type, state: np.dtype | None = None):
    """A function from the addresses of the fields of a tuple of `kernels.cpu.workspace` to the tuple of pointers.

    `state` is the type of the record in the field ``state``.
    """
    names = [hint.__forward_arg__ for hint in kind.__annotations__.values()]
    fields = [from_dtype(state) if name == "State" else _OF_FIELD[name] for name in names]
    made = types.NamedTuple(fields, kind)

    @intrinsic
    def make(typing, addresses):
        def codegen(context, builder, signature, args):
            data = context.make_array(addresses)(context, builder, args[0]).data
            words = [builder.load(builder.gep(data, [context.get_constant(types.intp, k)])) for k in range(len(fields))]
            pointers = [
                word if field == types.int64 else builder.inttoptr(word, context.get_value_type(field))
                for word, field in zip(words, fields, strict=True)
            ]
            return context.make_tuple(builder, made, pointers)

        return made(addresses), codegen

    return make


@intrinsic
def as_int64s(typing, pointer):
    """The same words as int64."""

    def codegen(context, builder, signature, args):
        return args[0]

    return types.CPointer(types.int64)(types.CPointer(types.uint64)), codegen
