"""Compiles the entry of a kernel (native.py) with Numba."""

from __future__ import annotations

import re
from typing import Any

import attrs
import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

_NUMBA: Any = numba  # its internals are not typed
_ARRAYS: Any = arrayobj
_TOOLS: Any = cgutils


@attrs.frozen
class Built:
    """Object code, the symbol to call, the type of what it gives, and what it needs from outside."""

    code: bytes
    symbol: str
    gives: str
    outside: frozenset[str]


@intrinsic
def _array(typing_context: Any, address: Any, shape: Any, kind: Any) -> Any:
    """An array that does not own what is at the address."""
    given = types.Array(kind.dtype, len(shape), "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = _ARRAYS.make_array(given)(context, builder)
        size = context.get_abi_sizeof(context.get_data_type(given.dtype))
        data = builder.inttoptr(args[0], context.get_data_type(given.dtype).as_pointer())
        lengths = _TOOLS.unpack_tuple(builder, args[1])
        strides = [context.get_constant(types.intp, size)]
        for length in reversed(lengths[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        item = context.get_constant(types.intp, size)
        _ARRAYS.populate_array(made, data=data, shape=lengths, strides=strides, itemsize=item, meminfo=None)
        return made._getvalue()

    return given(address, shape, kind), generate


def build(kernel: Any, args: tuple[Any, ...]) -> Built | None:
    """The entry for arguments like these; None where Numba does not let us have its machine code."""
    names: dict[str, Any] = {"array": _array, "kernel": kernel, "np": np}
    at = [0]
    calls = ", ".join(_rebuilt(arg, names, at) for arg in args)
    text = f"def entry(p):\n    n = array(p, ({at[0]},), np.int64)\n    return kernel({calls})\n"
    exec(text, names)  # the only text in it that is not from here is the names of types
    compiled = _NUMBA.njit(_nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)(names["entry"])
    try:
        compiled.compile((types.int64,))
        result = next(iter(compiled.overloads.values()))
        _, kind, (code, _) = result.library.serialize_using_object_code()
        declared = re.findall(r"^declare .*@\"?([\w.$]+)\"?\(", result.library.get_llvm_str(), re.MULTILINE)
        given = result.signature.return_type
        gives = "i8" if given == types.none else np.dtype(str(given)).str
    except (AttributeError, TypeError, ValueError, KeyError):  # another version of Numba
        return None
    if kind != "object" or gives not in ("i8", "<i8", "<u8"):  # what an entry may give
        return None
    return Built(code, result.fndesc.mangled_name, gives, frozenset(declared))


def _rebuilt(arg: Any, names: dict[str, Any], at: list[int]) -> str:
    """The text that makes the argument of the numbers from place `at` on."""
    here = at[0]
    if isinstance(arg, np.ndarray):
        at[0] += 1 + arg.ndim
        shape = "".join(f"n[{here + 1 + i}], " for i in range(arg.ndim))
        names[f"kind_{arg.dtype.name}"] = arg.dtype.type
        return f"array(n[{here}], ({shape}), kind_{arg.dtype.name})"
    if isinstance(arg, tuple):
        items = ", ".join(_rebuilt(item, names, at) for item in arg)
        if type(arg) is tuple:
            return f"({items},)"
        names[type(arg).__name__] = type(arg)
        return f"{type(arg).__name__}({items})"
    at[0] += 1
    return f"np.uint64(n[{here}])" if isinstance(arg, np.unsignedinteger) else f"n[{here}]"
