"""Module: members, names, state, hooks, modes and errors, the same programs on torch and on tapegrad."""

from __future__ import annotations

import copy
import gc
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _double() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def fill(module: Any) -> Any:
    """Give parameters numbers that both libraries have."""
    for place, param in enumerate(module.parameters()):
        values = np.sin(np.arange(param.numel()) + place).reshape(tuple(param.shape))
        param.data = (tg if isinstance(param, tg.Tensor) else torch).tensor(values)
    return module


def plain(value: Any) -> Any:
    """Return results of a program in a form that both libraries share."""
    if isinstance(value, (tg.Tensor, torch.Tensor)):
        kind = "P" if isinstance(value, (tg.nn.Parameter, torch.nn.Parameter)) else "T"
        return (
            kind,
            str(value.dtype).removeprefix("torch."),
            value.requires_grad,
            np.asarray(value.tolist()).round(9).tolist(),
        )
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)) or type(value).__name__ in ("dict_keys", "odict_keys"):
        return [plain(one) for one in value]
    return value


def outcome(program: Any, one: Any) -> Any:
    try:
        return plain(program(one))
    except Exception as error:
        words = str(error.args[0]) if error.args else ""
        return type(error), words.replace("tapegrad.nn", "torch.nn")


def net(one: Any) -> Any:
    nn = one.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(one.ones(2))
            self.register_buffer("count", one.zeros(1))
            self.register_buffer("cache", one.ones(1), persistent=False)
            self.register_parameter("nothing", None)
            self.fc = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.fc(x) * self.scale + self.count

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.block = Block()
            self.many = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
            self.tied = self.first

        def forward(self, x: Any, times: int = 1) -> Any:
            x = self.block(self.first(x)) * times
            for layer in self.many:
                x = layer(x)
            return self.tied(x)

    return fill(Net())


def assign(module: Any, name: str, value: Any) -> Any:
    setattr(module, name, value)
    return [*module.state_dict()], repr(module)


def changed(module: Any, change: Any) -> Any:
    change(module)
    return [
        [name for name, _ in module.named_parameters()], [name for name, _ in module.named_buffers()],
        [name for name, _ in module.named_modules()], repr(module), [*module.state_dict()],
    ]  # fmt: skip


def wrapper(one: Any) -> Any:
    class Wrapper(one.nn.Module):
        def __init__(self, module: Any) -> None:
            super().__init__()
            self.module = module

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.module, name)

    inside = fill(one.nn.Linear(2, 2))
    return Wrapper(inside).weight, Wrapper(inside).in_features, repr(Wrapper(inside)), hasattr(Wrapper(inside), "x")


def without_super(one: Any, value: Any) -> Any:
    class Bad(one.nn.Module):
        def __init__(self) -> None:
            self.x = value

    return Bad()


PROGRAMS = {
    "repr": lambda one: repr(net(one)),
    "state": lambda one: net(one).state_dict(),
    "state with prefix": lambda one: net(one).state_dict(prefix="model.", keep_vars=True),
    "names": lambda one: [
        list(dict(getattr(net(one), f"named_{kind}")())) for kind in ("parameters", "buffers", "modules", "children")
    ],
    "names again": lambda one: [
        [name for name, _ in getattr(net(one), f"named_{kind}")(remove_duplicate=False)]
        for kind in ("parameters", "modules")
    ],
    "names with prefix": lambda one: (
        [name for name, _ in net(one).named_parameters(prefix="a", recurse=False)]
        + [name for name, _ in net(one).block.named_parameters("b", recurse=False)]
    ),
    "parameters": lambda one: [list(net(one).parameters()), list(net(one).buffers()), len(list(net(one).modules()))],
    "call": lambda one: net(one)(one.ones(3, 2), times=2),
    "_parameters": lambda one: [
        list(net(one).block._parameters.items()),
        list(net(one).block._buffers),
        list(net(one)._modules),
    ],
    "_parameters written": lambda one: changed(net(one), lambda m: m.block._parameters.__setitem__("scale", None)),
    "get": lambda one: [
        net(one).get_parameter("block.fc.weight"),
        net(one).get_buffer("block.count"),
        repr(net(one).get_submodule("many.1")),
        net(one).get_submodule("") is not None,
    ],
    "get nothing": lambda one: net(one).get_parameter("block.fc.other"),
    "get a module": lambda one: net(one).get_parameter("block.fc"),
    "get a buffer": lambda one: net(one).get_buffer("block.scale"),
    "get no module": lambda one: net(one).get_submodule("block.scale"),
    "get a missing module": lambda one: net(one).get_submodule("block.a.b"),
    "train": lambda one: (
        [m.training for m in net(one).eval().modules()] + [m.training for m in net(one).eval().train().modules()]
    ),
    "train by a word": lambda one: net(one).train("yes"),
    "requires_grad_": lambda one: [p.requires_grad for p in net(one).requires_grad_(False).parameters()],
    "float": lambda one: net(one).float().state_dict(),
    "to": lambda one: [
        m.state_dict()
        for m in (
            net(one).to(one.float32),
            net(one).to(dtype=one.float32),
            net(one).to("cpu"),
            net(one).double(),
            net(one).to(one.ones(1).float()),
        )
    ],
    "to integers": lambda one: net(one).to(one.int64),
    "apply": lambda one: (lambda names, m: (m.apply(lambda own: names.append(type(own).__name__)), names)[1])(
        [], net(one)
    ),
    "add_module": lambda one: changed(net(one), lambda m: m.add_module("new", one.nn.ReLU())),
    "del a module": lambda one: changed(net(one), lambda m: delattr(m, "block")),
    "del a parameter": lambda one: changed(net(one), lambda m: delattr(m.block, "scale")),
    "del a buffer": lambda one: changed(net(one), lambda m: delattr(m.block, "count")),
    "None for a module": lambda one: changed(net(one), lambda m: setattr(m, "block", None)),
    "None for a parameter": lambda one: changed(net(one), lambda m: setattr(m.first, "bias", None)),
    "a module for a parameter": lambda one: changed(net(one), lambda m: setattr(m.first, "bias", one.nn.Sigmoid())),
    "a parameter for a module": lambda one: changed(
        net(one), lambda m: setattr(m, "block", one.nn.Parameter(one.ones(1)))
    ),
    "a tensor for a parameter": lambda one: assign(net(one).first, "bias", one.ones(2)),
    "a number for a parameter": lambda one: assign(net(one).first, "bias", 3),
    "a number for a module": lambda one: assign(net(one), "block", 3),
    "a number for a buffer": lambda one: assign(net(one).block, "count", 3),
    "a tensor for a buffer": lambda one: assign(net(one).block, "count", one.ones(5)),
    "a parameter for a buffer": lambda one: changed(
        net(one), lambda m: setattr(m.block, "count", one.nn.Parameter(one.ones(1)))
    ),
    "a Buffer": lambda one: changed(net(one), lambda m: setattr(m, "more", one.nn.Buffer(one.ones(1)))),
    "a Buffer not saved": lambda one: changed(
        net(one), lambda m: setattr(m, "more", one.nn.Buffer(one.ones(1), persistent=False))
    ),
    "a parameter for an attribute": lambda one: changed(
        net(one), lambda m: (setattr(m, "x", 3), setattr(m, "x", one.nn.Parameter(one.ones(1))))
    ),
    "no super, parameter": lambda one: without_super(one, one.nn.Parameter(one.ones(1))),
    "no super, module": lambda one: without_super(one, one.nn.ReLU()),
    "no forward": lambda one: one.nn.Module()(one.ones(1)),
    "a wrapper": lambda one: wrapper(one),
    "missing attribute": lambda one: net(one).other,
    "arguments of Module": lambda one: one.nn.Module(3),
    "keywords of Module": lambda one: one.nn.Module(a=3),
    **{
        f"register_parameter {name!r}": lambda one, name=name: net(one).register_parameter(name, None)
        for name in ("a.b", "", 3, "forward", "block")
    },
    **{
        f"register_buffer {name!r}": lambda one, name=name: net(one).register_buffer(name, one.ones(1))
        for name in ("a.b", "", 3, "forward", "block")
    },
    **{
        f"add_module {name!r}": lambda one, name=name: net(one).add_module(name, one.nn.ReLU())
        for name in ("a.b", "", 3, "forward")
    },
    "register a tensor": lambda one: net(one).register_parameter("x", one.ones(1)),
    "register a number": lambda one: net(one).register_parameter("x", 3),
    "buffer of a number": lambda one: net(one).register_buffer("x", 3),
    "module of a number": lambda one: net(one).add_module("x", 3),
    # state
    "load": lambda one: repr(net(one).load_state_dict(net(one).state_dict())),
    "load part": lambda one: net(one).load_state_dict({"first.weight": one.ones(2, 2), "x": one.ones(1)}, strict=False),
    "load part strictly": lambda one: net(one).load_state_dict(
        {"first.weight": one.ones(2, 2), "x": one.ones(1), "block.y.z": one.ones(1)}
    ),
    "load other shapes": lambda one: net(one).load_state_dict(
        {**net(one).state_dict(), "first.weight": one.ones(3, 2)}
    ),
    "load no tensor": lambda one: net(one).load_state_dict({**net(one).state_dict(), "first.weight": 3}),
    "load no mapping": lambda one: net(one).load_state_dict([1]),
    "load another dtype": lambda one: (
        lambda m: (m.load_state_dict({"weight": one.ones(2, 2).float(), "bias": one.ones(2).float()}), m.state_dict())[
            1
        ]
    )(one.nn.Linear(2, 2)),
    "load by assignment": lambda one: (
        lambda m: (
            m.load_state_dict({"weight": one.ones(2, 2).float(), "bias": one.ones(2).float()}, assign=True),
            m.state_dict(),
            list(m.parameters()),
        )[1:]
    )(one.nn.Linear(2, 2)),
    "load 1 into 0-d": lambda one: (
        lambda m: (m.register_buffer("x", one.tensor(0.0)), m.load_state_dict({"x": one.ones(1)}), m.x)[2]
    )(one.nn.Module()),
    "load an older batch norm": lambda one: repr(
        one.nn.BatchNorm1d(2).load_state_dict(
            {"weight": one.ones(2), "bias": one.ones(2), "running_mean": one.ones(2), "running_var": one.ones(2)}
        )
    ),
    # parameters
    "Parameter": lambda one: [
        one.nn.Parameter(one.ones(2)),
        one.nn.Parameter(one.ones(2), requires_grad=False),
        repr(one.nn.Parameter(one.ones(2) / 3)),
        one.nn.Parameter().shape == (0,),
    ],
    "Parameter of a result": lambda one: one.nn.Parameter(one.ones(2, requires_grad=True) * 2),
    "Parameter of a list": lambda one: one.nn.Parameter([1.0]),
    "Parameter of integers": lambda one: one.nn.Parameter(one.tensor([1])),
    "Parameter shares memory": lambda one: (lambda x: (one.nn.Parameter(x).data.fill_(3), x)[1])(one.ones(2)),
    "Parameter in place": lambda one: one.nn.Parameter(one.ones(2)).add_(1),
    "results of a Parameter": lambda one: [
        one.nn.Parameter(one.ones(2)) * 2,
        one.nn.Parameter(one.ones(2)).detach(),
        one.nn.Parameter(one.ones(2)).data,
    ],
    # containers
    "Sequential of names": lambda one: repr(
        one.nn.Sequential(OrderedDict([("fc", one.nn.Linear(2, 3)), ("act", one.nn.ReLU())]))
    ),
    "Sequential parts": lambda one: (
        lambda s: [repr(s[1]), repr(s[-1]), repr(s[:2]), len(s), repr(s[1:]), [type(m).__name__ for m in s]]
    )(one.nn.Sequential(one.nn.ReLU(), one.nn.Tanh(), one.nn.Sigmoid())),
    "Sequential changes": lambda one: (
        lambda s: [
            repr(s.append(one.nn.GELU())),
            repr(s.insert(0, one.nn.ELU())),
            repr(s.extend([one.nn.SELU()])),
            repr(s.pop(1)),
            repr(s),
            repr(s + s),
            repr(2 * s),
        ]
    )(one.nn.Sequential(one.nn.ReLU(), one.nn.Tanh())),
    "Sequential del": lambda one: (
        lambda s: (
            s.__delitem__(0),
            repr(s),
            s.__setitem__(0, one.nn.ELU()),
            repr(s),
            s.__delitem__(slice(0, 1)),
            repr(s),
        )
    )(one.nn.Sequential(one.nn.ReLU(), one.nn.Tanh(), one.nn.GELU())),
    "Sequential index": lambda one: one.nn.Sequential(one.nn.ReLU())[1],
    "Sequential of a function": lambda one: one.nn.Sequential(3),
    "ModuleList": lambda one: (
        lambda s: [
            repr(s),
            repr(s[0:2]),
            len(s),
            repr(s.append(one.nn.ReLU())),
            s.insert(1, one.nn.Tanh()),
            repr(s),
            repr(s + [one.nn.ELU()]),  # noqa: RUF005
            repr(s.pop(-1)),
            [name for name, _ in s.named_children()],
        ]
    )(one.nn.ModuleList([one.nn.Linear(2, 2) for _ in range(3)])),
    "ModuleList called": lambda one: one.nn.ModuleList([one.nn.ReLU()])(one.ones(1)),
    "ModuleList empty": lambda one: [
        repr(one.nn.ModuleList()),
        repr(one.nn.Sequential()),
        repr(one.nn.ModuleDict()),
        repr(one.nn.ParameterList()),
        repr(one.nn.ParameterDict()),
    ],
    "ModuleDict": lambda one: (
        lambda d: [
            repr(d),
            list(d),
            list(d.keys()),
            len(d),
            "a" in d,
            repr(d["a"]),
            d.update({"c": one.nn.Tanh()}),
            repr(d.pop("a")),
            repr(d),
            [k for k, _ in d.items()],
            d.clear(),
            len(d),
        ]
    )(one.nn.ModuleDict({"a": one.nn.ReLU(), "b": one.nn.Linear(1, 1)})),
    "ModuleDict of pairs": lambda one: repr(one.nn.ModuleDict([["a", one.nn.ReLU()]])),
    "ModuleDict missing": lambda one: one.nn.ModuleDict()["a"],
    "ParameterList": lambda one: (
        lambda s: [
            repr(s),
            len(s),
            s[0],
            list(s),
            repr(s[1:]),
            repr(s.append(one.nn.Parameter(one.ones(1)))),
            [name for name, _ in s.named_parameters()],
            s.state_dict(),
        ]
    )(one.nn.ParameterList([one.nn.Parameter(one.ones(2, 3)), one.zeros(1)])),
    "ParameterDict": lambda one: (
        lambda d: [repr(d), list(d), d["a"], "b" in d, [name for name, _ in d.named_parameters()], d.pop("a"), len(d)]
    )(one.nn.ParameterDict({"a": one.nn.Parameter(one.ones(2)), "b": one.zeros(1)})),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_torch(name: str) -> None:
    ours, theirs = outcome(PROGRAMS[name], tg), outcome(PROGRAMS[name], torch)
    if isinstance(theirs, tuple) and isinstance(theirs[0], type):  # an error, of which ours may say more
        assert ours[0] is theirs[0]
        assert ours[1].startswith(theirs[1].rstrip("."))
    else:
        assert ours == theirs


# Hooks ---------------------------------------------------------------------------------------------------------------


def hooked(one: Any, register: Any, *args: Any, grad: bool = True, **kwargs: Any) -> Any:
    """Call a module with hooks; return what they saw, the result and the gradients."""
    seen: list[Any] = []
    module, x = fill(one.nn.Linear(2, 2)), one.ones(3, 2).requires_grad_(grad)
    handle = register(module, seen)
    y = module(x, *args, **kwargs)
    y.sum().backward()
    handle.remove()
    count = len(seen)
    module(x).sum().backward()
    return seen, y, x.grad, module.weight.grad, len(seen) == count


def note(seen: list[Any], *args: Any, result: Any = None) -> Any:
    seen.append([plain(arg) if not hasattr(arg, "training") else type(arg).__name__ for arg in args])
    return result


HOOKS = {
    "forward": lambda one: hooked(one, lambda m, seen: m.register_forward_hook(lambda *a: note(seen, *a))),
    "forward result": lambda one: hooked(
        one, lambda m, seen: m.register_forward_hook(lambda *a: note(seen, *a, result=a[2] * 2))
    ),
    "forward with names": lambda one: hooked(
        one, lambda m, seen: m.register_forward_hook(lambda *a: note(seen, *a), with_kwargs=True)
    ),
    "pre": lambda one: hooked(one, lambda m, seen: m.register_forward_pre_hook(lambda *a: note(seen, *a))),
    "pre result": lambda one: hooked(
        one, lambda m, seen: m.register_forward_pre_hook(lambda *a: note(seen, *a, result=a[1][0] * 2))
    ),
    "pre tuple": lambda one: hooked(
        one, lambda m, seen: m.register_forward_pre_hook(lambda *a: note(seen, *a, result=(a[1][0] * 2,)))
    ),
    "pre with names": lambda one: hooked(
        one,
        lambda m, seen: m.register_forward_pre_hook(
            lambda *a: note(seen, *a, result=((a[1][0] * 2,), {})), with_kwargs=True
        ),
    ),
    "pre with names, wrong": lambda one: hooked(
        one, lambda m, seen: m.register_forward_pre_hook(lambda *a: 3, with_kwargs=True)
    ),
    "backward": lambda one: hooked(one, lambda m, seen: m.register_full_backward_hook(lambda *a: note(seen, *a))),
    "backward result": lambda one: hooked(
        one, lambda m, seen: m.register_full_backward_hook(lambda *a: note(seen, *a, result=(a[1][0] * 10,)))
    ),
    "backward wrong result": lambda one: hooked(
        one, lambda m, seen: m.register_full_backward_hook(lambda *a: (a[1][0], a[1][0]))
    ),
    "backward of constants": lambda one: hooked(
        one, lambda m, seen: m.register_full_backward_hook(lambda *a: note(seen, *a)), grad=False
    ),
    "backward pre": lambda one: hooked(
        one, lambda m, seen: m.register_full_backward_pre_hook(lambda *a: note(seen, *a))
    ),
    "backward pre result": lambda one: hooked(
        one, lambda m, seen: m.register_full_backward_pre_hook(lambda *a: note(seen, *a, result=(a[1][0] * 10,)))
    ),
}


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_hooks_as_torch(name: str) -> None:
    ours, theirs = outcome(HOOKS[name], tg), outcome(HOOKS[name], torch)
    if isinstance(theirs, tuple):
        assert (ours[0], ours[1].split(",")[0]) == (theirs[0], theirs[1].split(",")[0])
    else:
        assert ours == theirs


def several(one: Any, use: Any) -> Any:
    """A module of two inputs and two outputs with a backward hook."""
    seen: list[Any] = []

    class Two(one.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x * y, x + y * y

    module = Two()
    module.register_full_backward_hook(lambda *a: note(seen, *a))
    module.register_full_backward_pre_hook(lambda *a: note(seen, *a))
    x, y = one.ones(2, requires_grad=True), one.full((2,), 3.0).requires_grad_()
    use(*module(x, y)).sum().backward()
    return seen, x.grad, y.grad


@pytest.mark.parametrize("use", [lambda a, b: a + 2 * b, lambda a, b: b * 3])
def test_backward_hooks_of_several_tensors(use: Any) -> None:
    assert outcome(lambda one: several(one, use), tg) == outcome(lambda one: several(one, use), torch)


def order(one: Any) -> Any:
    seen: list[str] = []
    module = one.nn.ReLU()
    for name in "ab":
        module.register_forward_hook(lambda *_, name=name: seen.append(f"after {name}"))
        module.register_forward_pre_hook(lambda *_, name=name: seen.append(f"before {name}"), prepend=True)
    module.register_forward_hook(lambda *_: seen.append("first"), prepend=True)
    module(one.ones(1))
    return seen


def raising(one: Any) -> Any:
    seen: list[Any] = []

    class Bad(one.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    module = Bad()
    module.register_forward_hook(lambda m, a, r: seen.append(r), always_call=True)
    module.register_forward_hook(lambda m, a, r: seen.append("never"))
    with pytest.raises(ValueError, match="no"):
        module(one.ones(1))
    return seen


def state_hooks(one: Any) -> Any:
    seen: list[Any] = []
    module = fill(one.nn.Linear(2, 2))
    module.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((prefix, keep)))
    module.register_state_dict_post_hook(lambda m, state, prefix, metadata: state.__delitem__(prefix + "bias"))
    module.register_load_state_dict_pre_hook(
        lambda m, state, prefix, *_: state.__setitem__(prefix + "bias", one.zeros(2))
    )
    module.register_load_state_dict_post_hook(lambda m, keys: seen.append(repr(keys)))
    state = module.state_dict()
    module.load_state_dict(state)
    return seen, list(state), module.bias


def extra_state(one: Any) -> Any:
    class Counter(one.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = 0

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    first, second = one.nn.Sequential(Counter()), one.nn.Sequential(Counter())
    first[0].count = 7
    second.load_state_dict(first.state_dict())
    try:
        second.load_state_dict({})
    except RuntimeError as error:
        return first.state_dict(), second[0].count, str(error)


@pytest.mark.parametrize("program", [order, raising, state_hooks, extra_state])
def test_further_hooks_as_torch(program: Any) -> None:
    assert outcome(program, tg) == outcome(program, torch)


# What only ours shows ------------------------------------------------------------------------------------------------


def test_modules_die_without_the_collector() -> None:
    gc.disable()
    try:
        module = net(tg)
        module(tg.ones(1, 2)).sum().backward()
        dies = weakref.ref(module), weakref.ref(module.block.scale)
        del module
        assert [one() for one in dies] == [None, None]
    finally:
        gc.enable()


def test_members_are_plain_attributes() -> None:
    layer = tg.nn.Linear(2, 2)
    assert vars(layer)["weight"] is layer.weight
    twin = copy.copy(layer)
    assert twin.weight is layer.weight
    twin.more = tg.nn.Parameter(tg.ones(1))
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]


def test_another_dtype_keeps_parameters_hooks_and_gradients() -> None:
    layer = tg.nn.Linear(2, 2, bias=False)
    weight, seen = layer.weight, []
    weight.register_hook(lambda g: seen.append(g.dtype))
    layer(tg.ones(1, 2)).sum().backward()
    layer.float()
    assert layer.weight is weight
    assert (weight.dtype, weight.grad.dtype, weight.is_leaf, weight.requires_grad) == (
        tg.float32,
        tg.float32,
        True,
        True,
    )
    layer(tg.ones(1, 2, dtype=tg.float32)).sum().backward()
    assert seen == [tg.float64, tg.float32]
    assert weight.grad.tolist() == [[2, 2], [2, 2]]


def test_default_dtype() -> None:
    assert tg.nn.Linear(2, 2).weight.dtype == tg.float64
    tg.set_default_dtype("float32")
    try:
        assert tg.nn.LSTM(2, 2).weight_ih_l0.dtype == tg.nn.BatchNorm1d(2).running_var.dtype == tg.float32
    finally:
        tg.set_default_dtype("float64")
    assert tg.nn.Conv1d(1, 1, 1, dtype=tg.float32).weight.dtype == tg.float32


def test_zero_grad() -> None:
    layer = tg.nn.Linear(2, 1)
    layer(tg.ones(1, 2)).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.tolist() == [[0, 0]]
    layer.zero_grad()
    assert layer.weight.grad is None


def test_hooks_by_their_numbers(T):
    """Programs look at the tables of hooks, clear them and put functions there."""
    m, seen = T.nn.Linear(2, 2), []
    tables = (m._forward_hooks, m._forward_pre_hooks, m._backward_hooks)
    assert [len(table) for table in tables] == [0, 0, 0]
    handle = m.register_forward_hook(lambda module, args, out: seen.append("hook"))
    m._forward_hooks[-1] = lambda module, args, out: seen.append("put there")
    m(T.ones(1, 2))
    handle.remove()
    m(T.ones(1, 2))
    assert (seen, list(m._forward_hooks)) == (["hook", "put there", "put there"], [-1])
    m.register_forward_pre_hook(lambda module, args: seen.append("before"))
    m.register_full_backward_hook(lambda module, grad_in, grad_out: seen.append("back"))
    m._forward_hooks.clear()
    m._forward_pre_hooks.popitem()
    m._backward_hooks = type(m._backward_hooks)()
    m(T.ones(1, 2)).sum().backward()
    assert len(seen) == 3
