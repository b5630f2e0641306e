"""Calls compiled kernels. Where their machine code is on disk it is loaded without Numba, which takes a second to start.

A kernel takes arrays, numbers and named tuples of arrays, and gives a number or nothing. For each combination of types it gets an entry
with one argument, the address of a list of numbers: for an array where it begins and its shape, for a number itself. Numba compiles the
entry; its object code is kept, and llvmlite alone loads it the next time.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import json
import os
import sys
import tempfile
from array import array
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from operator import is_
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dra_spec.explorer.kernel_place import place

_PACKAGE = "dra_spec.explorer"
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_ALL = (1 << 64) - 1
_FORM = 1  # of the files and of how entries are called
_ALLOWED = ("llvm.", "memset", "memcpy", "memmove")  # what machine code may ask for from outside


_to_tell: list[Callable[[bool], None]] = []


def before_compiling(tell: Callable[[bool], None]) -> None:
    """`tell` is called before the next kernel is compiled, which takes long, and not again: with whether the machine code will be kept."""
    _to_tell[:] = [tell]


def _tell(kept: bool) -> None:
    while _to_tell:
        _to_tell.pop()(kept)


class Kernel:
    """One function of a module of kernels, by name: the module, and Numba with it, is imported only where it must be compiled."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        self._entries: dict[str, Callable[[int], int] | None] = {}

    def __call__(self, *args: Any) -> int:
        """Runs it; 0 where the function gives nothing."""
        entry, numbers = self.entry(args)
        if entry is None:
            return self.by_numba(args)
        return entry(numbers.buffer_info()[0])

    def entry(self, args: tuple[Any, ...]) -> tuple[Callable[[int], int] | None, array[int]]:
        """The entry for arguments like these, and the list of numbers that it takes; None: call it by Numba."""
        words: list[str] = []
        numbers = array("q")
        for arg in args:
            _flatten(arg, words, numbers)
        signature = " ".join(words)
        if signature not in self._entries:
            self._entries[signature] = self._entry(signature, args)
        return self._entries[signature], numbers

    def by_numba(self, args: tuple[Any, ...]) -> int:
        """Runs it as Numba does."""
        return int(self._compiled(*args) or 0)

    @property
    def _compiled(self) -> Any:
        return getattr(importlib.import_module(f"{_PACKAGE}.{self.module}"), self.name)

    def _entry(self, signature: str, args: tuple[Any, ...]) -> Callable[[int], int] | None:
        """The entry for these types; None: the function has to be called as Numba calls it."""
        folder = place()
        if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
            return None
        if folder is None:
            _tell(kept=False)
            return None
        told = f"{_machine()}\n{self.module}.{self.name}\n{signature}"
        file = folder / f"{self.name}-{hashlib.sha256(told.encode()).hexdigest()[:16]}.entry"
        try:
            return _load(file, told)
        except (OSError, ValueError):
            _tell(kept=True)
        from dra_spec.explorer.native_build import build

        found = build(self._compiled, args)
        if found is None or any(not outside.startswith(_ALLOWED) for outside in found.outside):
            return None
        head = json.dumps({"told": told, "symbol": found.symbol, "gives": found.gives})
        try:
            _write(file, head.encode() + b"\n" + found.code)
            return _load(file, told)
        except (OSError, ValueError):
            return None


@cache
def _shared(module: str, name: str) -> Kernel:
    return Kernel(module, name)


class Bound:
    """A kernel that is called again and again with the same arrays, or others of the same types: what they are is noted only of those that
    are other objects. Arguments are arrays, numbers and tuples of arrays."""

    def __init__(self, module: str, name: str) -> None:
        self._kernel = _shared(module, name)
        self._known: list[Any] = []
        self._numbers = array("q")
        self._entry: Callable[[int], int] | None = None
        self._ready: Callable[[], int] = int

    def __call__(self, *args: Any) -> int:
        """Runs it; 0 where the function gives nothing."""
        return self.ready(*args)()

    def ready(self, *args: Any) -> Callable[[], int]:
        """What runs it with these arguments, good until `ready` is called again."""
        items: list[Any] = []
        for arg in args:
            if isinstance(arg, tuple):
                items += arg
            else:
                items.append(arg)
        if len(items) != len(self._known) or not all(map(is_, items, self._known)):
            known, self._known = self._known, []
            if not self._entry or len(items) != len(known) or not self._note(items, known):
                self._entry, self._numbers = self._kernel.entry(args)
                self._ready = partial(self._entry, self._numbers.buffer_info()[0]) if self._entry else partial(self._kernel.by_numba, args)
            self._known = items
        return self._ready

    def _note(self, items: Sequence[Any], known: Sequence[Any]) -> bool:
        """Notes the arrays that are other objects than before; False if one is of another type, or no array."""
        at = 0
        for item, before in zip(items, known, strict=True):
            array_before = isinstance(before, np.ndarray)
            if isinstance(before, tuple) or (item is not before and not (array_before and _alike(item, before))):
                return False
            if item is not before:
                self._numbers[at : at + 1 + item.ndim] = array("q", (_address(item), *item.shape))
            at += 1 + before.ndim if array_before else 1
        return True

    def forget(self) -> None:
        """Does not hold the arrays any more."""
        self._known = []


class Kernels:
    """A module of kernels that is imported, and Numba with it, when something of it is used: for those that few searches need."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(f"{_PACKAGE}.{self._module}"), name)


def _plain_address(values: NDArray[Any]) -> int:
    return int(values.__array_interface__["data"][0])


def _quick_address(values: NDArray[Any]) -> int:
    """Reads it where NumPy's objects keep it, which is ten times as fast, and there are dozens of arrays to a call."""
    return ctypes.c_void_p.from_address(id(values) + object.__basicsize__).value or 0


def _is_quick() -> bool:
    sample = np.arange(7.0).reshape(7, 1)
    return sys.implementation.name == "cpython" and _quick_address(sample) == _plain_address(sample)


def _alike(one: Any, other: NDArray[Any]) -> bool:
    """Whether something is an array as a kernel takes it, of the type of another one."""
    return isinstance(one, np.ndarray) and one.ndim == other.ndim and one.dtype == other.dtype and bool(one.flags.c_contiguous)


_address = _quick_address if _is_quick() else _plain_address


def _flatten(arg: Any, words: list[str], numbers: array[int]) -> None:
    if isinstance(arg, np.ndarray):
        if not arg.flags.c_contiguous:
            raise ValueError("kernels take contiguous arrays")
        words.append(f"{arg.dtype.char}{arg.ndim}")
        numbers.append(_address(arg))
        numbers.extend(arg.shape)
    elif isinstance(arg, tuple):
        words.append(_name(type(arg)))
        for item in arg:
            _flatten(item, words, numbers)
        words.append(")")
    else:
        unsigned = isinstance(arg, np.unsignedinteger)
        words.append("Q" if unsigned else "q")
        numbers.append(ctypes.c_int64(int(arg)).value)


@cache
def _name(kind: type) -> str:
    """A tuple's name and fields: what the machine code knows of it."""
    return f"{kind.__name__}:{','.join(getattr(kind, '_fields', ()))}("


@cache
def _machine() -> str:
    """What else the machine code depends on."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return f"entry {_FORM} {_numba()} numpy {np.__version__} {llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features}"


def _numba() -> str:
    """Numba's version, by the name of what its installer left beside it: importlib.metadata takes longer to load than all kernels."""
    found = find_spec("numba")
    for folder in (found and found.submodule_search_locations) or ():
        if names := sorted(path.name for path in Path(folder).parent.glob("numba-*.dist-info")):
            return " ".join(names)
    from importlib.metadata import version

    return f"numba-{version('numba')}"


def _write(file: Path, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as part:
        part.write(data)
    os.replace(part.name, file)


def _load(file: Path, told: str) -> Callable[[int], int]:
    """Raises OSError where there is no such file, ValueError where it is not what was asked for."""
    head, _, code = file.read_bytes().partition(b"\n")
    facts = json.loads(head)
    if facts["told"] != told:
        raise ValueError("made for other types")
    address = _linked(code, facts["symbol"])
    call = _ENTRY(address)
    unsigned = facts["gives"].endswith("u8")

    def run(numbers: int) -> int:
        given, failed = ctypes.c_int64(), ctypes.c_void_p()
        if call(ctypes.addressof(given), ctypes.addressof(failed), numbers):
            raise RuntimeError("a kernel failed")
        return given.value & _ALL if unsigned else given.value

    return run


_engines: list[Any] = []  # the machine code lives as long as they do


def _linked(code: bytes, symbol: str) -> int:
    import llvmlite.binding as llvm

    if not _engines:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    address = engine.get_function_address(symbol)
    if not address:
        raise ValueError(f"no function {symbol}")
    return int(address)
