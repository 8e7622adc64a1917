"""`save` and `load`: tensors and programs in nested containers, as a zip file of JSON and of NumPy's arrays.

Loading runs no code.

Each value that JSON does not have is an object whose first entry says what it is: ``{"tuple": [...]}``; a tensor has
the number of its array, which stands in the file ``<number>.npy``. Of an array that several views share, a tensor is a
part: offset, shape and strides, in elements. A tensor that is met again is ``{"again": which}``.
"""

from __future__ import annotations

import io
import math
import operator
import os
from collections import OrderedDict
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from tapegrad.dtypes import TORCH_NAMES, check_dtype
from tapegrad.tape import versions
from tapegrad.tape.shared_memory import View, part, whole_of
from tapegrad.tensor import Tensor, from_array

if TYPE_CHECKING:
    from zipfile import ZipFile

File = str | os.PathLike[str] | IO[bytes]
_STRUCTURE: Final = "structure.json"
_FORMAT, _WITH_PARTS = "tapegrad 1", "tapegrad 2"  # the second has parts of arrays, or tensors that are met again


def save(obj: Any, f: File, *_: Any, **__: Any) -> None:
    """Write tensors, numbers, strings and containers of them to a file.

    Modules and optimizers are saved by their state: ``tapegrad.save(model.state_dict(), "model.pt")``.

    Parameters
    ----------
    obj : Tensor, array, number, str, bytes, None, dtype, Program; list, tuple, set, dict or OrderedDict of these
    f : path or binary file

    Raises
    ------
    TypeError
        If something else is in it; nothing is written then.

    Notes
    -----
    The further arguments that PyTorch has are accepted, and have no meaning. The file is a zip file, and
    `numpy.load` opens it.

    Examples
    --------
    >>> import io
    >>> import tapegrad as tg
    >>> file = io.BytesIO()
    >>> tg.save({"weight": tg.ones(2), "step": 3}, file)
    >>> _ = file.seek(0)
    >>> tg.load(file)
    {'weight': tensor([1., 1.]), 'step': 3}
    """
    import json
    from zipfile import ZipFile

    writer = _Writer()
    try:
        value = writer.encode(obj)
        writer.number_all()
        structure = json.dumps({"format": _WITH_PARTS if writer.has_parts else _FORMAT, "value": value})
    except RecursionError:
        raise ValueError("save(): containers are nested too deep, or contain themselves") from None
    with ZipFile(f, "w") as file:
        file.writestr(_STRUCTURE, structure)
        for number, array in enumerate(writer.arrays):
            with file.open(f"{number}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load(f: File, map_location: Any = None, *_: Any, weights_only: bool = True, mmap: bool = False, **__: Any) -> Any:
    """Read what `save` wrote. Nothing of the file is run, whatever it contains.

    Parameters
    ----------
    f : path or binary file
    map_location : optional
        Accepted; all tensors are on the CPU.
    weights_only, mmap : bool
        Accepted, and without meaning.

    Returns
    -------
    What was saved.

    Raises
    ------
    RuntimeError
        If the file is damaged, or `save` did not write it; or if another device is asked for.

    Examples
    --------
    >>> import tapegrad as tg
    >>> import io
    >>> file = io.BytesIO()
    >>> tg.save({"weight": tg.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> tg.load(file)
    {'weight': tensor([1., 1.])}
    """
    from zipfile import BadZipFile, ZipFile

    device = getattr(map_location, "type", map_location)  # a device or its name; mappings of devices do not matter
    if isinstance(device, str) and device.partition(":")[0] != "cpu":
        raise RuntimeError(
            f"Attempting to deserialize object on a {device.partition(':')[0].upper()} device but "
            f"torch.cuda.is_available() is False; tapegrad computes on the CPU: use map_location='cpu'"
        )
    if not isinstance(f, (str, os.PathLike)) and not (hasattr(f, "seek") and hasattr(f, "read")):
        raise AttributeError(
            "You can only load from a file that is seekable. Please pre-load the data into a buffer like io.BytesIO "
            "and try to load from it instead."
        )
    try:
        with ZipFile(f) as file:
            return _Reader(file).value()
    except (BadZipFile, EOFError, LookupError, NotImplementedError, RecursionError, TypeError, ValueError) as error:
        shown = f"{os.fspath(f)!r}" if isinstance(f, (str, os.PathLike)) else "the file"
        raise RuntimeError(f"load(): {shown} is damaged, or tapegrad.save did not write it: {error}") from error


class _Writer:
    """Encodes values, and collects arrays."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.has_parts = False
        self.groups: dict[Any, dict[View, list[dict[str, Any]]]] = {}  # by memory: its views, each with its objects
        self.tensors: dict[int, int] = {}  # by identity, in the order in which they are met

    def note(self, code: dict[str, Any], data: Any) -> dict[str, Any]:
        """Return an object, whose first entry gets the number of an array once all arrays are known."""
        array = np.asarray(data)
        owner = versions.owner_of(array)
        memory = (id(owner), array.dtype) if array.size else (len(self.groups), None)
        self.groups.setdefault(memory, {}).setdefault(View(array), []).append(code)
        return code

    def number_of(self, array: np.ndarray) -> int:
        """Return the number of an array that shares its memory with nothing."""
        self.arrays.append(array)
        return len(self.arrays) - 1

    def number_all(self) -> None:
        """Give numbers to the arrays, and to objects those of their arrays; views of one memory are its parts."""
        for views in self.groups.values():
            whole = whole_of(list(views)) if len(views) > 1 or not next(iter(views)).is_dense() else None
            number = self.number_of(whole) if whole is not None else 0
            for view, codes in views.items():
                more = {} if whole is None else {"part": view.part_of(View(whole).address)}
                own = self.number_of(view.array) if whole is None else number
                self.has_parts |= whole is not None
                for code in codes:
                    code.update({next(iter(code)): own, **more})

    def pairs(self, mapping: dict[Any, Any]) -> list[Any]:
        """Return keys and values."""
        return [[self.encode(key), self.encode(value)] for key, value in mapping.items()]

    def encode(self, value: Any) -> Any:
        """Return a value as JSON has it."""
        kind = type(value)
        if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
            return value
        if kind is list:
            return [self.encode(one) for one in value]
        if kind in (tuple, set, frozenset):
            return {kind.__name__: [self.encode(one) for one in value]}
        if isinstance(value, dict):
            name = "OrderedDict" if isinstance(value, OrderedDict) else "dict"
            metadata = getattr(value, "_metadata", None)
            return {name: self.pairs(value), **({} if metadata is None else {"metadata": self.encode(metadata)})}
        if isinstance(value, Tensor):
            if id(value) in self.tensors:
                self.has_parts = True
                return {"again": self.tensors[id(value)]}
            self.tensors[id(value)] = len(self.tensors)
            name = kind.__name__ if kind.__module__ == "tapegrad.nn.parameter" else "Tensor"
            return self.note({name: 0, "requires_grad": value.requires_grad}, value._data)
        if isinstance(value, (np.ndarray, np.generic)):
            check_dtype(value.dtype)
            return self.note({"array" if isinstance(value, np.ndarray) else "scalar": 0}, value)
        if kind is float:
            return {"float": repr(value)}
        if kind is complex:
            return {"complex": [self.encode(value.real), self.encode(value.imag)]}
        if kind is bytes:
            return {"bytes": value.hex()}
        if isinstance(value, np.dtype):
            return {"dtype": value.name}
        if kind.__module__ == "tapegrad.program.program":
            from tapegrad.program.files import text_of

            return {"Program": text_of(value, lambda array: f"array({self.number_of(np.array(array, order='C'))})")}
        repair = (
            "save its state_dict()" if hasattr(value, "state_dict") else "convert it to tensors, numbers and containers"
        )
        raise TypeError(f"save(): can't write an object of type {kind.__module__}.{kind.__qualname__}; {repair}")


class _Reader:
    """Decodes values; whatever is wrong raises one of the errors that `load` expects."""

    def __init__(self, file: ZipFile) -> None:
        import json

        self.file = file
        self.arrays: dict[int, np.ndarray] = {}
        self.tensors: list[Tensor] = []
        if "data.pkl" in {name.rpartition("/")[2] for name in file.namelist()}:
            raise ValueError(
                "PyTorch wrote it, as a pickle, which is a program; there, save {name: tensor.numpy()} with numpy.savez"
            )
        self.structure = json.loads(self.member(_STRUCTURE))
        if not isinstance(self.structure, dict) or self.structure.get("format") not in (_FORMAT, _WITH_PARTS):
            raise ValueError(f"its format is not {_FORMAT!r}")
        self.decoders: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
            "tuple": lambda items, _: tuple(map(self.decode, items)),
            "set": lambda items, _: set(map(self.decode, items)),
            "frozenset": lambda items, _: frozenset(map(self.decode, items)),
            "dict": lambda pairs, _: dict(self.pairs(pairs)),
            "OrderedDict": self.ordered,
            "Tensor": lambda number, more: self.tensor(number, more, None),
            "Parameter": lambda number, more: self.tensor(number, more, "Parameter"),
            "Buffer": lambda number, more: self.tensor(number, more, "Buffer"),
            "again": lambda which, _: self.tensors[operator.index(which)],
            "array": self.view,
            "scalar": lambda number, more: self.view(number, more)[()],
            "float": lambda text, _: float(text),
            "complex": lambda parts, _: complex(*map(self.decode, parts)),
            "bytes": lambda text, _: bytes.fromhex(text),
            "dtype": lambda name, _: {dtype: np.dtype(dtype) for dtype in TORCH_NAMES}[name],
            "Program": lambda text, _: self.program(text),
        }

    def member(self, name: str) -> bytes:
        """Return a file of the archive, which must not be compressed: it could become endless."""
        info = self.file.getinfo(name)
        if info.compress_type != 0 or info.flag_bits & 1:
            raise ValueError(f"{name} is compressed or encrypted")
        return self.file.read(info)

    def value(self) -> Any:
        """Return what was saved."""
        return self.decode(self.structure["value"])

    def decode(self, code: Any) -> Any:
        """Return the value of a piece of JSON."""
        if isinstance(code, list):
            return [self.decode(one) for one in code]
        if not isinstance(code, dict):
            return code
        name = next(iter(code), "")
        return self.decoders[name](code[name], code)

    def pairs(self, pairs: Any) -> list[tuple[Any, Any]]:
        """Return keys and values."""
        return [(self.decode(key), self.decode(value)) for key, value in pairs]

    def ordered(self, pairs: Any, more: dict[str, Any]) -> Any:
        """Return a dictionary, with the versions of modules if it is their state."""
        found: Any = OrderedDict(self.pairs(pairs))
        if "metadata" in more:
            found._metadata = self.decode(more["metadata"])
        return found

    def program(self, text: Any) -> Any:
        """Return a program, of which each operation is checked."""
        from tapegrad.program.files import parsed

        return parsed(text, self.array)

    def tensor(self, number: Any, more: dict[str, Any], kind: str | None) -> Tensor:
        """Return a tensor over an array."""
        found = from_array(self.view(number, more))
        if kind is not None:
            from tapegrad.nn import parameter

            found = getattr(parameter, kind)(found, **{"requires_grad": False} if kind == "Parameter" else {})
        self.tensors.append(found.requires_grad_(more["requires_grad"] is True))
        return self.tensors[-1]

    def view(self, number: Any, more: dict[str, Any]) -> np.ndarray:
        """Return an array or a part of it."""
        array = self.array(number)
        if "part" not in more:
            return array
        if array.ndim != 1:
            raise ValueError(f"the array {number} has no parts")
        return part(array, *more["part"])

    def array(self, number: Any) -> np.ndarray:
        """Return an array; its header must say as many bytes as there are."""
        if number not in self.arrays:
            stream = io.BytesIO(self.member(f"{number:d}.npy"))
            if np.lib.format.read_magic(stream) != (1, 0):
                raise ValueError(f"the array {number} has an unknown version")
            try:
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
            except Exception as error:  # of NumPy's parser, a tokenizer's too
                raise ValueError(f"the array {number} has a header that NumPy cannot read: {error}") from error
            check_dtype(dtype.newbyteorder("="))
            data = stream.read()
            if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != len(data):
                raise ValueError(f"the array {number} has {len(data)} bytes, which its shape {shape} does not need")
            array = np.frombuffer(bytearray(data), dtype).reshape(shape, order="F" if fortran else "C")
            self.arrays[number] = array.astype(dtype.newbyteorder("="), copy=False)
        return self.arrays[number]
