"""Initial values: those of layers follow PyTorch's distributions; matrices of a kind are of that kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")
init = tg.nn.init

LAYERS = {
    "Linear": lambda nn: nn.Linear(50, 80),
    "Bilinear": lambda nn: nn.Bilinear(20, 30, 40),
    "Conv2d": lambda nn: nn.Conv2d(16, 32, 3, groups=2),
    "ConvTranspose1d": lambda nn: nn.ConvTranspose1d(16, 32, 5),
    "Embedding": lambda nn: nn.Embedding(100, 50, padding_idx=1),
    "EmbeddingBag": lambda nn: nn.EmbeddingBag(100, 50),
    "LSTM": lambda nn: nn.LSTM(20, 30, 2),
    "GRUCell": lambda nn: nn.GRUCell(20, 30),
    "BatchNorm1d": lambda nn: nn.BatchNorm1d(10),
    "LayerNorm": lambda nn: nn.LayerNorm(10),
    "GroupNorm": lambda nn: nn.GroupNorm(2, 10),
    "PReLU": lambda nn: nn.PReLU(10, init=0.5),
    "MultiheadAttention": lambda nn: nn.MultiheadAttention(32, 4, add_bias_kv=True),
    "MultiheadAttention of others": lambda nn: nn.MultiheadAttention(32, 4, kdim=20, vdim=50),
    "Transformer": lambda nn: nn.Transformer(32, 4, 1, 1, 64),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_layers(name: str) -> None:
    tg.manual_seed(0)
    torch.manual_seed(0)
    ours, theirs = LAYERS[name](tg.nn).state_dict(), LAYERS[name](torch.nn).state_dict()
    for key, a in ours.items():
        a, b = a.numpy(), theirs[key].numpy()
        assert (a.std() == 0) == (b.std() == 0), key
        if b.std() == 0:
            np.testing.assert_array_equal(a, b, key)
        elif a.size > 200:
            np.testing.assert_allclose(a.std(), b.std(), rtol=6 / np.sqrt(a.size), err_msg=key)
            if "Embedding" not in name:
                np.testing.assert_allclose(abs(a).max(), abs(b).max(), rtol=0.2, err_msg=key)
    if name == "Embedding":
        assert not ours["weight"][1].any()


def test_same_seed_same_weights() -> None:
    tg.manual_seed(3)
    first = tg.nn.Linear(3, 3).weight
    tg.manual_seed(3)
    assert tg.nn.Linear(3, 3).weight.tolist() == first.tolist()


@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (4, 2)])
def test_eye(shape: tuple[int, int]) -> None:
    assert init.eye_(tg.nn.Parameter(tg.empty(shape))).tolist() == torch.nn.init.eye_(torch.empty(shape)).tolist()


@pytest.mark.parametrize(("shape", "groups"), [((4, 2, 3), 1), ((4, 2, 3), 2), ((2, 3, 3, 4), 1), ((6, 2, 1, 2, 3), 3)])
def test_dirac(shape: tuple[int, ...], groups: int) -> None:
    ours, theirs = init.dirac_(tg.empty(shape), groups), torch.nn.init.dirac_(torch.empty(shape), groups)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3), (0, 3)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    q = init.orthogonal_(tg.nn.Parameter(tg.empty(shape)), gain=2).detach().numpy()
    q = q.reshape(shape[0], int(np.prod(shape[1:])))
    least = min(q.shape)
    gram = q @ q.T if q.shape[0] == least else q.T @ q
    np.testing.assert_allclose(gram, 4 * np.eye(least), atol=1e-12)


def test_sparse() -> None:
    x = init.sparse_(tg.empty(50, 40), 0.1, std=0.5)
    assert (x == 0).sum(0).tolist() == [5] * 40
    assert 0.4 < float(x.std()) < 0.6


def test_trunc_normal() -> None:
    tg.manual_seed(0)
    x = init.trunc_normal_(tg.empty(4000), 1.0, 2.0, a=-1.0, b=2.0).numpy()
    y = torch.nn.init.trunc_normal_(torch.empty(4000), 1.0, 2.0, a=-1.0, b=2.0).numpy()
    assert x.min() >= -1
    assert x.max() <= 2
    np.testing.assert_allclose([x.mean(), x.std()], [y.mean(), y.std()], atol=0.06)
    with pytest.warns(UserWarning, match="mean is more than 2 std from"):
        init.trunc_normal_(tg.empty(2), 10.0)


@pytest.mark.parametrize(
    "program",
    [
        lambda one: one.nn.init.eye_(one.empty(2)),
        lambda one: one.nn.init.dirac_(one.empty(2, 2)),
        lambda one: one.nn.init.dirac_(one.empty(3, 2, 2), 2),
        lambda one: one.nn.init.orthogonal_(one.empty(2)),
        lambda one: one.nn.init.sparse_(one.empty(2), 0.5),
    ],
)
def test_errors(program: Any) -> None:
    with pytest.raises(ValueError, match=r".") as theirs:
        program(torch)
    with pytest.raises(ValueError, match=str(theirs.value)):
        program(tg)


@pytest.mark.parametrize("name", ["conv_transpose2d", "conv3d", "linear", "tanh", "selu"])
def test_gains(name: str) -> None:
    assert init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert init._calculate_fan_in_and_fan_out(tg.ones(2, 3, 4)) == (12, 8)
