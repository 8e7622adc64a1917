"""Files: what is saved is loaded again, and a damaged or hostile file is an error that runs nothing."""

from __future__ import annotations

import copy
import io
import json
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapegrad as tg


def through_file(value: Any) -> Any:
    file = io.BytesIO()
    tg.save(value, file)
    file.seek(0)
    return tg.load(file)


VALUES = [
    None, True, 3, -(10**30), 1.5, float("inf"), 2 - 3j, "text", b"bytes", [], (), {}, {1, 2}, frozenset({(1, "a")}),
    [1, [2.0, (3, None)]], {"a": 1, 2: "b", (3, 4): [None], None: 5, 1.5: 6, True: {"x": {}}},
    OrderedDict([("b", 1), ("a", 2)]), {"tuple": [1], "Tensor": 0}, tg.float32, tg.bool, tg.complex64,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values(value: Any) -> None:
    found = through_file(value)
    assert type(found) is type(value)
    assert found == value


def test_nan() -> None:
    assert str(through_file(float("nan"))) == "nan"


@pytest.mark.parametrize(
    "dtype",
    ["float32", "float64", "complex64", "complex128", "bool", "int8", "int16", "int32", "int64", "uint8"],
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
def test_tensors(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    found = through_file([tg.tensor(array), array, tg.tensor(array).t() if array.ndim == 2 else None])
    assert (found[0].dtype, found[0].shape, found[0].tolist()) == (array.dtype, shape, array.tolist())
    assert isinstance(found[1], np.ndarray)
    np.testing.assert_array_equal(found[1], array)
    if array.ndim == 2:
        assert found[2].tolist() == array.T.tolist()
    found[0].zero_()  # it may be written to
    assert type(through_file(np.float32(1.5))) is np.float32


def test_leaves_and_parameters() -> None:
    leaf, parameter = tg.ones(2, requires_grad=True), tg.nn.Parameter(tg.zeros(1))
    found = through_file((leaf, parameter, leaf * 2, tg.nn.Parameter(tg.ones(1), requires_grad=False), tg.ones(1)))
    assert [type(one).__name__ for one in found] == ["Tensor", "Parameter", "Tensor", "Parameter", "Tensor"]
    assert [one.requires_grad for one in found] == [True, True, True, False, False]
    assert all(one.is_leaf for one in found)
    (found[0] * 3).sum().backward()
    assert found[0].grad.tolist() == [3, 3]


def test_tensors_share_memory_again() -> None:
    table = tg.nn.Embedding(3, 2)
    output = tg.nn.Linear(2, 3, bias=False)
    output.weight = table.weight
    found = through_file({**table.state_dict(prefix="a."), **output.state_dict(prefix="b.")})
    found["a.weight"].fill_(7)
    assert found["b.weight"].tolist() == [[7, 7]] * 3


@pytest.mark.parametrize("as_path", [str, Path])
def test_modules_and_optimizers(tmp_path: Path, as_path: Any) -> None:
    def made() -> tuple[Any, Any]:
        model = tg.nn.Sequential(tg.nn.Linear(3, 4), tg.nn.BatchNorm1d(4), tg.nn.Linear(4, 1))
        return model, tg.optim.Adam(model.parameters(), lr=0.1, amsgrad=True)

    def train(model: Any, optimizer: Any, steps: int) -> float:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
        return float(loss.detach())

    x = tg.randn(5, 3)
    model, optimizer = made()
    train(model, optimizer, 3)
    path = as_path(tmp_path / "checkpoint.pt")
    tg.save({"epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    other, its_optimizer = made()
    checkpoint = tg.load(path, weights_only=True, map_location="cpu")
    assert repr(other.load_state_dict(checkpoint["model"])) == "<All keys matched successfully>"
    assert checkpoint["model"]._metadata == model.state_dict()._metadata
    its_optimizer.load_state_dict(checkpoint["optimizer"])
    assert train(other, its_optimizer, 3) == train(model, optimizer, 3)
    assert set(np.load(path).files) >= {"structure.json", "0"}


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "file"
    tg.save(1, path)
    with pytest.raises(TypeError, match=r"can't write an object of type .*Linear; save its state_dict\(\)"):
        tg.save({"model": tg.nn.Linear(1, 1)}, path)
    with pytest.raises(TypeError, match=r"object of type builtins\.function"):
        tg.save([test_nan], path)
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="contain themselves"):
        tg.save(circle, path)
    assert tg.load(path) == 1  # the file is as it was


def test_errors_of_load(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tg.load(tmp_path / "nothing")
    with pytest.raises(AttributeError, match="You can only load from a file that is seekable"):
        tg.load(3)  # type: ignore[arg-type]
    path = tmp_path / "file"
    tg.save(tg.ones(2), path)
    with pytest.raises(RuntimeError, match=r"Attempting to deserialize object on a CUDA device but torch\.cuda\.is_av"):
        tg.load(path, map_location="cuda:0")
    assert tg.load(path, map_location={"cuda:0": "cpu"}).tolist() == [1, 1]


def test_damaged_files() -> None:
    """Cut anywhere, or with a byte changed: an error, or what was saved, and nothing else."""
    file = io.BytesIO()
    value = {"a": tg.arange(5.0), "b": [1, (2, "c")]}
    tg.save(value, file)
    whole = file.getvalue()
    for end in range(0, len(whole), 7):
        with pytest.raises(RuntimeError, match=r"load\(\): the file is damaged"):
            tg.load(io.BytesIO(whole[:end]))
    rng = np.random.default_rng(0)
    errors = 0
    for place in rng.integers(0, len(whole), 300):
        changed = bytearray(whole)
        changed[place] ^= 1 << rng.integers(8)
        try:
            found = tg.load(io.BytesIO(bytes(changed)))
        except RuntimeError as error:
            assert "is damaged" in str(error)  # noqa: PT017
            errors += 1
        else:
            assert str(found) == str(value)
    assert errors > 100


def crafted(structure: Any, **members: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("structure.json", structure if isinstance(structure, str) else json.dumps(structure))
        for name, data in members.items():
            archive.writestr(name.replace("_", ""), data)
    file.seek(0)
    return file


def npy(array: np.ndarray, header: bytes = b"") -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    return stream.getvalue()


class Bomb:
    def __reduce__(self) -> Any:
        return print, ("it runs",)


@pytest.mark.parametrize(
    "file",
    [
        crafted("no json"),
        crafted({"format": "tapegrad 1"}),
        crafted({"format": "other", "value": 1}),
        crafted([]),
        crafted({"format": "tapegrad 1", "value": {"eval": "1"}}),
        crafted({"format": "tapegrad 1", "value": {}}),
        crafted({"format": "tapegrad 1", "value": {"Tensor": 0, "requires_grad": False}}),
        crafted({"format": "tapegrad 1", "value": {"Tensor": "../0", "requires_grad": False}}),
        crafted({"format": "tapegrad 1", "value": {"dtype": "load"}}),
        crafted({"format": "tapegrad 1", "value": {"dtype": "object"}}),
        crafted({"format": "tapegrad 1", "value": {"dict": [[[1], 2]]}}),
        crafted('{"format": "tapegrad 1", "value": ' + "[" * 100000 + "]" * 100000 + "}"),
        crafted({"format": "tapegrad 1", "value": {"array": 0}}, **{"0.npy": npy(np.array([Bomb()], object))}),
        crafted(
            {"format": "tapegrad 1", "value": {"array": 0}},
            **{"0.npy": npy(np.ones(2)).replace(b"(2,)", b"(9,)")},
        ),
        crafted(
            {"format": "tapegrad 1", "value": {"array": 0}},
            **{"0.npy": npy(np.ones(2)).replace(b"(2,), }         ", b"(2222222222,), }")},
        ),
        crafted(
            {"format": "tapegrad 1", "value": {"Tensor": 0, "requires_grad": True}}, **{"0.npy": npy(np.arange(2))}
        ),
        io.BytesIO(pickle.dumps(Bomb())),
        io.BytesIO(b""),
    ],
)  # fmt: skip
def test_hostile_files(file: io.BytesIO, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match=r"is damaged|nly Tensors of floating point"):
        tg.load(file)
    assert capsys.readouterr().out == ""


def test_a_file_of_torch_is_explained() -> None:
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save({"a": torch.ones(2)}, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="PyTorch wrote it, as a pickle"):
        tg.load(file)


# pickle and copy -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_of_modules(copied: Any) -> None:
    model = tg.nn.Sequential(tg.nn.Linear(2, 2), tg.nn.BatchNorm1d(2), tg.nn.LSTM(2, 3))
    model[0].bias = None
    model[2].weight_hh_l0.requires_grad_(False)
    model.tied = model[0]
    model.eval()
    twin = copied(model)
    assert repr(twin) == repr(model)
    assert twin.tied is twin[0] is not model[0]
    assert (twin.training, twin[0].training) == (False, False)
    assert list(twin.state_dict()) == list(model.state_dict())
    for (name, a), (_, b) in zip(twin.named_parameters(), model.named_parameters(), strict=True):
        assert type(a) is tg.nn.Parameter, name
        assert (a.requires_grad, a.tolist()) == (b.requires_grad, b.tolist())
        assert a is not b
    with tg.no_grad():
        twin[0].weight.fill_(0)
    assert model[0].weight.abs().sum() > 0
    twin.register_buffer("extra", tg.ones(1))
    assert "extra" not in model.state_dict()


def test_deepcopy_of_a_parameter_has_no_gradient() -> None:
    p = tg.nn.Parameter(tg.ones(2))
    (p * 2).sum().backward()
    assert copy.deepcopy(p).grad is None
    leaf = tg.ones(2, requires_grad=True)
    (leaf * 2).sum().backward()
    assert copy.deepcopy(leaf).grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(leaf * 2)
