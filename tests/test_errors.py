"""Bad input: PyTorch's exception and first words, and afterwards the tape and all gradients as before.

Each case runs on tapegrad and, where it is installed, on PyTorch, so that the words are PyTorch's own.
"""

import copy
import operator
import re

import numpy as np
import pytest

import tapegrad

SCALARS = "grad can be implicitly created only for scalar outputs"
SHAPES = "Mismatch in shape: grad_output[{0}] has a shape of ...[{1}]... and output[{0}] has a shape of ...[{2}]..."
NO_GRAD_FN = "element {} of tensors does not require grad and does not have a grad_fn"
SECOND = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)
BATCHED = (
    "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The "
    "sizes of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was "
    "detected: "
)
MEAN = "mean(): could not infer output dtype. ..."
FLOATING = "nly Tensors of floating point and complex dtype can require gradients"
FLAGS = (
    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph "
    "that doesn't require differentiation use var_no_grad = var.detach()."
)
LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
VIEW = "a view of a leaf Variable that requires grad is being used in an in-place operation."
MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation: ["


class World:
    """Tensors of one library: a leaf with a gradient, a graph, and what the cases need."""

    def __init__(self, lib):
        self.T = lib
        self.x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
        self.x.grad = self.grad = lib.tensor([10.0, 20.0, 30.0])
        self.other = lib.tensor(1.0, requires_grad=True)
        self.c = lib.tensor([1.0, 2.0, 3.0])
        self.k = lib.tensor([1, 2])
        self.h = self.x * 2
        self.y = self.h * self.h
        self.loss = self.y.sum()
        self.freed = self.x.exp().sum()
        lib.autograd.grad(self.freed, self.x)
        self.written = self.x.exp()
        with lib.no_grad():
            self.written += 1
        self.back, self.slope, self.ones = lib.autograd.backward, lib.autograd.grad, lib.ones

    def check(self):
        """Whatever failed, nothing has changed and the graph still works."""
        x = self.x
        assert x.grad is self.grad
        assert (self.c.grad, self.other.grad, self.k.tolist()) == (None, None, [1, 2])
        assert (x.tolist(), self.c.tolist(), x.grad.tolist()) == ([1, 2, 3], [1, 2, 3], [10, 20, 30])
        assert (x.requires_grad, x.is_leaf, self.c.requires_grad, self.h.is_leaf) == (True, True, False, False)
        assert self.T.is_grad_enabled()
        if self.T is tapegrad:
            for root in (self.loss, self.h, self.freed, self.written):
                root.tape().verify()
        self.loss.backward()
        assert x.grad is self.grad
        assert x.grad.tolist() == [10 + 8, 20 + 16, 30 + 24]


# name: (call, exception, words). In words, "..." stands for what differs between the two or between calls.
AUTOGRAD = {
    "vector": (lambda w: w.y.backward(), RuntimeError, SCALARS),
    "no element": (lambda w: w.y[:0].backward(), RuntimeError, SCALARS),
    "grad of a vector": (lambda w: w.slope(w.y, w.x), RuntimeError, SCALARS),
    "second of two a vector": (lambda w: w.back([w.loss, w.y]), RuntimeError, SCALARS),
    "complex root": (lambda w: (w.x * 1j).sum().backward(), RuntimeError,
                     "grad can be implicitly created only for real scalar outputs but got ...complex128"),
    "constant root": (lambda w: w.c.backward(), RuntimeError, NO_GRAD_FN.format(0)),
    "root of another dtype": (lambda w: (w.x > 1).sum().backward(), RuntimeError, NO_GRAD_FN.format(0)),
    "second of two constant": (lambda w: w.back([w.loss, w.c.sum()]), RuntimeError, NO_GRAD_FN.format(1)),
    "ct of (2, 2) for ()": (lambda w: w.loss.backward(w.ones(2, 2)), RuntimeError, SHAPES.format(0, "2, 2", "")),
    "ct of (1,) for ()": (lambda w: w.loss.backward(w.ones(1)), RuntimeError, SHAPES.format(0, "1", "")),
    "ct of () for (1,)": (lambda w: w.y[:1].backward(w.ones(())), RuntimeError, SHAPES.format(0, "", "1")),
    "ct of (1, 3) for (3,)": (lambda w: w.y.backward(w.ones(1, 3)), RuntimeError, SHAPES.format(0, "1, 3", "3")),
    "ct of (0,) for (3,)": (lambda w: w.y.backward(w.ones(0)), RuntimeError, SHAPES.format(0, "0", "3")),
    "ct of a leaf": (lambda w: w.other.backward(w.ones(3)), RuntimeError, SHAPES.format(0, "3", "")),
    "ct a list": (lambda w: w.back(w.loss, [1.0]), TypeError, "gradients can be either Tensors or None, but got float"),
    "ct a number": (lambda w: w.loss.backward(2.0), TypeError, "'float' object is not iterable"),
    "too few cts": (lambda w: w.back([w.loss, w.loss], [w.ones(())]), RuntimeError, "got 2 tensors and 1 gradients"),
    "second backward": (lambda w: w.freed.backward(), RuntimeError, SECOND),
    "behind a second backward": (lambda w: w.slope(w.freed * 2, w.x), RuntimeError, SECOND),
    "written to": (lambda w: w.written.sum().backward(), RuntimeError, MODIFIED),
    "no inputs": (lambda w: w.loss.backward(inputs=[]), RuntimeError,
                  "`inputs` argument to `backward()` cannot be empty."),
    "grad: no inputs": (lambda w: w.slope(w.loss, []), RuntimeError, "`inputs` argument to `grad()` cannot be empty."),
    "constant input": (lambda w: w.slope(w.loss, [w.x, w.c], allow_unused=True), RuntimeError,
                       "One of the differentiated Tensors does not require grad"),
    "unused input": (lambda w: w.slope(w.loss, [w.x, w.other], retain_graph=True), RuntimeError,
                     ("The differentiated Tensor at index 1 appears to not have been used in the graph. Set "
                     "allow_unused=True if this is the desired behavior.")),
    "unused, materialized": (lambda w: w.slope(w.loss, w.x, allow_unused=False, materialize_grads=True), ValueError,
                             ("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                             "allow_unused=False.")),
    "batched": (lambda w: w.slope(w.y, w.x, w.ones(2, 2), is_grads_batched=True), RuntimeError, BATCHED),
    "unknown argument": (lambda w: w.loss.backward(retain=True), TypeError, "...unexpected keyword argument 'retain'"),
    "hook on a constant": (lambda w: w.c.register_hook(print), RuntimeError,
                           "cannot register a hook on a tensor that doesn't require gradient"),
    "retain_grad of a constant": (lambda w: w.c.retain_grad(), RuntimeError,
                                  "can't retain_grad on Tensor that has requires_grad=False"),
    "post-accumulate hook": (lambda w: w.h.register_post_accumulate_grad_hook(print), RuntimeError,
                             "post accumulate grad hooks cannot be registered on non-leaf tensors"),
}  # fmt: skip

TENSORS = {
    "integers": (lambda w: w.T.tensor([1, 2], requires_grad=True), RuntimeError, f"O{FLOATING}"),
    "integers made": (lambda w: w.T.ones(2, dtype=w.T.int64, requires_grad=True), RuntimeError, f"O{FLOATING}"),
    "flag of integers": (lambda w: setattr(w.k, "requires_grad", True), RuntimeError, f"o{FLOATING}"),
    "requires_grad_ of integers": (lambda w: w.k.requires_grad_(), RuntimeError,
                                   "only Tensors of floating point dtype can require gradients"),
    "flag of a result": (lambda w: setattr(w.h, "requires_grad", False), RuntimeError, FLAGS),
    "requires_grad_ of a result": (lambda w: w.h.requires_grad_(False), RuntimeError, FLAGS),
    "grad of another shape": (lambda w: setattr(w.x, "grad", w.ones(2)), RuntimeError,
                              ("attempting to assign a gradient of size '[2]' to a tensor of size '[3]'. Please ensure "
                              "that the gradient and the tensor are the same size")),
    "grad of another dtype": (lambda w: setattr(w.x, "grad", w.ones(3, dtype=w.T.float32)), RuntimeError,
                              "attempting to assign a gradient with dtype 'float' to a tensor with grad_dtype 'D..."),
    "grad no tensor": (lambda w: setattr(w.x, "grad", 1.0), TypeError,
                       "assigned grad expected to be a Tensor or None but got grad of type ...float"),
    "own grad": (lambda w: setattr(w.x, "grad", w.x), RuntimeError, "can't assign Variable as its own grad"),
    "data no tensor": (lambda w: setattr(w.x, "data", 1.0), TypeError,
                       "Variable data has to be a tensor, but got float"),
    "deepcopy": (lambda w: copy.deepcopy(w.h), RuntimeError, ("Only Tensors created explicitly by the user (graph "
                 "leaves) support the deepcopy protocol at the moment.")),
    "numpy": (lambda w: w.h.numpy(), RuntimeError, ("Can't call numpy() on Tensor that requires grad. Use "
              "tensor.detach().numpy() instead.")),
    "asarray": (lambda w: np.asarray(w.x), RuntimeError, "Can't call numpy() on Tensor that requires grad."),
    "item": (lambda w: w.x.item(), RuntimeError, "a Tensor with 3 elements cannot be converted to Scalar"),
    "item of nothing": (lambda w: w.x[:0].item(), RuntimeError,
                        "a Tensor with 0 elements cannot be converted to Scalar"),
    "bool": (lambda w: bool(w.x), RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
    "bool of nothing": (lambda w: bool(w.x[:0]), RuntimeError, "Boolean value of Tensor with no values is ambiguous"),
    "len": (lambda w: len(w.loss), TypeError, "len() of a 0-d tensor"),
    "iter": (lambda w: iter(w.loss), TypeError, "iteration over a 0-d tensor"),
    "index by a float": (lambda w: operator.index(w.c[0]), TypeError,
                         "only integer tensors of a single element can be converted to an index"),
    "leaf.add_": (lambda w: w.x.add_(1), RuntimeError, LEAF),
    "leaf.zero_": (lambda w: w.x.zero_(), RuntimeError, LEAF),
    "leaf +=": (lambda w: operator.iadd(w.x, 1), RuntimeError, LEAF),
    "leaf[0] =": (lambda w: operator.setitem(w.x, 0, 5.0), RuntimeError, VIEW),
    "view of a leaf": (lambda w: w.x.view(3, 1).mul_(2), RuntimeError, VIEW),
    "slice of a leaf": (lambda w: w.x[1:].zero_(), RuntimeError, VIEW),
    "in-place shape": (lambda w: w.c.add_(w.ones(2, 3)), RuntimeError,
                       "output with shape [3] doesn't match the broadcast shape [2, 3]"),
    "in-place dtype": (lambda w: w.k.add_(1.5), RuntimeError,
                       "result type Double can't be cast to the desired output type Long"),
    "in-place dtype, +=": (lambda w: operator.iadd(w.k, w.x[0]), RuntimeError,
                           "result type Double can't be cast to the desired output type Long"),
    "in-place overlap": (lambda w: w.ones(1).expand(3).add_(1), RuntimeError,
                         ("unsupported operation: more than one element of the written-to tensor refers to a single "
                         "memory location. Please clone() the tensor before performing the operation.")),
    "detach_ of a view": (lambda w: w.h[:1].detach_(), RuntimeError,
                          "Can't detach views in-place. Use detach() instead."),
    "value for an index": (lambda w: operator.setitem(w.c, slice(2), w.ones(3)), RuntimeError,
                           "The expanded size of the tensor (2) must match the existing size (3) at non-singleton "),
}  # fmt: skip

SHAPED = {
    "broadcast": (lambda w: w.x + w.ones(2), RuntimeError,
                  "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0"),
    "reshape": (lambda w: w.x.reshape(2, 2), RuntimeError, "shape '[2, 2]' is invalid for input of size 3"),
    "view": (lambda w: w.ones(2, 3).t().view(6), RuntimeError,
             "view size is not compatible with input tensor's size and stride"),
    "expand": (lambda w: w.x.expand(2, 4), RuntimeError, ("The expanded size of the tensor (4) must match the existing "
               "size (3) at non-singleton dimension 1.")),
    "matmul": (lambda w: w.ones(2, 2) @ w.ones(1, 3), RuntimeError,
               "mat1 and mat2 shapes cannot be multiplied (2x2 and 1x3)"),
    "matmul dtype": (lambda w: w.ones(2, 2) @ w.ones(2, 2, dtype=w.T.float32), RuntimeError,
                     "expected m1 and m2 to have the same dtype, but got: double != float"),
    "cat": (lambda w: w.T.cat([w.ones(2, 2), w.ones(3, 3)]), RuntimeError, ("Sizes of tensors must match except in "
            "dimension 0. Expected size 2 but got size 3 for tensor number 1 in the list.")),
    "stack": (lambda w: w.T.stack([w.ones(2), w.ones(3)]), RuntimeError,
              "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1"),
    "index": (lambda w: w.x[3], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    "index below": (lambda w: w.x[-4], IndexError, "index -4 is out of bounds for dimension 0 with size 3"),
    "too many indices": (lambda w: w.x[0, 0], IndexError, "too many indices for tensor of dimension 1"),
    "dim": (lambda w: w.x.sum(1), IndexError,
            "Dimension out of range (expected to be in range of [-1, 0], but got 1)"),
    "max of nothing": (lambda w: w.x[:0].max(), RuntimeError, ("max(): Expected reduction dim to be specified for "
                       "input.numel() == 0. Specify the reduction dim with the 'dim' argument.")),
    "mean of integers": (lambda w: w.T.tensor([1, 2]).mean(), RuntimeError, MEAN),
    "mean of truth values by rows": (lambda w: (w.x > 1).mean(0), RuntimeError, MEAN),
    "mean as integers": (lambda w: w.x.mean(dtype=w.T.int64), RuntimeError, MEAN),
    "losses of a list": (lambda w: w.T.nn.functional.nll_loss([[1.0]], w.T.tensor([0])), TypeError,
                         "nll_loss...(): argument 'input' (position 1) must be Tensor, not list"),
    "losses by a list of classes": (lambda w: w.T.nn.functional.nll_loss(w.x.detach().reshape(1, -1), [0]), TypeError,
                                    "nll_loss...(): argument 'target' (position 2) must be Tensor, not list"),
    "add a list in place": (lambda w: w.x.detach().add_([1.0]), TypeError,
                            "add_(): argument 'other' (position 1) must be Tensor, not list"),
    "subtract twice a list in place": (lambda w: w.x.detach().sub_([1.0], alpha=2), TypeError,
                                       "sub_(): argument 'other' (position 1) must be Tensor, not list"),
    "ragged": (lambda w: w.T.tensor([[1.0], [2.0, 3.0]]), ValueError, "expected sequence of length 1 at dim 1 (got 2)"),
    "text": (lambda w: w.T.tensor("a"), TypeError, "...invalid data type 'str'"),
    "text operand": (lambda w: w.x + "a", TypeError, "..."),
    "None operand": (lambda w: w.x * None, TypeError, "..."),
    "object operand": (lambda w: object() - w.x, TypeError, "..."),
    "list": (lambda w: w.T.sin([1.0]), TypeError, "sin(): argument 'input' (position 1) must be Tensor, not list"),
    "from_numpy": (lambda w: w.T.from_numpy([1.0]), TypeError, "expected np.ndarray (got list)"),
    "negative size": (lambda w: w.ones(2, -1), RuntimeError,
                      "Trying to create tensor with negative dimension -1: [2, -1]"),
    "default dtype": (lambda w: w.T.set_default_dtype(w.T.int64), TypeError,
                      "only floating-point types are supported as the default type"),
}  # fmt: skip

# PyTorch lets these pass, has another exception, or has changed gradients or freed the graph before it notices.
OWN = {
    "second of two freed": (lambda w: w.back([w.other * 2, w.freed]), RuntimeError, SECOND),
    "unused input, not retained": (lambda w: w.slope(w.loss, [w.x, w.other]), RuntimeError,
                                   "The differentiated Tensor at index 1 appears to not have been used in the graph."),
    "constant in inputs": (lambda w: w.loss.backward(inputs=[w.c]), RuntimeError,
                           "One of the differentiated Tensors does not require grad"),
    "integer ct": (lambda w: w.loss.backward(w.T.tensor(1)), TypeError,
                   "gradients must be of floating point or complex"),
    "too many cts": (lambda w: w.back([w.loss], [w.ones(()), None]), RuntimeError, "got 1 tensors and 2 gradients"),
    "root no tensor": (lambda w: w.back([w.loss, 1.0]), TypeError,
                       "backward(): argument 'tensors' (position 1) must be"),
    "input no tensor": (lambda w: w.slope(w.loss, [w.x, "x"]), TypeError,
                        "grad(): argument 'inputs' (position 1) must be"),
    "float() of many": (lambda w: float(w.x), tapegrad.errors.ConversionError, "only one element tensors can be"),
    "numpy without derivative": (lambda w: np.spacing(w.x), TypeError, "np.spacing does not work on tensors"),
    "ufunc out=": (lambda w: np.sin(w.x, out=np.zeros(3)), RuntimeError, ("np.sin(): functions with out=... arguments "
                   "don't support automatic differentiation, but one of the arguments requires grad.")),
}  # fmt: skip


def fails(w, call, error, words):
    with pytest.raises(error) as caught:
        call(w)
    pattern = ".*".join(map(re.escape, words.split("...")))
    assert re.match(pattern, str(caught.value), re.DOTALL), str(caught.value)
    w.check()
    return str(caught.value)


@pytest.mark.parametrize("name", [*AUTOGRAD, *TENSORS, *SHAPED])
def test_bad_input(T, name):
    call, error, words = {**AUTOGRAD, **TENSORS, **SHAPED}[name]
    fails(World(T), call, error, words)


@pytest.mark.parametrize("name", OWN)
def test_bad_input_of_ours(name):
    fails(World(tapegrad), *OWN[name])


HELP = {
    "vector": "sum()", "constant root": "requires_grad=True", "ct of (1,) for ()": "output's shape",
    "ct a list": "tapegrad.tensor(...)", "written to": "clone()", "second backward": "entry",
    "constant input": "input 1", "hook on a constant": "requires_grad=True", "too few cts": "one for each",
    "retain_grad of a constant": "requires_grad=True", "post-accumulate hook": "register_hook()",
}  # fmt: skip


@pytest.mark.parametrize("name", HELP)
def test_messages_go_on_with_what_helps(name):
    assert HELP[name] in fails(World(tapegrad), *AUTOGRAD[name])


def test_several_errors_in_a_row(T):
    w = World(T)
    for call, error, _ in [*AUTOGRAD.values(), *TENSORS.values()]:
        with pytest.raises(error):
            call(w)
    w.check()


# Not errors -------------------------------------------------------------------------------------------------


def test_empty_tensors(T):
    x = T.zeros(0, 3, requires_grad=True)
    y = (x * 2 + 1).exp().sum()
    y.backward()
    assert (y.item(), tuple(x.grad.shape)) == (0, (0, 3))
    (x @ T.ones(3, 2)).sum().backward()
    T.cat([x, x]).backward(T.ones(0, 3))
    assert tuple(x.grad.shape) == (0, 3)
    one = T.ones(1, requires_grad=True)
    (x[:, :1] * one).sum().backward()
    assert one.grad.tolist() == [0]


def test_nan_and_inf(T):
    x = T.tensor([float("nan"), float("inf"), -float("inf"), 0.0], requires_grad=True)
    y = x * 2 + x.detach()
    y.backward(T.tensor([1.0, float("nan"), float("inf"), -0.0]))
    assert str(x.grad.tolist()) == "[2.0, nan, inf, -0.0]"
    z = T.tensor([0.0, 1.0], requires_grad=True)
    T.where(z > 0, T.sqrt(z), z * 0).sum().backward()  # the slope of the other branch is infinite
    assert str(z.grad.tolist()) == "[nan, 0.5]"
    (root,) = T.autograd.grad(T.sqrt(z).sum(), z)
    assert root.tolist() == [float("inf"), 0.5]


def test_the_number_of_an_argument_is_named():
    with pytest.raises(TypeError, match=r"addbmm\(\): argument 'batch2' \(position 3\)"):
        tapegrad.addbmm(tapegrad.ones(1), tapegrad.ones(2, 1, 3), "text")
    with pytest.raises(TypeError, match=r"addbmm\(\): argument 'batch1' \(position 2\)"):
        tapegrad.addbmm(tapegrad.ones(1), "text", tapegrad.ones(2, 1, 3))


@pytest.mark.parametrize("name", ["weight", "bias"])
def test_weights_of_a_layer_norm_have_its_shape(name):
    words = rf"Expected {name} to be of same shape as normalized_shape, but got {name} of shape \[2\]"
    with pytest.raises(RuntimeError, match=words):
        tapegrad.nn.functional.layer_norm(tapegrad.ones(2, 3), (3,), **{name: tapegrad.ones(2)})


def test_windows_are_not_of_all_dtypes():
    pool = tapegrad.nn.functional.avg_pool2d
    assert pool(tapegrad.ones(1, 1, 4, 4, dtype=tapegrad.int64), 2).dtype == np.int64
    for dtype in (tapegrad.int32, tapegrad.bool):
        with pytest.raises(NotImplementedError, match='"avg_pool2d" not implemented for'):
            pool(tapegrad.ones(1, 1, 4, 4, dtype=dtype), 2)
    with pytest.raises(NotImplementedError, match='"max_pool2d" not implemented for'):
        tapegrad.nn.functional.max_pool2d(tapegrad.ones(1, 1, 4, 4, dtype=tapegrad.bool), 2)
