"""Recurrent layers, attention and transformers side by side with torch, and sequences of unlike lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")

from tests.nn_side_by_side import as_ours, both, compare, same  # noqa: E402  it needs torch


def draw(*shape: int, grad: bool = True) -> Any:
    return torch.tensor(np.random.default_rng(sum(shape)).uniform(-2, 2, shape), requires_grad=grad)


RECURRENT = [
    ("RNN", (3, 4), {}),
    ("RNN", (3, 4, 2, "relu"), {}),
    ("RNN", (3, 4), {"nonlinearity": "relu", "bias": False, "bidirectional": True}),
    ("LSTM", (3, 4), {}),
    ("LSTM", (3, 4, 2), {"bidirectional": True}),
    ("LSTM", (3, 4), {"num_layers": 2, "bias": False}),
    ("LSTM", (3, 4, 2), {"proj_size": 2, "bidirectional": True}),
    ("LSTM", (3, 4), {"proj_size": 3, "bias": False}),
    ("LSTM", (3, 4), {"batch_first": True}),
    ("GRU", (3, 4), {}),
    ("GRU", (3, 4, 3), {"bidirectional": True, "batch_first": True, "dropout": 0.5}),
    ("GRU", (3, 4), {"bias": False}),
]


def states(module: Any, items: tuple[int, ...]) -> Any:
    count = module.num_layers * (1 + module.bidirectional)
    h = draw(count, *items, module.proj_size or module.hidden_size)
    return (h, draw(count, *items, module.hidden_size)) if module.mode == "LSTM" else h


@pytest.mark.parametrize(("name", "args", "options"), RECURRENT)
def test_recurrent_layers(name: str, args: Any, options: Any) -> None:
    ours, theirs = both(lambda nn: getattr(nn, name)(*args, **options).eval())
    compare(ours, theirs, draw(5, 2, 3))
    batch = 5 if theirs.batch_first else 2
    compare(ours, theirs, draw(5, 2, 3), states(theirs, (batch,)))
    compare(ours, theirs, draw(5, 3))
    compare(ours, theirs, draw(5, 3), states(theirs, ()))
    assert [[one.shape for one in weights] for weights in ours.all_weights] == [
        [tuple(one.shape) for one in weights] for weights in theirs.all_weights
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_sequences(dtype: str) -> None:
    ours, theirs = both(lambda nn: nn.LSTM(16, 32), dtype)
    x = draw(20, 8, 16, grad=False).to(getattr(torch, dtype)).requires_grad_()
    compare(ours, theirs, x, rtol=1e-10 if dtype == "float64" else 2e-4)


@pytest.mark.parametrize(("name", "args", "options"), RECURRENT)
@pytest.mark.parametrize("enforce_sorted", [True, False])
def test_packed_sequences(name: str, args: Any, options: Any, enforce_sorted: bool) -> None:
    ours, theirs = both(lambda nn: getattr(nn, name)(*args, **options).eval())
    lengths, x = [5, 3, 3, 1] if enforce_sorted else [3, 5, 1, 3], draw(4, 5, 3)
    packs = [
        one.nn.utils.rnn.pack_padded_sequence(own, lengths, batch_first=True, enforce_sorted=enforce_sorted)
        for one, own in ((tg, as_ours(x)), (torch, x))
    ]
    for a, b in zip(*packs, strict=True):
        same(a, b)
    start = states(theirs, (4,))
    (out_a, last_a), (out_b, last_b) = ours(packs[0], as_ours(start)), theirs(packs[1], start)
    total = []
    for out, last, one in ((out_a, last_a, tg), (out_b, last_b, torch)):
        padded, sizes = one.nn.utils.rnn.pad_packed_sequence(out, batch_first=True, padding_value=-1.0, total_length=6)
        total.append((padded, sizes, *(last if isinstance(last, tuple) else (last,))))
    for a, b in zip(*total, strict=True):
        same(a, b)
    for parts in total:
        sum((own * own).sum() for own in (parts[0], *parts[2:])).backward()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        same(a.grad, b.grad, 1e-9)


FUNCTIONS = [("lstm", 4, 2), ("gru", 3, 1), ("rnn_tanh", 1, 1), ("rnn_relu", 1, 1)]


def by_function(one: Any, name: str, x: Any, hx: Any, params: Any, sizes: Any = None, **options: Any) -> Any:
    values = {"has_biases": True, "num_layers": 1, "dropout": 0.0, "train": False, "bidirectional": False}
    values |= {"batch_first": False} if sizes is None else {}
    packed = () if sizes is None else (one.tensor(sizes),)
    return getattr(one, name)(x, *packed, hx, list(params), *(values | options).values())


@pytest.mark.parametrize(("name", "gates", "count"), FUNCTIONS)
@pytest.mark.parametrize(
    "options", [{}, {"bidirectional": True, "batch_first": True}, {"num_layers": 2, "has_biases": False}]
)
def test_functions_and_their_second_derivatives(name: str, gates: int, count: int, options: Any) -> None:
    layers, directions = options.get("num_layers", 1), 1 + options.get("bidirectional", False)
    params = []
    for layer in range(layers):
        shapes = [(4 * gates, 3 if layer == 0 else 4 * directions), (4 * gates, 4), (4 * gates,), (4 * gates,)]
        params += [
            draw(*one) for _ in range(directions) for one in shapes[: 4 if options.get("has_biases", True) else 2]
        ]
    x, hx = draw(5, 2, 3), tuple(draw(layers * directions, 5 if directions == 2 else 2, 4) for _ in range(count))
    found = []
    for one, change in ((torch, lambda own: own), (tg, as_ours)):
        operands = change((x, *hx, *params))
        start = operands[1 : 1 + count]
        results = by_function(
            one, name, operands[0], start if count == 2 else start[0], operands[1 + count :], **options
        )
        assert len(results) == 1 + count
        loss = sum((own * own).sum() for own in results)
        plain = one.autograd.grad(loss, operands, retain_graph=True)
        slopes = one.autograd.grad(loss, operands, create_graph=True)
        found.append((results, slopes, one.autograd.grad(sum((own * own).sum() for own in slopes), operands)))
        for a, b in zip(plain, slopes, strict=True):
            np.testing.assert_allclose(a, b.detach(), rtol=1e-9, atol=1e-9)
    for theirs, ours in zip(*found, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, 1e-8)


@pytest.mark.parametrize(("name", "gates", "count"), FUNCTIONS)
def test_functions_of_packed_sequences(name: str, gates: int, count: int) -> None:
    params = [draw(*one) for one in ((4 * gates, 3), (4 * gates, 4), (4 * gates,), (4 * gates,))]
    hx = tuple(draw(1, 3, 4) for _ in range(count))
    x = draw(6, 3)
    a, b = (
        by_function(one, name, change(x), change(hx) if count == 2 else change(hx[0]), change(params), [3, 2, 1])
        for one, change in ((tg, as_ours), (torch, lambda own: own))
    )
    for ours, theirs in zip(a, b, strict=True):
        same(ours, theirs)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, h, c, params: (x, (h,), params), "lstm expects two hidden states"),
        (lambda x, h, c, params: (x, (h[:, :1], c), params), "do not fit"),  # where torch reads memory of others
        (lambda x, h, c, params: (x, (h, c[..., :2]), params), "do not fit"),
        (lambda x, h, c, params: (x[0], (h, c), params), "Expected input to be 3D"),
        (lambda x, h, c, params: (x, (h, c), params[:3]), "expected 4 parameters"),
        (lambda x, h, c, params: (x, (h.float(), c), params), "one dtype"),
    ],
)
def test_wrong_arguments_of_functions(change: Any, words: str) -> None:
    params = [tg.ones(16, 3), tg.ones(16, 4), tg.ones(16), tg.ones(16)]
    x, hx, params = change(tg.ones(5, 2, 3), tg.ones(1, 2, 4), tg.ones(1, 2, 4), params)
    with pytest.raises(RuntimeError, match=words):
        by_function(tg, "lstm", x, hx, params)


def test_a_recurrent_layer_is_one_entry_a_direction() -> None:
    layer = tg.nn.LSTM(3, 4)
    counts = [str(layer(tg.ones(steps, 2, 3))[0].sum().tape()).count("\n") for steps in (2, 200)]
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("name", "options", "states"),
    [("RNNCell", {}, 1), ("RNNCell", {"nonlinearity": "relu", "bias": False}, 1), ("LSTMCell", {}, 2),
     ("LSTMCell", {"bias": False}, 2), ("GRUCell", {}, 1)],
)  # fmt: skip
def test_cells(name: str, options: Any, states: int) -> None:
    ours, theirs = both(lambda nn: getattr(nn, name)(3, 4, **options))
    for items in ((2,), ()):
        compare(ours, theirs, draw(*items, 3))
        hx = tuple(draw(*items, 4) for _ in range(states))
        compare(ours, theirs, draw(*items, 3), hx if states == 2 else hx[0])


def outcome(function: Any) -> tuple[Any, str]:
    try:
        function()
    except Exception as error:
        return type(error), str(error)
    return None, ""


@pytest.mark.parametrize(
    "program",
    [
        lambda one: one.nn.LSTM(3, 4)(one.zeros(3)),
        lambda one: one.nn.GRU(3, 4)(one.zeros(3)),
        lambda one: one.nn.RNN(3, 4)(one.zeros(1, 2, 3, 4)),
        lambda one: one.nn.LSTM(3, 4)(one.zeros(5, 2, 4)),
        lambda one: one.nn.LSTM(3, 4)(one.zeros(5, 2, 3), (one.zeros(1, 3, 4), one.zeros(1, 2, 4))),
        lambda one: one.nn.LSTM(3, 4)(one.zeros(5, 2, 3), (one.zeros(1, 2, 4), one.zeros(2, 2, 4))),
        lambda one: one.nn.LSTM(3, 4)(one.zeros(5, 2, 3), (one.zeros(2, 4), one.zeros(2, 4))),
        lambda one: one.nn.LSTM(3, 4)(one.zeros(5, 3), (one.zeros(1, 2, 4), one.zeros(1, 2, 4))),
        lambda one: one.nn.GRU(3, 4)(one.zeros(5, 2, 3), one.zeros(1, 3, 4)),
        lambda one: one.nn.GRU(3, 4)(one.zeros(5, 2, 3), one.zeros(3, 4)),
        lambda one: one.nn.GRU(3, 4)(one.zeros(0, 2, 3)),
        lambda one: one.nn.LSTM(3, 4, batch_first=True)(one.zeros(2, 0, 3)),
        lambda one: one.nn.GRU(3, 4, proj_size=2),
        lambda one: one.nn.LSTM(3, 4, proj_size=4),
        lambda one: one.nn.LSTM(3, 4, proj_size=-1),
        lambda one: one.nn.LSTM(0, 4),
        lambda one: one.nn.LSTM(3, 4.0),
        lambda one: one.nn.LSTM(3, 4, 0),
        lambda one: one.nn.LSTM(3, 4, 2, dropout=2),
        lambda one: one.nn.RNN(3, 4, nonlinearity="sin"),
        lambda one: one.nn.LSTMCell(3, 4)(one.zeros(1, 2, 3)),
        lambda one: one.nn.RNNCell(3, 4)(one.zeros(2, 3), one.zeros(1, 2, 4)),
        lambda one: one.nn.MultiheadAttention(4, 3),
        lambda one: one.nn.MultiheadAttention(0, 3),
        lambda one: one.nn.Transformer(4, 2, 1, 1)(one.zeros(5, 2, 4), one.zeros(5, 3, 4)),
        lambda one: one.nn.Transformer(4, 2, 1, 1)(one.zeros(5, 2, 4), one.zeros(5, 2, 3)),
        lambda one: one.nn.TransformerEncoderLayer(4, 2, activation="sin"),
        lambda one: one.nn.utils.rnn.pack_padded_sequence(one.zeros(3, 2), one.tensor([1, 3])),
        lambda one: one.nn.utils.rnn.pack_padded_sequence(one.zeros(3, 2), one.tensor([1, 0])),
        lambda one: one.nn.utils.rnn.pack_padded_sequence(one.zeros(3, 2), one.tensor([1])),
        lambda one: one.nn.utils.rnn.pad_sequence([]),
    ],
)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_errors(program: Any) -> None:
    (ours, said), (theirs, expected) = outcome(lambda: program(tg)), outcome(lambda: program(torch))
    assert ours is theirs is not None
    assert said.split("(")[0] == expected.split("(")[0]


def test_a_dropout_without_a_second_layer_is_warned_of() -> None:
    for one in (tg, torch):
        with pytest.warns(UserWarning, match="dropout option adds dropout after all but last recurrent layer"):
            one.nn.LSTM(3, 4, dropout=0.5)


def test_sequences_of_unlike_lengths() -> None:
    parts = [draw(3, 2), draw(1, 2), draw(2, 2)]
    own = as_ours(parts)
    empty = tg.nn.utils.rnn.pad_sequence([tg.zeros(0, 2), tg.ones(1, 2)], padding_value=3.0)
    assert empty.tolist() == [[[3.0, 3.0], [1.0, 1.0]]]
    for options in ({}, {"batch_first": True}, {"padding_value": 2.0, "padding_side": "left"}):
        a, b = tg.nn.utils.rnn.pad_sequence(own, **options), torch.nn.utils.rnn.pad_sequence(parts, **options)
        same(a, b)
    packs = [
        one.nn.utils.rnn.pack_sequence(several, enforce_sorted=False) for one, several in ((tg, own), (torch, parts))
    ]
    for a, b in zip(*packs, strict=True):
        same(a, b)
    backs = [one.nn.utils.rnn.unpack_sequence(pack) for one, pack in zip((tg, torch), packs, strict=True)]
    for a, b in zip(*backs, strict=True):
        same(a, b)
    packs[0].data.sum().backward()
    assert own[0].grad.tolist() == [[1.0, 1.0]] * 3


# Attention -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"bias": False}, {"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 3, "vdim": 5}, {"batch_first": True}],
)
def test_attention(options: Any) -> None:
    ours, theirs = both(lambda nn: nn.MultiheadAttention(4, 2, **options))
    key, value = draw(6, 2, theirs.kdim), draw(6, 2, theirs.vdim)
    query = draw(6, 2, 4) if theirs.batch_first else draw(5, 2, 4)
    compare(ours, theirs, query, key, value)
    compare(ours, theirs, query, key, value, average_attn_weights=False)
    compare(ours, theirs, query, key, value, need_weights=False)
    compare(ours, theirs, draw(5, 4), draw(6, theirs.kdim), draw(6, theirs.vdim))
    items, source = (6, 2) if theirs.batch_first else (2, 6)
    padding = torch.zeros(items, source, dtype=torch.bool)
    padding[0, -1] = True
    compare(ours, theirs, query, key, value, key_padding_mask=padding)
    mask = torch.triu(torch.ones(2 if theirs.batch_first else 5, source, dtype=torch.bool), 1)
    compare(ours, theirs, query, key, value, attn_mask=mask)


@pytest.mark.parametrize(
    "options",
    [{}, {"batch_first": True}, {"norm_first": True}, {"activation": "gelu", "bias": False}, {"layer_norm_eps": 0.1}],
)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_transformers(options: Any) -> None:
    options = {"dim_feedforward": 8, "dropout": 0.0, **options}
    src, tgt = draw(5, 2, 4), draw(5, 2, 4) * 1.5
    tgt = tgt.detach().requires_grad_()
    length = 2 if options.get("batch_first") else 5
    mask = torch.nn.Transformer.generate_square_subsequent_mask(length, dtype=torch.float64)
    same(tg.nn.Transformer.generate_square_subsequent_mask(length), mask)
    ours, theirs = both(lambda nn: nn.TransformerEncoderLayer(4, 2, **options))
    compare(ours, theirs, src)
    compare(ours, theirs, src, src_mask=mask, is_causal=True)
    ours, theirs = both(lambda nn: nn.TransformerDecoderLayer(4, 2, **options))
    compare(ours, theirs, tgt, src, tgt_mask=mask)
    ours, theirs = both(lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, **options), 2))
    compare(ours, theirs, src, mask=mask)
    ours, theirs = both(
        lambda nn: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, **options), 2, norm=nn.LayerNorm(4))
    )
    compare(ours, theirs, tgt, src)
    ours, theirs = both(lambda nn: nn.Transformer(4, 2, 1, 2, **options))
    compare(ours, theirs, src, tgt, tgt_mask=mask)


def test_a_module_as_activation_is_a_child() -> None:
    both(lambda nn: nn.TransformerEncoderLayer(4, 2, 8, activation=nn.GELU()))


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_cells_refuse_other_shapes(mode: str) -> None:
    """In PyTorch's words."""
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    for shapes in (((2, 2), (2, 4)), ((2, 3), (2, 2)), ((2, 3), (1, 4)), ((2, 3), (2, 4), 5)):
        found = []
        for m in (tg, torch):
            x, h = m.ones(shapes[0]), m.ones(shapes[1])
            rows = gates * (shapes[2] if len(shapes) > 2 else 4)
            with pytest.raises(RuntimeError) as error:
                getattr(m, f"{mode}_cell")(x, (h, h) if mode == "lstm" else h, m.ones(rows, 3), m.ones(gates * 4, 4))
            found.append(str(error.value))
        assert found[0].startswith(found[1])
    for bias in ("b_ih", "b_hh"):
        arrays = np.random.default_rng(0).normal(size=(gates * 4, 9))
        results = []
        for m in (tg, torch):
            x, h, w = m.tensor(arrays[:2, :3]), m.tensor(arrays[2:4, :4]), m.tensor(arrays)
            state = (h, h) if mode == "lstm" else h
            out = getattr(m, f"{mode}_cell")(x, state, w[:, :3], w[:, 3:7], **{bias: w[:, 8]})
            results.append((out[0] if mode == "lstm" else out).numpy())
        np.testing.assert_allclose(*results)
