"""Parametrised weights, averaged models, fused layers, and optimizers of matrices: the same programs on torch."""

from __future__ import annotations

import copy
import importlib
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore:`torch.nn.utils")


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, shape)


class Shown(list):
    """What a program tells: texts, numbers and tensors; of an error its class and its message."""

    def tensor(self, *values: Any) -> None:
        self.extend(np.asarray(own.detach().numpy(), np.float64) for own in values)

    def error(self, function: Callable[[], Any]) -> None:
        try:
            function()
        except Exception as error:
            self.append((type(error).__name__, str(error).replace("torch.Size([", "(").replace("])", ")")))


def filled(T: Any, module: Any) -> Any:
    with T.no_grad():
        for place, param in enumerate(module.parameters()):
            param.copy_(T.tensor(numbers(tuple(param.shape), place)))
    return module


def linear(T: Any, n: int, m: int) -> Any:
    return filled(T, T.nn.Linear(n, m, dtype=T.float64))


def weight_norms(T: Any, out: Shown) -> None:
    module, x = T.nn.utils.parametrizations, T.tensor(numbers((2, 3)))
    for dim in (0, 1, None):
        layer = module.weight_norm(linear(T, 3, 2), dim=dim)
        out += [repr(layer), list(layer.state_dict())]
        (layer(x) ** 2).sum().backward()
        out.tensor(*[param.grad for param in layer.parameters()])
    T.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    out += [repr(layer), list(layer.state_dict()), type(layer).__name__]
    old = T.nn.utils.weight_norm(linear(T, 3, 2))
    out.append(list(old.state_dict()))
    new = module.weight_norm(linear(T, 3, 2))
    new.load_state_dict(old.state_dict())
    (old(x) ** 2).sum().backward()
    out.tensor(old(x), new(x), old.weight_g.grad, old.weight_v.grad)
    out.error(lambda: T.nn.utils.weight_norm(old))
    T.nn.utils.remove_weight_norm(old)
    out.append(list(old.state_dict()))
    out.error(lambda: T.nn.utils.remove_weight_norm(old))
    out.error(lambda: T.nn.utils.parametrize.remove_parametrizations(new, "weight", leave_parametrized=False))


def spectral_norms(T: Any, out: Shown) -> None:
    x = T.tensor(numbers((2, 3)))
    for make in (T.nn.utils.parametrizations.spectral_norm, T.nn.utils.spectral_norm):
        layer = make(linear(T, 3, 2), n_power_iterations=200)
        for _ in range(2):  # a loss of two forwards, as of a discriminator
            loss = (layer(x) ** 2).sum() - layer(2 * x).sum()
        loss.backward()
        out += [sorted(layer.state_dict())]
        out.tensor(loss, *[param.grad for param in layer.parameters()])
        layer.eval()
        out.tensor(layer(x))
        image = make(filled(T, T.nn.ConvTranspose2d(2, 3, 2, dtype=T.float64)), n_power_iterations=200)
        out.tensor(image(T.ones(1, 2, 3, 3, dtype=T.float64)))
        out.error(lambda make=make: make(linear(T, 2, 2), n_power_iterations=0))
    T.nn.utils.remove_spectral_norm(layer)
    out.append(list(layer.state_dict()))
    out.error(lambda: T.nn.utils.remove_spectral_norm(layer))
    out.error(lambda: T.nn.utils.parametrizations.spectral_norm(linear(T, 2, 2), dim=4))


def orthogonal_weights(T: Any, out: Shown) -> None:
    for kind in ("matrix_exp", "cayley", "householder", None):
        for n, k in ((3, 3), (3, 5), (5, 3)):
            layer = T.nn.utils.parametrizations.orthogonal(linear(T, n, k), orthogonal_map=kind)
            weight = layer.weight
            out.tensor(weight @ weight.T if k <= n else weight.T @ weight)
            if n == k:
                (layer(T.ones(2, n, dtype=T.float64)) ** 2 * T.arange(2.0 * k).reshape(2, k)).sum().backward()
                out.tensor(weight, layer.parametrizations.weight.original.grad)
            layer.weight = T.eye(k, n, dtype=T.float64)
            out.tensor(abs(layer.weight))
    for n, k in ((3, 5), (5, 3)):
        layer = T.nn.utils.parametrizations.orthogonal(
            linear(T, n, k), orthogonal_map="householder", use_trivialization=False
        )
        (layer(T.ones(2, n, dtype=T.float64)) ** 2).sum().backward()
        out.tensor(layer.weight, layer.parametrizations.weight.original.grad)
    make = T.nn.utils.parametrizations.orthogonal
    out.error(lambda: make(linear(T, 2, 2), "bias"))
    out.error(lambda: make(linear(T, 2, 2), "nothing"))
    out.error(lambda: make(linear(T, 2, 2), orthogonal_map="x"))


def own_parametrisations(T: Any, out: Shown) -> None:
    P = T.nn.utils.parametrize

    class Symmetric(T.nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).mT

    class Doubled(T.nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, x: Any) -> Any:
            return 2 * x

        def right_inverse(self, x: Any) -> Any:
            return x / 2

    class Cut(T.nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, x: Any) -> Any:
            return x[:1]

    layer = linear(T, 3, 3)
    original = layer.weight
    P.register_parametrization(layer, "weight", Doubled())
    out.append(layer.parametrizations.weight.original is original)
    layer.weight = T.eye(3, dtype=T.float64)
    out.tensor(layer.weight, original)
    P.register_parametrization(layer, "weight", Symmetric())
    out += [repr(layer), len(layer.parametrizations.weight), P.is_parametrized(layer), P.is_parametrized(layer, "bias")]
    out.append(P.type_before_parametrizations(layer).__name__)
    out.error(lambda: setattr(layer, "weight", T.eye(3, dtype=T.float64)))
    out.error(lambda: P.register_parametrization(layer, "weight", Cut()))
    out.error(lambda: P.register_parametrization(linear(T, 3, 3), "weight", Cut()))
    out.error(lambda: P.register_parametrization(layer, "other", Cut()))
    out.error(lambda: P.remove_parametrizations(linear(T, 2, 2), "weight"))
    with P.cached():
        out.append(layer.weight is layer.weight)
    out.append(layer.weight is layer.weight)
    twin = copy.deepcopy(layer)
    with T.no_grad():
        twin.parametrizations.weight.original.zero_()
    out.tensor(layer.weight, twin.weight)
    out.error(lambda: pickle.dumps(layer))
    other = linear(T, 3, 3)
    P.transfer_parametrizations_and_params(layer, other)
    out.append(repr(other))
    out.tensor(other.weight)
    P.remove_parametrizations(layer, "weight")
    out.append(layer.weight is original)
    out.tensor(layer.weight)


def layers_that_look_at_weights(T: Any, out: Shown) -> None:
    norm, x = T.nn.utils.parametrizations.weight_norm, T.tensor(numbers((4, 2, 3)))
    layer = norm(filled(T, T.nn.GRU(3, 2, dtype=T.float64)), "weight_hh_l0")
    out.tensor(layer(x)[0].detach())
    net = T.nn.Sequential(norm(linear(T, 3, 2)), T.nn.ReLU())
    optimizer = T.optim.SGD(net.parameters(), lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        (net(x) - 1).square().mean().backward()
        optimizer.step()
    out.tensor(*net.parameters())
    out.append(repr(net))


def averages(T: Any, out: Shown) -> None:
    swa = importlib.import_module(f"{T.__name__}.optim.swa_utils")
    data = [T.tensor(numbers((5, 3), place)) for place in range(4)]
    for options in (
        {}, {"use_buffers": True}, {"avg_fn": lambda mean, x, count: 0.5 * mean + 0.5 * x},
        {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.75)}, {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
        {"avg_fn": swa.get_ema_avg_fn(0.75)}, {"avg_fn": swa.get_swa_avg_fn()},
    ):  # fmt: skip
        net = T.nn.Sequential(linear(T, 3, 2), T.nn.BatchNorm1d(2, dtype=T.float64))
        model = swa.AveragedModel(net, **options)
        optimizer = T.optim.SGD(net.parameters(), lr=0.5)
        for x in data:
            optimizer.zero_grad()
            (net(x) * T.arange(2.0)).square().sum().backward()
            optimizer.step()
            model.update_parameters(net)
        out.append(list(model.state_dict()))
        out.tensor(*model.state_dict().values())
        swa.update_bn(data, model)
        out.tensor(*model.buffers(), model(data[0]))
    for strategy in ("cos", "linear"):
        for epochs in (0, 3):
            optimizer = T.optim.SGD([{"params": [T.ones(1)]}, {"params": [T.ones(1)], "lr": 0.5}], lr=1.0)
            schedule = swa.SWALR(optimizer, [0.1, 0.2], anneal_epochs=epochs, anneal_strategy=strategy)
            for _ in range(5):
                out.append(np.array(schedule.get_last_lr()))
                optimizer.step()
                schedule.step()
    out.error(lambda: swa.SWALR(optimizer, 0.1, anneal_strategy="x"))
    out.error(lambda: swa.SWALR(optimizer, 0.1, anneal_epochs=-1))
    out.error(lambda: swa.get_ema_avg_fn(2.0))
    out.error(lambda: swa.AveragedModel(net, avg_fn=max, multi_avg_fn=max))


def fused_layers(T: Any, out: Shown) -> None:
    for make, bn, x in (
        (T.nn.Conv2d(2, 3, 2, dtype=T.float64), T.nn.BatchNorm2d(3, dtype=T.float64), numbers((2, 2, 4, 4))),
        (T.nn.Conv1d(2, 3, 2, bias=False, dtype=T.float64), T.nn.BatchNorm1d(3, affine=False, dtype=T.float64),
         numbers((2, 2, 4))),
        (T.nn.Linear(2, 3, dtype=T.float64), T.nn.BatchNorm1d(3, dtype=T.float64), numbers((4, 2))),
    ):  # fmt: skip
        layer, inputs = filled(T, make), T.tensor(x)
        bn(layer(inputs))
        fuse = T.nn.utils.fuse_linear_bn_eval if x.ndim == 2 else T.nn.utils.fuse_conv_bn_eval
        out.error(lambda fuse=fuse, layer=layer, bn=bn: fuse(layer, bn))
        fused = fuse(layer.eval(), bn.eval())
        out.append(repr(fused).replace(", bias=False", ""))
        out.tensor(fused(inputs), bn(layer(inputs)), *fused.parameters())
    out.error(lambda: T.nn.utils.fuse_linear_bn_eval(T.nn.Linear(2, 3).eval(), T.nn.BatchNorm1d(2).eval()))


def adaptive_softmax(T: Any, out: Shown) -> None:
    module = filled(T, T.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], div_value=2.0, head_bias=True, dtype=T.float64))
    out += [repr(module), list(module.state_dict())]
    x = T.tensor(numbers((6, 8))).requires_grad_()
    for classes in ([0, 5, 19, 3, 10, 4], [1, 1, 2, 0, 3, 3]):
        result = module(x, T.tensor(classes))
        out.append(result._fields)
        out.tensor(*result)
        result.loss.backward()
        out.tensor(x.grad, *[own.grad for own in module.parameters() if own.grad is not None])
    out.tensor(module.log_prob(x), module.predict(x), *module(x[0], T.tensor(11)))
    for target in (T.tensor([1, 2]), T.tensor([[1]]), T.tensor([20, 1, 1, 1, 1, 1]), T.tensor(3)):
        out.error(lambda target=target: module(x, target))
    for cutoffs in ([], [3, 2], [0], [20], [3, 3]):
        out.error(lambda cutoffs=cutoffs: T.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs))


def paths_and_memory(T: Any, out: Shown) -> None:
    net = T.nn.Sequential(linear(T, 2, 2), T.nn.Sequential(T.nn.ReLU()))
    net.set_submodule("1.0", T.nn.Tanh())
    net.set_submodule("1.more", T.nn.ReLU())
    out.append(repr(net))
    out.error(lambda: net.set_submodule("", T.nn.ReLU()))
    out.error(lambda: net.set_submodule("1.nothing", T.nn.ReLU(), strict=True))
    out.error(lambda: net.set_submodule("0.weight", T.nn.ReLU()))
    out.error(lambda: net.set_submodule("5.a", T.nn.ReLU()))
    out.append([tuple(own.shape) for own in net.to_empty(device="cpu").parameters()])
    out.append(tuple(T.nn.utils.skip_init(T.nn.Linear, 5, 1).weight.shape))
    out.error(lambda: T.nn.utils.skip_init(T.nn.ReLU))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = T.nn.init.constant(T.zeros(2), 3.0)
        T.nn.utils.clip_grad_norm([value], 1.0)
    out.tensor(value)
    out += [[str(own.message) for own in caught], T.nn.init.xavier_normal.__name__]
    stateless = importlib.import_module(f"{T.__name__}.nn.utils.stateless")
    out.tensor(
        stateless.functional_call(linear(T, 2, 1), {"bias": T.ones(1, dtype=T.float64)}, T.ones(2, dtype=T.float64))
    )


def adafactor(T: Any, out: Shown) -> None:
    for options in ({}, {"weight_decay": 0.1, "eps": (1e-3, 0.1)}, {"d": 2.0, "maximize": True, "beta2_decay": -0.5}):
        params = [T.tensor(numbers(own)).requires_grad_() for own in ((3,), (3, 4), (2, 3, 4), ())]
        optimizer = T.optim.Adafactor(params, lr=0.3, **options)
        for _ in range(4):
            optimizer.zero_grad()
            sum(
                ((own - 0.5) ** 2 * T.arange(1.0, own.numel() + 1).reshape(own.shape)).sum() for own in params
            ).backward()
            optimizer.step()
        out.tensor(*params)
        out.append(repr(optimizer))
        out.append([{name: tuple(own.shape) for name, own in state.items()} for state in optimizer.state.values()])
    for name, value in (("lr", -1.0), ("beta2_decay", 1.0), ("eps", (-1.0, 0.1)), ("eps", (None, -1.0)), ("d", 0.5),
                        ("weight_decay", -1.0)):  # fmt: skip
        out.error(lambda name=name, value=value: T.optim.Adafactor([T.ones(1)], **{name: value}))


def errors_of_muon(T: Any, out: Shown) -> None:
    out.append(repr(T.optim.Muon([T.ones(2, 2)])))
    out.error(lambda: T.optim.Muon([T.ones(2)]))
    for name, value in (("lr", -1.0), ("momentum", -1.0), ("weight_decay", -1.0), ("adjust_lr_fn", "x")):
        out.error(lambda name=name, value=value: T.optim.Muon([T.ones(1, 1)], **{name: value}))


def shares_of_a_dataset(T: Any, out: Shown) -> None:
    from_module = importlib.import_module(f"{T.__name__}.utils.data.distributed").DistributedSampler
    out.append(from_module is T.utils.data.DistributedSampler)
    for count in (1, 5, 6):
        for drop_last in (False, True):
            parts = [from_module(range(count), 3, own, shuffle=False, drop_last=drop_last) for own in range(3)]
            out.append([(list(own), len(own)) for own in parts])
    for epoch in (0, 1):
        parts = [from_module(range(6), 3, own) for own in range(3)]
        for own in parts:
            own.set_epoch(epoch)
        out.append(sorted(index for own in parts for index in own))
    out.error(lambda: from_module(range(5), 2, 2))


PROGRAMS = [
    weight_norms, spectral_norms, orthogonal_weights, own_parametrisations, layers_that_look_at_weights, averages,
    fused_layers, adaptive_softmax, paths_and_memory, adafactor, errors_of_muon, shares_of_a_dataset,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_on_both(program: Callable[[Any, Shown], None]) -> None:
    shown = []
    for T in (torch, tg):
        importlib.import_module(f"{T.__name__}.nn.utils.parametrize")
        out = Shown()
        program(T, out)
        shown.append(out)
    theirs, ours = shown
    assert len(ours) == len(theirs)
    for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if isinstance(b, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7, err_msg=f"{place}")
        elif isinstance(b, tuple) and len(b) == 2 and isinstance(b[1], str):
            assert a[0] == b[0], (place, a, b)
            assert a[1][:40] == b[1][:40], (place, a, b)
        else:
            assert a == b, place


def test_muon_makes_steps_as_torch_does() -> None:
    found = []
    for T in (torch, tg):
        for shape in ((3, 4), (4, 2)):
            for adjust in (None, "match_rms_adamw"):
                x = T.tensor(numbers(shape)).requires_grad_()
                optimizer = T.optim.Muon([x], lr=0.1, adjust_lr_fn=adjust)
                for _ in range(3):
                    optimizer.zero_grad()
                    ((x - 0.5) ** 2).sum().backward()
                    optimizer.step()
                found.append(x.detach().numpy())
    for theirs, ours in zip(found[:4], found[4:], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=0.02)  # torch's iterates in half precision
        assert np.abs(ours - numbers(ours.shape)).max() > 0.05


def test_second_derivatives_of_weight_norm():
    """Those of the formula; PyTorch's differ from that."""
    layer = tg.nn.utils.weight_norm(tg.nn.Linear(3, 4, bias=False))
    g, v, x = layer.weight_g, layer.weight_v, tg.arange(6.0).reshape(2, 3)
    found = []
    for out in (layer(x), x @ (g * v / v.norm(dim=1, keepdim=True)).T):
        grads = tg.autograd.grad((out**2).sum() + out.sin().sum(), (g, v), create_graph=True)
        found.append(tg.autograd.grad(sum((grad * grad).sum() for grad in grads), (g, v)))
    for own, expected in zip(*found, strict=True):
        assert tg.allclose(own, expected)
