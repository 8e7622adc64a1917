"""Calls of a `Function` in compiled code: what they leave to Python, and what they leave behind."""

import gc
import weakref

import pytest

import tapegrad as tg
from tapegrad import modes
from tapegrad.autograd.function import Function
from tests.several_threads import in_threads


def scaled(forward=None, backward=None):
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x, k=2.0):
            ctx.save_for_backward(x)
            ctx.k = k
            return x * k if forward is None else forward(x)

        @staticmethod
        def backward(ctx, grad):
            (_,) = ctx.saved_tensors
            return grad * ctx.k if backward is None else backward(grad), None

    return Scaled


def leaf(*values):
    return tg.tensor(list(values), requires_grad=True)


def served(function):
    """Return how many calls of Python record or start the calls of a `Function` from now on, as a list that grows."""
    seen = []
    for name in ("_run", "_recorded"):
        inner = getattr(function, name)
        setattr(function, name, lambda *args, inner=inner, name=name: (seen.append(name), inner(*args))[1])
    return seen


@pytest.fixture
def no_pass_modes():
    """Let no mode of passes count as used before: while one does, Python serves all calls."""
    noted = modes.mode.value & modes.PASS_MODES
    modes.mode.value &= ~modes.PASS_MODES
    yield
    modes.mode.value |= noted


@pytest.mark.usefixtures("no_pass_modes")
def test_known_calls_need_no_python():
    function = scaled()
    apply, seen = function.apply, served(function)  # as programs do: ``relu = ReLU.apply``
    x = leaf(1.0, 2.0)
    for _ in range(3):
        x.grad = None
        (apply(x, 3.0) * 1.0).sum().backward()
        assert x.grad.tolist() == [3, 3]
    assert seen == ["_recorded"]
    with tg.no_grad():
        assert not apply(x).requires_grad
    assert apply(x.detach()).grad_fn is None
    assert apply(x, k=4.0).tolist() == [4, 8]
    assert seen == ["_recorded", "_run", "_run", "_run", "_recorded"]


@pytest.mark.usefixtures("no_pass_modes")
def test_outputs_parameters_and_none_are_saved_without_python():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x, bias):
            out = x.exp()
            ctx.save_for_backward(out, x, bias, out)
            return out

        @staticmethod
        def backward(ctx, grad):
            out, x, bias, again = ctx.saved_tensors
            assert bias is None
            assert out.grad_fn is again.grad_fn is not None
            assert out.tolist() == again.tolist() == x.exp().tolist()
            return grad * out, None

    seen, x = served(Exp), tg.nn.Parameter(tg.tensor([0.0, 1.0]))
    for _ in range(3):
        x.grad = None
        y = Exp.apply(x, None)
        (slope,) = tg.autograd.grad(y.sum(), x, create_graph=True)
        slope.sum().backward()
        assert x.grad.tolist() == slope.tolist() == y.tolist()
    assert seen == ["_recorded"]
    node, y = weakref.ref(y), None
    assert node() is None  # it is no part of a cycle
    y = Exp.apply(x, None)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


MARKED = {  # what forward returns beside x * 2, and the gradients that backward gets for it
    "integers": (lambda lib, x: lib.tensor([1, 2]), [0, 0]),
    "floats": (lambda lib, x: x * 3, [0.0, 0.0]),
    "none": (lambda lib, x: None, None),
    "text": (lambda lib, x: "text", None),
}


@pytest.mark.usefixtures("no_pass_modes")
@pytest.mark.parametrize("materialize", [True, False])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("kind", MARKED)
def test_outputs_without_gradient_need_no_python(T, kind, place, materialize):
    make, expected = MARKED[kind]

    class Marked(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            other, rest = make(T, x), x * 5
            if isinstance(other, T.Tensor):
                ctx.mark_non_differentiable(other)
                ctx.save_for_backward(other)
            outputs = [x * 2, rest]
            outputs.insert(place, other)
            return tuple(outputs)

        @staticmethod
        def backward(ctx, *grads):
            grads = list(grads)
            given.append([None if grad is None else grad.tolist() for grad in grads])
            kept.append([tensor.tolist() for tensor in ctx.saved_tensors])
            assert not any(tensor.requires_grad for tensor in ctx.saved_tensors)
            del grads[place]
            return sum(grad * k for grad, k in zip(grads, (2, 5), strict=True) if grad is not None)

    seen = served(Marked) if T is tg else ["_recorded"]
    for used in ([0], [1], [0, 1]):
        given, kept = [], []
        for _ in range(2):
            x = T.tensor([1.0, 2.0], requires_grad=True)
            outputs = list(Marked.apply(x))
            other = outputs.pop(place)
            assert getattr(other, "grad_fn", None) is None
            assert [out.requires_grad for out in outputs] == [True, True]
            sum(outputs[number] for number in used).sum().backward()
            assert x.grad.tolist() == [2.0 * (0 in used) + 5.0 * (1 in used)] * 2
        gradients = [[1.0, 1.0] if number in used else [0.0, 0.0] if materialize else None for number in range(2)]
        gradients.insert(place, expected if materialize else None)
        assert given == [gradients] * 2
        assert kept == [[other.tolist()] if expected else []] * 2
    assert seen == ["_recorded"]


def test_many_outputs_of_which_few_have_gradients(T):
    class Many(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return tuple(x * k for k in range(n))

        @staticmethod
        def backward(ctx, *grads):
            seen.append([k for k, grad in enumerate(grads) if grad is not None])
            return sum(grad * k for k, grad in enumerate(grads) if grad is not None)

    for n in (3, 20, 70, 130):
        for _ in range(2):
            seen, x = [], T.ones(2, requires_grad=True)
            outputs = Many.apply(x)
            (outputs[n - 1] + outputs[1]).sum().backward()
            assert seen == [[1, n - 1]]
            assert x.grad.tolist() == [n, n]


@pytest.mark.usefixtures("no_pass_modes")
@pytest.mark.parametrize("forward", [lambda x: x, lambda x: x.view_as(x), lambda x: x.detach()])
def test_arguments_and_views_need_no_python(T, forward):
    class Reversed(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            out = forward(x)
            ctx.save_for_backward(x, out)
            return out

        @staticmethod
        def backward(ctx, grad):
            x, out = ctx.saved_tensors
            assert x.tolist() == out.tolist() == [1.0, 2.0]
            return -grad, None

    seen = served(Reversed) if T is tg else ["_recorded"]
    for _ in range(3):
        x = T.tensor([1.0, 2.0], requires_grad=True)
        out = Reversed.apply(x, 2.0)
        assert out is not x
        assert (out.grad_fn.name(), out.tolist(), x.grad_fn) == ("ReversedBackward", [1.0, 2.0], None)
        (out * 3).sum().backward()
        assert x.grad.tolist() == [-3.0, -3.0]
        leaf = T.ones(2, requires_grad=True)
        Reversed.apply(T.tensor([1.0, 2.0]) * leaf, 2.0).sum().backward()
        assert leaf.grad.tolist() == [-1.0, -2.0]
    assert seen in (["_recorded"], ["_recorded"] * 2)  # a leaf and a result differ in layout only if forward returns it


@pytest.mark.usefixtures("no_pass_modes")
@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_several_outputs_need_no_python(used, monkeypatch):
    class Both(Function):
        @staticmethod
        def forward(ctx, x, k):
            out = x.exp()
            ctx.save_for_backward(out, x)
            ctx.k = k
            return x * k, out

        @staticmethod
        def backward(ctx, first, second):
            out, _ = ctx.saved_tensors
            given.append((first.tolist(), second.tolist()))
            assert out.grad_fn is outputs[0].grad_fn is outputs[1].grad_fn
            return first * ctx.k + second * out, None

    given, seen, x = [], served(Both), leaf(0.0, 1.0)
    for _ in range(3):
        outputs = Both.apply(x, 3.0)
        loss = sum((number + 1.0) * outputs[number].sum() for number in used)
        loss.backward(retain_graph=True)
        wanted = 3.0 * (0 in used) + 2.0 * x.detach().exp() * (1 in used)
        assert x.grad.tolist() == wanted.tolist()
        x.grad = None
        assert given.pop() == ([float(0 in used)] * 2, [2.0 * (1 in used)] * 2)
        (slope,) = tg.autograd.grad(loss, x, create_graph=True)
        assert slope.tolist() == wanted.tolist()
        if 1 in used:
            assert tg.autograd.grad(slope.sum(), x)[0].tolist() == (2.0 * x.exp()).tolist()
        given.clear()
    assert seen == ["_recorded"]
    monkeypatch.setattr("tapegrad.autograd.function_rule._gradients", None)  # the rule in Python needs it
    outputs = Both.apply(x, 3.0)
    outputs[used[0]].sum().backward(retain_graph=True)
    outputs[0].mul_(2)  # which is not saved
    outputs[1].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        outputs[1].sum().backward()


@pytest.mark.parametrize("calls", [1, 3])
def test_an_error_of_the_user_leaves_the_mode(calls):
    def refuse(_):
        assert not tg.is_grad_enabled()
        raise ZeroDivisionError

    x = leaf(1.0, 2.0)
    for _ in range(calls):
        with pytest.raises(ZeroDivisionError):
            scaled(forward=refuse).apply(x)
        assert tg.is_grad_enabled()
    function = scaled(backward=refuse)
    for _ in range(calls):
        y = function.apply(x).sum()
        with pytest.raises(ZeroDivisionError):
            y.backward()
        assert tg.is_grad_enabled()
    assert x.grad is None


def test_a_forward_may_switch_recording_on():
    def record(x):
        tg.set_grad_enabled(True)
        return x * 5

    function, x, before = scaled(forward=record), leaf(1.0, 2.0), modes.mode.value
    for _ in range(3):
        assert function.apply(x).requires_grad
        assert modes.mode.value == before


def test_an_apply_of_the_users_own():
    function = scaled()
    plain = function.apply

    class Doubled(function):
        @staticmethod
        def forward(ctx, x):
            ctx.k = 3.0
            ctx.save_for_backward(x)
            return x * 3.0

        @classmethod
        def apply(cls, x):
            return super().apply(x) + super().apply(x)

    class Further(Doubled):
        pass

    class Other(function):
        pass

    for _ in range(3):
        assert Doubled.apply(leaf(1.0)).tolist() == Further.apply(leaf(1.0)).tolist() == [6]
        assert function.apply(leaf(1.0)).tolist() == plain(leaf(1.0)).tolist() == Other.apply(leaf(1.0)).tolist() == [2]


def test_a_class_dies():
    def make():
        function = scaled()
        return weakref.ref(function), function.apply

    function, apply = make()
    gc.collect()
    assert apply(tg.tensor([2.0])).tolist() == [4]  # the call keeps the class
    del apply
    gc.collect()
    assert function() is None


def test_what_backward_returns_is_checked():
    x = leaf(1.0, 2.0)
    for value, error in ((None, None), (lambda g: g[:1] * 1, RuntimeError), (lambda g: 5, RuntimeError)):
        function = scaled(backward=value)
        for _ in range(3):
            y = function.apply(x).sum()
            if error is None:
                y.backward()
            else:
                with pytest.raises(error):
                    y.backward()
    assert x.grad.tolist() == [6, 6]


def test_gradients_that_a_backward_keeps():
    kept, x = [], leaf(1.0, 2.0)

    def keep(grad):
        kept.append(grad)
        return grad

    for number in (1.0, 2.0, 3.0):
        scaled(backward=keep).apply(x).backward(tg.tensor([number, number]))
    assert [own.tolist() for own in kept] == [[1, 1], [2, 2], [3, 3]]
    assert x.grad.tolist() == [6, 6]


def test_stale_views_and_subclasses_are_operands():
    function, base, p = scaled(), leaf(1.0, 2.0) * 1.0, tg.nn.Parameter(tg.tensor([1.0, 2.0]))

    class Special(tg.nn.Parameter):
        pass

    view = base[:1]
    for _ in range(2):
        base.mul_(2.0)
        function.apply(view).sum().backward(retain_graph=True)
        function.apply(p).sum().backward()
        special = Special(tg.tensor([1.0]))
        function.apply(special).sum().backward()
        assert special.grad.tolist() == [2]
    assert p.grad.tolist() == [4, 4]


def test_two_threads():
    function = scaled()

    def work(number):
        x = leaf(1.0, 2.0)
        for _ in range(300):
            x.grad = None
            function.apply(x).sum().backward()
            assert x.grad.tolist() == [2, 2]
            assert tg.is_grad_enabled()

    in_threads(3, work)
    assert not modes.mode.value & modes.DISABLED


@pytest.mark.parametrize("forward", [lambda x: x, lambda x: x.view_as(x), lambda x: x[:2]])
def test_outputs_that_show_an_input(T, forward):
    """A write to such an output, or to its input, would make it a plain view, without the function's backward."""

    class Reversed(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return forward(x)

        @staticmethod
        def backward(ctx, grad):
            return T.cat([-grad, grad.new_zeros(3 - len(grad))])

    x = T.ones(3, requires_grad=True)
    for _ in range(2):  # by Python, then by compiled code
        for leaf in (x, x * 1):
            out = Reversed.apply(leaf)
            for write in (lambda out=out: out.mul_(2), lambda out=out: out[:1].zero_()):
                with pytest.raises(RuntimeError, match=r"^Output 0 of \w+ is a view and is being modified inplace"):
                    write()
            assert (out.tolist(), leaf.tolist(), leaf._version) == ([1.0] * len(out), [1.0] * 3, 0)
        leaf, other = x * 1, T.zeros(3)
        out = Reversed.apply(leaf)
        leaf.mul_(2)
        assert (out.requires_grad, out.detach().tolist()) == (True, [2.0] * len(out))
        with pytest.raises(
            RuntimeError, match=r"^Output 0 of Reversed is a view and its base or another view of its b"
        ):
            T.autograd.grad(out.sum(), x)
        assert T.autograd.grad(leaf.sum(), x)[0].tolist() == [2.0] * 3
        with T.no_grad():
            out = Reversed.apply(other)
            out += 1
        assert other[0] == 1


def test_outputs_that_show_parts_of_an_input(T):
    class Halves(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1], x[1:]

        @staticmethod
        def backward(ctx, *grads):
            return T.cat(grads) * 3

    x = T.ones(3, requires_grad=True)
    first, second = Halves.apply(x * 1)
    with pytest.raises(RuntimeError, match=r"^Output 0 of Halves is a view .* returns multiple views"):
        first.mul_(2)
    assert T.autograd.grad((first.sum() + second.sum()), x)[0].tolist() == [3.0] * 3
