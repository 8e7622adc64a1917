"""Four documents on backward(): what they do, print and raise, and what PyTorch does where they are wrong.

The documents print four decimals of random inputs. Here stand inputs with more digits, from which every number that
the documents print comes out. Each test runs on tapegrad and, where it is installed, on PyTorch.
"""

import inspect

import pytest

NOT_SCALAR = "^grad can be implicitly created only for scalar outputs"
NO_GRAD_FN = "^element 0 of tensors does not require grad and does not have a grad_fn"
SECOND = "^Trying to backward through the graph a second time"
IGNORE_GRAD_OF_RESULT = "ignore:The .grad attribute of a Tensor that is not a leaf"


def shown(tensor):
    return " ".join(repr(tensor).split())


# What causes the seemingly simple but problematic behavior of tensor.backward()? ----------------------------


def test_000_scalar_output(T):
    x = T.randn(3, requires_grad=True)
    y = T.randn(3, requires_grad=True)
    z = T.dot(x, y)
    assert tuple(z.shape) == ()
    z.backward()
    assert x.grad.tolist() == y.tolist()
    assert y.grad.tolist() == x.tolist()


def test_000_vector_output(T):
    x = T.randn(3, requires_grad=True)
    y = T.randn(3, requires_grad=True)
    z = x * y
    with pytest.raises(RuntimeError, match=NOT_SCALAR):
        z.backward()
    assert (x.grad, y.grad) == (None, None)
    z.backward(T.ones(3))  # any shape, given a gradient
    assert x.grad.tolist() == y.tolist()
    row = T.tensor([[2.0]], requires_grad=True)
    (row * row).backward()  # one element of any shape, without
    assert row.grad.tolist() == [[4.0]]


def test_000_accumulation_and_constants(T):
    x = T.randn(3, requires_grad=True)
    y = T.randn(3, requires_grad=False)
    z = x * y
    z.backward(T.ones(3))
    assert x.grad.tolist() == y.tolist()
    assert y.grad is None
    x.grad.zero_()
    assert x.grad.tolist() == [0, 0, 0]
    y2 = T.randn(3, requires_grad=True)
    z2 = x * y2
    with pytest.raises(RuntimeError, match=NOT_SCALAR):  # the document prints gradients here
        z2.backward()
    z2.backward(T.ones(3))
    assert (x.grad.tolist(), y2.grad.tolist()) == (y2.tolist(), x.tolist())
    (x * y).sum().backward()
    assert x.grad.tolist() == (y2 + y).tolist()


def test_000_leaves(T):
    with_grad, without = T.ones(2, requires_grad=True), T.ones(2)
    assert (with_grad.is_leaf, without.is_leaf, (with_grad * 2).is_leaf) == (True, True, False)


# How to use backward() for gradient computation -------------------------------------------------------------


def test_001_example(T):
    x = T.tensor(2.0, requires_grad=True)
    y = 3 * x**2
    y.backward()
    assert f"Gradient dy/dx at x=2: {x.grad.item()}" == "Gradient dy/dx at x=2: 12.0"


def test_001_pitfall(T):
    x = T.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    with pytest.raises(RuntimeError, match=NOT_SCALAR):
        y.backward()
    y.backward(T.tensor([1.0, 1.0, 1.0]))
    assert f"Gradients: {x.grad}" == "Gradients: tensor([2., 2., 2.])"


def test_001_signature(T):
    parameters = inspect.signature(T.Tensor.backward).parameters
    assert [(p.name, p.default) for p in parameters.values() if p.name != "self"] == [
        ("gradient", None), ("retain_graph", None), ("create_graph", False), ("inputs", None),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Using backward")
def test_001_arguments(T):
    x = T.tensor(2.0, requires_grad=True)
    y = x**3
    y.backward(retain_graph=True)
    y.backward(create_graph=True)  # gradients accumulate
    assert x.grad.item() == 24.0
    (second,) = T.autograd.grad(x.grad, x)
    assert second.item() == 12.0
    optimizer = T.optim.SGD([x], lr=0.1)
    optimizer.zero_grad()
    assert x.grad is None


def test_001_gradients_are_kept_for_leaves_only(T):
    x = T.tensor(2.0, requires_grad=True)
    y, kept = x * 3, x * 5
    kept.retain_grad()
    (y * kept).backward()
    assert (x.grad.item(), kept.grad.item()) == (60.0, 6.0)
    with pytest.warns(UserWarning, match=r"^The .grad attribute of a Tensor that is not a leaf"):
        assert y.grad is None


# Why is the backwards() function failing? -------------------------------------------------------------------


def test_002_detached(T):
    x = T.randn(3, requires_grad=True)
    y = x * 2
    z = y.detach()
    w = z + 3
    with pytest.raises(RuntimeError, match=NO_GRAD_FN):  # not "a second time", as the document says
        w.backward()
    (w * x).sum().backward()  # otherwise a detached tensor is a constant
    assert x.grad.tolist() == w.tolist()


def test_002_nothing_requires_grad(T):
    x = T.randn(3)
    y = x * 2
    assert (x.requires_grad, y.requires_grad) == (False, False)
    with pytest.raises(RuntimeError, match=NO_GRAD_FN):
        y.backward()
    leaf = T.randn(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"^One of the differentiated Tensors does not require grad"):
        T.autograd.grad(leaf.sum(), x)


def test_002_in_place(T):
    x = T.randn(3, requires_grad=True)
    y = x * 2
    y += 1
    loss = y.sum()
    loss.backward()  # never raises
    assert x.grad.tolist() == [2, 2, 2]
    for _ in range(3):  # reproducibly raises
        y = x.exp()
        y += 1
        with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
            y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_002_two_backward_calls(T):
    x = T.randn(3, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=SECOND):
        y.backward()
    assert (type(y.grad_fn).__name__, y.is_leaf) == ("SumBackward0", False)  # it is still a result
    assert x.grad.tolist() == (2 * x).tolist()


def test_002_several_losses(T):
    x = T.tensor([1.0, 2.0], requires_grad=True)
    assert x.grad is None  # nothing need be accumulated before
    (x.sum() + (x * x).sum()).backward()
    assert x.grad.tolist() == [3, 5]


def test_002_what_functions_make(T):
    x = T.randn(2, requires_grad=True)
    made = [T.zeros_like(x), T.ones_like(x), x.new_zeros(2), x * 1]
    assert [t.requires_grad for t in made] == [False, False, False, True]


def test_002_types(T):
    x = T.ones(2, 2, dtype=T.float32, requires_grad=True)
    y = T.full((2, 2), 3.0, dtype=T.float64)
    (x * y).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (T.float32, [[3, 3], [3, 3]])
    with pytest.raises(RuntimeError, match=r"^expected m1 and m2 to have the same dtype, but got: float != double"):
        x @ y


def test_002_title(T):
    assert not hasattr(T.ones(1), "backwards")


# Understanding backward() in PyTorch ------------------------------------------------------------------------


@pytest.mark.filterwarnings(IGNORE_GRAD_OF_RESULT)
def test_003_simplicity(T):
    x = T.tensor([[0.695536]], requires_grad=True)
    y = 2 * x
    z = y**3
    assert [shown(t) for t in (x, y, z)] == [
        "tensor([[0.6955]], requires_grad=True)",
        "tensor([[1.3911]], grad_fn=<MulBackward0>)",
        "tensor([[2.6918]], grad_fn=<PowBackward0>)",
    ]
    z.backward()
    assert (z.grad, y.grad, shown(x.grad), x.grad.requires_grad) == (None, None, "tensor([[11.6105]])", False)


@pytest.mark.filterwarnings(IGNORE_GRAD_OF_RESULT)
def test_003_grad_tensors(T):
    x = T.tensor([[0.720729]], requires_grad=True)
    assert shown(x) == "tensor([[0.7207]], requires_grad=True)"
    y = 2 * x
    z = y**3
    z.backward(retain_graph=True)
    assert (z.grad, y.grad, shown(x.grad)) == (None, None, "tensor([[12.4668]])")
    for gradient, printed in [
        (T.Tensor([[1]]), "tensor([[12.4668]])"),
        (T.Tensor([[0.1]]), "tensor([[1.2467]])"),
        (T.FloatTensor([[0.5]]), "tensor([[6.2334]])"),
        (T.FloatTensor([[0]]), "tensor([[0.]])"),  # not the default, as the document says
    ]:
        x.grad.data.zero_()
        z.backward(gradient, retain_graph=True)
        assert (z.grad, y.grad, shown(x.grad)) == (None, None, printed)
    T.autograd.backward(z, grad_tensors=[T.Tensor([[1]])], retain_graph=True)
    assert shown(x.grad) == "tensor([[12.4668]])"


def test_003_elementwise(T):
    x = T.tensor([[2.521183, 1.273031], [0.036629, 0.074972]], requires_grad=True)
    assert shown(x) == "tensor([[2.5212, 1.2730], [0.0366, 0.0750]], requires_grad=True)"
    y = 2 * x
    z = y**3
    assert tuple(z.size()) == (2, 2)
    z.backward(T.FloatTensor([[1, 1], [1, 1]]), retain_graph=True)
    assert shown(x.grad) == "tensor([[1.5255e+02, 3.8895e+01], [3.2200e-02, 1.3490e-01]])"
    assert [f"{value:.4f}" for value in x.grad.reshape(4).tolist()] == ["152.5527", "38.8946", "0.0322", "0.1349"]
    for gradient, printed in [
        ([[0, 1], [0, 1]], ["0.0000", "38.8946", "0.0000", "0.1349"]),
        ([[1, 1], [0, 0]], ["152.5527", "38.8946", "0.0000", "0.0000"]),
    ]:
        x.grad.data.zero_()
        z.backward(T.FloatTensor(gradient), retain_graph=True)
        assert [f"{value:.4f}" for value in x.grad.reshape(4).tolist()] == printed


# The text lost the minus signs of the inputs; as it prints them the means are others.
MEANS = [
    ([1.852792, 0.208327, -1.529568, 0.313661], 5.6434, [20.5970, 0.2604, 14.0375, 0.5903]),
    ([-0.745240, 1.572652, 0.170196, 0.737371], 7.7630, [3.3323, 14.8394, 0.1738, 3.2623]),
    ([1.8528, 0.2083, 1.5296, 0.3136], 19.9581, [20.5972, 0.2603, 14.0381, 0.5901]),
    ([0.7452, 1.5727, 0.1702, 0.7374], 9.4192, [3.3319, 14.8403, 0.1738, 3.2626]),
]


@pytest.mark.parametrize(("values", "mean", "gradient"), MEANS)
def test_003_mean(T, values, mean, gradient):
    x = T.tensor([values[:2], values[2:]], requires_grad=True)
    y = 2 * x
    z = y**3
    out = z.mean()
    assert shown(out) == f"tensor({mean:.4f}, grad_fn=<MeanBackward0>)"
    out.backward(retain_graph=True)
    assert [round(value, 4) for value in x.grad.reshape(4).tolist()] == gradient
    x.grad.data.zero_()
    with pytest.raises(RuntimeError, match=r"^Mismatch in shape: grad_output\[0\] has a shape of .*\[2, 2\]") as caught:
        out.backward(T.FloatTensor([[1, 1], [1, 1]]), retain_graph=True)
    assert "and output[0] has a shape of " in str(caught.value)
    assert x.grad.tolist() == [[0, 0], [0, 0]]
    out.backward(T.tensor(1.0))  # a gradient of the right shape is welcome
    assert [round(value, 4) for value in x.grad.reshape(4).tolist()] == gradient
    x.grad.data.zero_()
    with pytest.raises(RuntimeError, match=SECOND) as caught:
        out.backward()
    assert "Specify retain_graph=True if you need to backward through the graph a second time" in str(caught.value)
    assert x.grad.tolist() == [[0, 0], [0, 0]]


def test_003_hooks_and_intermediate_gradients(T):
    x = T.tensor([[0.695536]], requires_grad=True)
    y = 2 * x
    z = y**3
    seen = []
    y.register_hook(seen.append)
    z.backward(retain_graph=True)
    assert [f"{g.item():.4f}" for g in seen] == ["5.8052"]
    for result in (y, z):
        with pytest.warns(UserWarning, match=r"^The .grad attribute of a Tensor that is not a leaf"):
            assert result.grad is None
    y.retain_grad()
    z.backward()
    assert f"{y.grad.item():.4f}" == "5.8052"


def test_003_old_names(T):
    x = T.randn(1, 1, requires_grad=True)
    with pytest.raises(TypeError, match="retain_variables"):
        (x * 2).backward(retain_variables=True)
    with pytest.raises(TypeError, match="require_grad"):
        T.randn(1, 1, require_grad=True)
    assert x.grad is None
