"""Nodes of the graph, their hooks, and hooks of what is saved: each test with the fixture T runs on PyTorch too."""

import gc
import weakref

import numpy as np
import pytest

import tapegrad as tg


def leaf(T, *values):
    return T.tensor(list(values), requires_grad=True)


# Nodes ---------------------------------------------------------------------------------------------------------------


def test_one_object_a_node(T):
    x = leaf(T, 1.0, 2.0)
    y = x * x
    z = y.exp()
    node = y.grad_fn
    assert y.grad_fn is node
    assert z.grad_fn.next_functions == ((node, 0),)
    assert {node: 1}[y.grad_fn] == 1
    assert node != z.grad_fn
    (first, _), (second, _) = node.next_functions
    assert first is second
    assert first.variable is x
    assert type(first).__name__ == "AccumulateGrad"
    assert first.next_functions == ()
    assert (first.name(), node.name()) == ("torch::autograd::AccumulateGrad", "MulBackward0")


def test_several_results_have_one_node(T):
    x = T.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    values, vectors = T.linalg.eigh(x)
    assert values.grad_fn is vectors.grad_fn
    assert values.grad_fn.name() == "LinalgEighBackward0"
    assert [number for _, number in (values.sum() + vectors.sum()).grad_fn.next_functions] == [0, 0]
    assert (vectors * 2).grad_fn.next_functions[0][1] == 1
    ((node, number),) = [edge for edge in vectors.sum().grad_fn.next_functions if edge[0]]
    assert (node, number) == (values.grad_fn, 1)


def test_metadata(T):
    y = leaf(T, 1.0) * 2
    assert y.grad_fn.metadata == {}
    y.grad_fn.metadata["who"] = "me"
    assert y.grad_fn.metadata == {"who": "me"}
    y.backward()


def test_edges(T):
    x = leaf(T, 1.0, 2.0)
    y = x * 2
    edge = T.autograd.graph.get_gradient_edge(y)
    assert (edge.node, edge.output_nr) == (y.grad_fn, 0)
    assert T.autograd.graph.get_gradient_edge(x).node is y.grad_fn.next_functions[0][0]
    assert isinstance(y.grad_fn, T.autograd.graph.Node)
    with pytest.raises(RuntimeError, match=r"get the gradient edge for a Tensor that does not require gradients"):
        T.autograd.graph.get_gradient_edge(T.ones(2))


def test_edges_in_place_of_tensors(T):
    edge_of = T.autograd.graph.get_gradient_edge
    x = leaf(T, 1.0, 2.0)
    y = x * 2
    z = (y * y).sum()
    assert T.autograd.grad(z, edge_of(x), retain_graph=True)[0].tolist() == [8, 16]
    assert T.autograd.grad(z, [edge_of(y), x], retain_graph=True)[0].tolist() == [4, 8]
    edge = edge_of(z)
    del z
    assert T.autograd.grad(edge, x, T.tensor(3.0), retain_graph=True)[0].tolist() == [24, 48]
    T.autograd.backward([edge_of(y)], [T.ones(2)])
    assert x.grad.tolist() == [2, 2]


SAVED = {
    "mul": (lambda T, x, y: x * y, {"self": "x", "other": "y"}),
    "exp": (lambda T, x, y: T.exp(x), {"result": "out"}),
    "sin": (lambda T, x, y: x.sin(), {"self": "x"}),
    "tanh": (lambda T, x, y: x.tanh(), {"result": "out"}),
    "relu": (lambda T, x, y: x.relu(), {"result": "out"}),
    "log": (lambda T, x, y: x.log(), {"self": "x"}),
    "abs": (lambda T, x, y: x.abs(), {"self": "x"}),
    "pow": (lambda T, x, y: x**y, {"self": "x", "exponent": "y", "result": "out"}),
    "square": (lambda T, x, y: x**2, {"self": "x", "exponent": 2}),
    "softmax": (lambda T, x, y: x.softmax(0), {"result": "out"}),
    "atan2": (lambda T, x, y: T.atan2(x, y), {"self": "x", "other": "y"}),
}


@pytest.mark.parametrize("name", SAVED)
def test_saved_values(T, name):
    x, y = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)
    call, names = SAVED[name]
    out = call(T, x, y)
    known = {"x": x, "y": y, "out": out}
    for shown, what in names.items():
        value = getattr(out.grad_fn, f"_saved_{shown}")
        if not isinstance(what, str):
            assert value == what
            continue
        assert value.tolist() == known[what].tolist()
        assert value.grad_fn == known[what].grad_fn
        assert (value is known[what]) == (what != "out")
        assert f"_saved_{shown}" in dir(out.grad_fn)
    with pytest.raises(AttributeError):
        _ = out.grad_fn._saved_nonsense


def test_saved_values_that_are_not_there(T):
    x, y = leaf(T, 1.0, 2.0), T.ones(2)
    out = x * y
    assert out.grad_fn._saved_self is None
    z = x.exp()
    node = z.log().grad_fn
    z.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: .*, which is output 0 of (Exp|Add)"):
        _ = node._saved_self
    out.sum().backward()
    with pytest.raises(RuntimeError, match=r"^Trying to backward through the graph a second time"):
        _ = out.grad_fn._saved_other


# Hooks of nodes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("create_graph", [False, True])
def test_order_of_hooks_and_what_they_replace(T, create_graph):
    x, w = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)
    z = x * w
    seen = []
    z.grad_fn.register_hook(lambda gi, go: seen.append(["post", *(g.tolist() for g in gi + go)]) or (gi[0] * 10, gi[1]))
    z.grad_fn.register_prehook(lambda go: seen.append(["pre", *(g.tolist() for g in go)]) or (go[0] * 3,))
    z.register_hook(lambda g: seen.append(["tensor", g.tolist()]) or g + 1)
    z.retain_grad()
    got = T.autograd.grad(z.sum(), (x, w), create_graph=create_graph)
    assert [g.tolist() for g in got] == [[180, 240], [6, 12]]
    assert z.grad.tolist() == [2, 2]
    assert seen == [["tensor", [1, 1]], ["pre", [2, 2]], ["post", [18, 24], [6, 12], [6, 6]]]
    if create_graph:
        assert T.autograd.grad(got[0].sum(), w)[0].tolist() == [60, 60]


def test_hooks_of_nodes_without_a_change(T):
    x = leaf(T, 1.0, 2.0)
    y = x.exp().cumsum(0)
    handles = []
    for node in (y.grad_fn, y.grad_fn.next_functions[0][0]):
        handles += [node.register_hook(lambda gi, go: None), node.register_prehook(lambda go: None)]
    T.autograd.backward(y, T.ones(2), retain_graph=True)
    expected = x.grad.tolist()
    x.grad = None
    for handle in handles:
        handle.remove()
    T.autograd.backward(y, T.ones(2))
    assert x.grad.tolist() == expected
    assert np.allclose(expected, [2 * np.exp(1), np.exp(2)])


def test_operands_that_want_no_gradient_are_none(T):
    x, w = leaf(T, 1.0, 2.0), T.ones(2)
    z = x * w
    seen = []
    z.grad_fn.register_hook(lambda gi, go: seen.append([g is None for g in gi]))
    z.sum().backward()
    assert seen == [[False, True]]
    y = x * 3
    u = w.requires_grad_() * y
    u.grad_fn.register_hook(lambda gi, go: seen.append([g is None for g in gi]))
    T.autograd.grad(u.sum(), x)
    assert seen[1][1] is False


def test_a_hook_that_takes_a_gradient_away(T):
    x, w = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)
    z = x * w
    z.grad_fn.register_hook(lambda gi, go: (None, gi[1]))
    z.sum().backward()
    assert x.grad is None
    assert w.grad.tolist() == [1, 2]


NUMBER = "hook '<lambda>' has returned an incorrect number of values"
POST = {
    "no tuple": (lambda gi, go: 3, TypeError, "expected tuple, but hook returned 'int'"),
    "tensor": (lambda gi, go: gi[0], TypeError, "expected tuple, but hook returned 'Tensor'"),
    "too few": (lambda gi, go: gi[:1], RuntimeError, f"{NUMBER} (got 1, but expected 2)"),
    "number": (lambda gi, go: (gi[0], 3), TypeError, "expected Variable, but hook returned 'int'"),
    "size": (lambda gi, go: (gi[0][:1], gi[1]), RuntimeError, "hook '<lambda>' has changed the size of value"),
}  # fmt: skip
PRE = {
    "no tuple": (lambda go: 3, TypeError, "expected tuple, but hook returned 'int'"),
    "number": (lambda go: (3,), TypeError, "expected Variable, but hook returned 'int'"),
    "size": (lambda go: (go[0][:1],), RuntimeError, "hook '<lambda>' has changed the size of value"),
    "too many": (lambda go: go * 2, RuntimeError, f"{NUMBER} (got 2, but expected 1)"),
}  # fmt: skip


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(("kind", "name"), [("hook", name) for name in POST] + [("prehook", name) for name in PRE])
def test_results_that_hooks_may_not_have(T, kind, name, create_graph):
    hook, error, words = (POST if kind == "hook" else PRE)[name]
    x, w = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)
    z = x * w
    getattr(z.grad_fn, f"register_{kind}")(hook)
    with pytest.raises(error) as caught:
        T.autograd.grad(z.sum(), (x, w), create_graph=create_graph)
    assert str(caught.value).startswith(words)
    assert x.grad is None


def test_hooks_of_the_node_of_a_leaf(T):
    x = leaf(T, 1.0, 2.0)
    node = (x * 1).grad_fn.next_functions[0][0]
    seen = []
    x.register_hook(lambda g: seen.append(["tensor", g.tolist()]))
    node.register_prehook(lambda go: seen.append(["pre", go[0].tolist()]) or (go[0] * 2,))
    node.register_hook(lambda gi, go: seen.append(["post", gi, go[0].tolist(), x.grad.tolist()]))
    (x * 2).sum().backward()
    assert seen == [["tensor", [2, 2]], ["pre", [2, 2]], ["post", (), [4, 4], [4, 4]]]


@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_of_a_node_of_several_results(T, create_graph):
    x = T.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    values, vectors = T.linalg.eigh(x)
    (plain,) = T.autograd.grad(values.sum() + (vectors**4).sum(), x, retain_graph=True)
    seen = []
    values.grad_fn.register_prehook(lambda go: seen.append([tuple(g.shape) for g in go]) or (go[0] * 2, go[1] * 2))
    values.grad_fn.register_hook(lambda gi, go: (gi[0] * 3,))
    (got,) = T.autograd.grad(values.sum() + (vectors**4).sum(), x, create_graph=create_graph)
    assert seen == [[(2,), (2, 2)]]
    assert np.allclose(got.tolist(), (6 * plain).tolist())


@pytest.mark.parametrize("mode", ["all", "any"])
def test_hooks_of_several_tensors(T, mode):
    x, y, unused = leaf(T, 1.0), leaf(T, 2.0), leaf(T, 3.0)
    z = x * 3
    seen = []

    def note(gs):
        seen.append([None if g is None else g.item() for g in (gs if mode == "all" else [gs])])

    handle = T.autograd.graph.register_multi_grad_hook([x, unused, y, z], note, mode=mode)
    for _ in range(2):
        (z * y).backward(retain_graph=True)
    assert seen == [[6, None, 3, 2]] * 2 if mode == "all" else len(seen) == 2
    handle.remove()
    (z * y).backward()
    assert len(seen) == 2
    with pytest.raises(ValueError, match=r"^Expects mode to be one of \('all', 'any'\) but got most"):
        T.autograd.graph.register_multi_grad_hook([x], print, mode="most")


# Hooks of what is saved ----------------------------------------------------------------------------------------------


def test_saved_tensors_are_packed_and_unpacked(T):
    graph = T.autograd.graph
    x, w = leaf(T, 1.0, 2.0), leaf(T, 3.0, 4.0)
    packed, unpacked = [], []

    def pack(tensor):
        packed.append((tensor.tolist(), tensor.requires_grad, T.is_grad_enabled()))
        return tensor.detach() * 10

    def unpack(value):
        unpacked.append(value.tolist())
        return value / 5

    with graph.saved_tensors_hooks(pack, unpack):
        y = x * w
        z = (y + 1).sum() * 2
    assert sorted(packed) == [([1, 2], True, False), ([3, 4], True, False)]
    z.backward(retain_graph=True)
    assert (x.grad.tolist(), w.grad.tolist()) == ([12, 16], [4, 8])
    z.backward()
    assert sorted(unpacked) == [[10, 20]] * 2 + [[30, 40]] * 2
    assert (x * w).grad_fn._saved_self is x
    assert len(packed) == 2


@pytest.mark.parametrize("call", ["exp", "tanh", "sin", "softmax", "cumprod", "matmul", "max", "getitem", "sum_of_exp"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (100, 200)])
@pytest.mark.parametrize(
    ("pack", "unpack"),
    [
        (lambda t: t.tolist(), tg.tensor),
        (lambda t: t.detach().numpy(), tg.from_numpy),  # which makes an array of a number
        (lambda t: t.detach().clone(), lambda t: t),
    ],
    ids=["list", "array", "clone"],
)
def test_packed_gradients_are_those_without(call, shape, pack, unpack):
    calls = {
        "exp": lambda x: x.exp(), "tanh": lambda x: x.tanh(), "sin": lambda x: x.sin(),
        "softmax": lambda x: x.softmax(-1), "cumprod": lambda x: x.cumprod(-1) if x.ndim else x * x,
        "matmul": lambda x: x @ x.mT if x.ndim > 1 else x * x, "max": lambda x: x.max(-1)[0] if x.ndim else x.max(),
        "getitem": lambda x: x.t()[tg.tensor([0, 0])] ** 2 if x.ndim > 1 else x**3,
        "sum_of_exp": lambda x: x.sum().reshape(1).exp(),
    }  # fmt: skip
    data = np.random.default_rng(0).uniform(0.1, 1, shape) / 100
    grads = []
    for hooks in (False, True):
        x = tg.tensor(data, requires_grad=True)
        for create_graph in (False, True):
            if hooks:
                with tg.autograd.graph.saved_tensors_hooks(pack, unpack):
                    y = calls[call](x).sum() * 2
            else:
                y = calls[call](x).sum() * 2
            (slope,) = tg.autograd.grad(y, x, create_graph=create_graph)
            grads.append(slope.detach().numpy())
            if slope.requires_grad:
                grads.append(tg.autograd.grad((slope * slope).sum(), x)[0].numpy())
    half = len(grads) // 2
    for a, b in zip(grads[:half], grads[half:], strict=True):
        assert np.allclose(a, b, rtol=1e-13)


def test_the_innermost_hooks_serve(T):
    seen = []

    def hooks(name):
        return T.autograd.graph.saved_tensors_hooks(lambda t: seen.append(name) or t, lambda t: t)

    x = leaf(T, 1.0)
    with hooks("outer"):
        with hooks("inner"):
            y = x.sin()
        z = y.sin()
    z.backward()
    assert seen == ["inner", "outer"]


def test_refusals_of_saved_hooks(T):
    graph = T.autograd.graph
    x = leaf(T, 1.0, 2.0)
    with graph.saved_tensors_hooks(lambda t: 3, lambda t: t):
        y = x.sin()
    with pytest.raises(TypeError, match=r"^Output of saved tensor unpack_hook expected to be a Tensor but got result"):
        y.sum().backward()
    assert x.grad is None
    words = r"^A saved tensor pack hook is modifying its input in place"
    with graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t), pytest.raises(RuntimeError, match=words):
        (x * 1).sin()
    hooks = graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    with graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match=r"^not here$"), hooks:
        pass
    disabled = graph.disable_saved_tensors_hooks("not here")
    with hooks, pytest.raises(RuntimeError, match=r"^not here$"), disabled:
        pass


def test_save_on_cpu(T):
    x = leaf(T, 1.0, 2.0)
    with T.autograd.graph.save_on_cpu():
        y = (x * x).exp().sum()
    y.backward()
    assert np.allclose(x.grad.tolist(), [2 * np.e, 4 * np.exp(4)])


def test_hooks_of_one_saved_tensor(T):
    x, seen = leaf(T, 1.0, 2.0), []
    y = x * x.exp()
    saved = y.grad_fn._raw_saved_other
    saved.register_hooks(
        lambda t: seen.append("packed") or t.detach() * 10, lambda t: seen.append("unpacked") or t / 10
    )
    with pytest.raises(RuntimeError, match=r"already.* hooks|hooks.* already"):
        saved.register_hooks(lambda t: t, lambda t: t)
    assert seen == ["packed"]
    y.sum().backward()
    assert seen == ["packed", "unpacked"]
    assert np.allclose(x.grad.tolist(), [2 * np.e, 3 * np.exp(2)])
    with pytest.raises(RuntimeError):
        y.grad_fn._raw_saved_other.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="None"):
        (x * T.ones(2)).grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(AttributeError):
        _ = y.grad_fn._raw_saved_nothing


def test_a_freed_node_with_hooks(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

    x = leaf(T, 1.0, 2.0)
    y, z, values = x.exp(), F.apply(x), x.sort().values
    for result in (y, z, values):
        result.register_hook(lambda grad: grad)
        result.grad_fn.register_hook(lambda grad_inputs, grad_outputs: None)
        result.sum().backward()
    for read in (lambda: y.grad_fn._saved_result, lambda: z.grad_fn.saved_tensors, lambda: values.sum().backward()):
        with pytest.raises(RuntimeError, match="second time"):
            read()
    assert [own.grad_fn.name().removesuffix("0") for own in (y, z, values)] == [
        "ExpBackward", "FBackward", "SortBackward"
    ]  # fmt: skip


def test_number_of_the_output(T):
    x = leaf(T, 3.0, 1.0)
    values, indices = x.sort()
    assert (x.output_nr, (x * 2).output_nr, values.output_nr, indices.output_nr) == (0, 0, 0, 0)
    q, r = T.linalg.qr(leaf(T, 3.0, 1.0, 2.0, 4.0).reshape(2, 2))
    assert (q.output_nr, r.output_nr) == (0, 1)


def test_saved_tensors_may_be_written_to(T):
    x, constant = leaf(T, 1.0, 2.0), T.ones(2)
    with T.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 2
        z = y.sin()
        w = z * z * constant
        z.mul_(2)
        y.add_(1)
        constant.zero_()
        (slope,) = T.autograd.grad((w + z).sum(), x, create_graph=True)
        y.zero_()
        slope.sum().backward()
        with pytest.raises(RuntimeError, match="contexts cannot be nested"):
            T.autograd.graph.allow_mutation_on_saved_tensors().__enter__()
        z = (x * 2).sin()
    assert np.allclose(slope.tolist(), 2 * np.sin([4.0, 8.0]) + 4 * np.cos([2.0, 4.0]))
    assert np.allclose(x.grad.tolist(), 8 * np.cos([4.0, 8.0]) - 8 * np.sin([2.0, 4.0]))
    with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved_tensors'"):
        z.sum().backward()


@pytest.mark.parametrize("create_graph", [False, True])
def test_saved_tensors_of_a_function(T, create_graph):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x**3
            ctx.save_for_backward(x, y, None)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y, none = ctx.saved_tensors
            assert none is None
            return 3 * g * y / x

    x = leaf(T, 1.0, 2.0)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda values: T.tensor(values)):
        y = F.apply(x * 1)
    (slope,) = T.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert slope.tolist() == [3, 12]
    if create_graph:
        assert np.allclose(T.autograd.grad(slope.sum(), x)[0].tolist(), [6, 12])


def test_packed_graphs_die_without_garbage_collection():
    gc.disable()
    try:
        x = tg.ones(3, requires_grad=True)
        with tg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = tg.exp(x * x)
        alive = weakref.ref(y), weakref.ref(y.grad_fn)
        del y
        assert [ref() for ref in alive] == [None, None]
    finally:
        gc.enable()


def test_what_a_node_is_computed_from_once_it_is_freed():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.register_hook(lambda grad: grad)
    y.sum().backward()
    assert y.grad_fn.next_functions == ()
    assert y.grad_fn.name() == "MulBackward0"


def test_names_of_indices(T):
    x = T.ones(3, 4, requires_grad=True)
    keys = (0, slice(1, 2), (slice(None), 0), (0, slice(1, None)), None, (..., -1), (slice(None), None, 0), ([0, 1],))
    assert [type(x[key].grad_fn).__name__ for key in keys] == [
        f"{name}Backward0" for name in ("Select", "Slice", "Select", "Slice", "Unsqueeze", "Select", "Select", "Index")
    ]
    assert x[:].grad_fn.name() == "SliceBackward0"
    assert x[...].grad_fn.name() == "AliasBackward0"
    assert x.view(12).grad_fn.name() == x.reshape(12).grad_fn.name() == "ViewBackward0"


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_names_of_losses(T, reduction):
    x, y, classes = T.full((2, 3), 0.5, requires_grad=True), T.full((2, 3), 0.25), T.tensor([0, 2])
    targets = {
        "mse_loss": y, "huber_loss": y, "smooth_l1_loss": y, "binary_cross_entropy": y, "soft_margin_loss": y,
        "binary_cross_entropy_with_logits": y, "nll_loss": classes, "cross_entropy": classes,
        "multi_margin_loss": classes, "l1_loss": y,
    }  # fmt: skip
    names = [
        getattr(T.nn.functional, loss)(x, target, reduction=reduction).grad_fn.name()
        for loss, target in targets.items()
    ]
    assert names == [
        f"{name}Backward0"
        for name in (
            "MseLoss", "HuberLoss", "SmoothL1Loss", "BinaryCrossEntropy", "SoftMarginLoss",
            "BinaryCrossEntropyWithLogits", "NllLoss", "NllLoss", "MultiMarginLoss", reduction.title(),
        )
    ]  # fmt: skip


def test_names_of_calls(T):
    """One operation here is several in PyTorch, or a step of one: the kind of the call names the node."""
    x, v, F = T.ones(2, 3, requires_grad=True), T.ones(3, requires_grad=True), T.nn.functional
    images, k = T.ones(1, 1, 4, 4, requires_grad=True), T.tensor([0])
    results = {
        "Sum": x.sum(), "Sum1": x.sum(0), "Mean1": x.mean(1), "Prod1": x.prod(0), "Max1": x.max(), "Min1": x.min(),
        "Std": x.std(), "Var": x.var(0), "Dot": v @ v, "Mv": x @ v, "Mm": x @ x.T, "UnsafeView": x[None] @ x.T,
        "Rsub1": 1 - x, "Mul": 2 / x, "Reciprocal": x.reciprocal(), "Pow": x.square(), "Pow1": x**x, "Pow2": 2**x,
        "Clamp1": x.clamp(0, 1), "Clamp": x.clamp(x, x), "Split": x.chunk(2)[1], "Unbind": x.unbind(1)[0],
        "MaskedFill": x.masked_fill(x > 1, 0.0), "Tril": x.tril(), "Triu": x.triu(), "View": x.flatten(), "T": x.t(),
        "Permute": x.T, "Transpose": x.transpose(0, 1), "IndexSelect": x.index_select(0, k), "Take": x.take(k),
        "Embedding": F.embedding(k, x), "Softplus": F.softplus(x), "Addmm": F.linear(x, x, v[:2]),
        "Addmv": T.addmv(v[:2], x, v), "NativeLayerNorm": F.layer_norm(x, (3,), v, v),
        "NativeBatchNorm": F.batch_norm(x, None, None, v, v, training=True),
        "NativeGroupNorm": F.group_norm(x, 1, v, v),
        "Convolution": F.conv1d(x[None], x[None]), "MaxPool2DWithIndices": F.max_pool2d(images, 2),
        "AvgPool2D": F.avg_pool2d(images, 2), "AdaptiveAvgPool2D": F.adaptive_avg_pool2d(images, 2),
    }  # fmt: skip
    for name, result in results.items():
        number = name[-1] if name[-1].isdigit() else "0"
        assert result.grad_fn.name() == f"{name.removesuffix(number)}Backward{number}"
    y = x * 1
    y[0] = v
    assert (y.grad_fn.name(), type(y.grad_fn).__name__) == ("torch::autograd::CopySlices", "CopySlices")
