"""Names of PyTorch beside its functions: what programs name, set or import, and what it then does."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.runtime import module_names
from tests.both import needs_torch
from tests.torch_programs import torch

WRITING = """
    abs_ asinh_ atan_ ceil_ cos_ cosh_ deg2rad_ detach_ erf_ exp_ exp2_ expm1_ fix_ floor_ frac_ i0_ log1p_
    nan_to_num_ neg_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ selu_ celu_ sigmoid_ sin_ sinc_ sqrt_ square_ tan_
    tanh_ trunc_ zero_
"""


@needs_torch
@pytest.mark.parametrize("name", sorted(module_names._HOMES))
def test_modules_that_stand_elsewhere(name: str) -> None:
    mine, other = import_module(name), import_module(name.replace("tapegrad", "torch"))
    if name.split(".")[1] in ("distributions", "nn", "optim"):
        functions = {"adagrad", "adam", "adamax", "adamw"}  # steps without an optimizer
        assert [own for own in getattr(other, "__all__", ()) if own not in functions and not hasattr(mine, own)] == []
    with pytest.raises(AttributeError):
        mine.no_such_name  # noqa: B018


def test_names_of_modules_that_stand_elsewhere() -> None:
    from tapegrad.cuda.amp import GradScaler
    from tapegrad.distributions.normal import Normal
    from tapegrad.utils._pytree import tree_map
    from tapegrad.utils.hooks import RemovableHandle

    assert Normal is tg.distributions.Normal is tg.distributions.normal.Normal
    assert GradScaler(enabled=False).is_enabled() is False
    assert tree_map(abs, {"a": [-1]}) == {"a": [1]}
    assert isinstance(tg.ones(1, requires_grad=True).register_hook(print), RemovableHandle)


MODULES = "activation batchnorm conv linear loss normalization rnn utils"


@needs_torch
@pytest.mark.parametrize("name", MODULES.split())
def test_modules_of_networks_have_the_names_of_torch(name: str) -> None:
    mine, other = (import_module(f"{library}.nn.modules.{name}") for library in ("tapegrad", "torch"))
    without = {"CrossMapLRN2d", "LinearCrossEntropyLoss", "SyncBatchNorm"}
    assert [own for own in other.__all__ if own not in without and not hasattr(mine, own)] == []


@needs_torch
def test_what_users_modules_import() -> None:
    found = []
    for library in ("tapegrad", "torch"):
        T = import_module(library)
        utils = import_module(f"{library}.nn.modules.utils")
        pytree = import_module(f"{library}.utils._pytree")
        leaves, spec = pytree.tree_flatten({"a": [1, 2], "b": (3, {"c": None})})
        state = {"module.a.weight": 1, "step": 2}
        utils.consume_prefix_in_state_dict_if_present(state, "module.")
        network = T.nn.Sequential(T.nn.Linear(1, 1))
        whole = {f"module.{key}": value for key, value in network.state_dict().items()}
        utils.consume_prefix_in_state_dict_if_present(whole, "module.")
        network.load_state_dict(whole)
        kernel = import_module(f"{library}.nn.attention")
        with kernel.sdpa_kernel([kernel.SDPBackend.MATH]):
            shape = tuple(T.nn.functional.scaled_dot_product_attention(*[T.ones(1, 2, 3)] * 3).shape)
        found.append([
            utils._pair(3), utils._triple([1, 2, 3]), utils._reverse_repeat_tuple((1, 2), 2), sorted(state),
            list(whole), leaves, pytree.tree_unflatten(leaves[::-1], spec), pytree.tree_leaves((1, [2])), shape,
            T.func.functionalize(len)([1]), T.is_conj(T.ones(1)), T.ones(1).is_neg(),
            import_module(f"{library}.multiprocessing").current_process().name,
        ])  # fmt: skip
    assert found[0] == found[1]


@needs_torch
@pytest.mark.parametrize("name", WRITING.split())
def test_functions_that_write(name: str) -> None:
    values = np.array([0.3, 1.5, 2.0])
    ours, theirs = tg.tensor(values), torch.tensor(values)
    result = getattr(tg, name)(ours)
    getattr(torch, name)(theirs)
    assert result is ours
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


X, Y = np.sin(np.arange(12.0)).reshape(4, 3), np.cos(np.arange(12.0)).reshape(4, 3)
ROW, POSITIVE = np.array([0.5, 1.5, -1.0]), np.abs(Y) + 0.1
LABELS, INDICES = np.sign(Y), np.array([0, 2, 2])
ALIGNED = np.log(np.full((5, 1, 4), 0.25)), np.array([[1, 2]]), np.array([5]), np.array([2])
# The arguments of each native form, in PyTorch's order; arrays become tensors.
FORMS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "batch_norm": [((X, ROW, ROW, ROW * 0, POSITIVE[0], True, 0.1, 1e-5, False), {})],
    "instance_norm": [((X[None], None, None, None, None, True, 0.1, 1e-5, False), {})],
    "group_norm": [((X, 3), {}), ((X, 1, ROW, ROW, 1e-3, False), {})],
    "embedding": [((X, INDICES), {}), ((X, INDICES, -1, False, False), {}), ((X, INDICES, 2), {})],
    "binary_cross_entropy_with_logits": [((X, POSITIVE / 2), {}), ((X, POSITIVE / 2, None, POSITIVE[0], 1), {})],
    "kl_div": [((X, POSITIVE), {}), ((X, POSITIVE, 2), {"log_target": True})],
    "poisson_nll_loss": [((X, POSITIVE, True, False, 1e-8, 1), {})],
    "hinge_embedding_loss": [((X, LABELS), {}), ((X, LABELS, 0.5, 1), {})],
    "cosine_embedding_loss": [((X, Y, LABELS[:, 0], 0.1, 2), {})],
    "margin_ranking_loss": [((X, Y, LABELS), {}), ((X, Y, LABELS, 0.1, 1), {})],
    "triplet_margin_loss": [((X, Y, POSITIVE), {}), ((X, Y, POSITIVE, 0.5, 2.0, 1e-6, True, 1), {})],
    "ctc_loss": [((*ALIGNED, 0, 2, True), {})],
    "grid_sampler": [((X[None, None], Y[None, :, :2].reshape(1, 2, 2, 2), 0, 1, False), {})],
    "adaptive_max_pool1d": [((X, 1), {})],
    "max_pool1d_with_indices": [((X, 2), {}), ((X, 2, 1), {})],
    "detach": [((X,), {})],
}


@needs_torch
@pytest.mark.parametrize(("name", "args", "kwargs"), [(name, *call) for name in FORMS for call in FORMS[name]])
def test_functions_with_pytorchs_positions(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    results = []
    for lib in (tg, torch):
        given = [lib.tensor(own) if isinstance(own, np.ndarray) else own for own in args]
        x = given[0].requires_grad_()
        if name == "ctc_loss":  # PyTorch's gradient is that of logarithms of probabilities only
            given[0] = x.log_softmax(-1)
        out = getattr(lib, name)(*given, **kwargs)
        parts = out if isinstance(out, tuple) else (out,)
        if parts[0].requires_grad:
            parts[0].cos().sum().backward()
        results.append([part.detach().numpy() for part in parts] + ([] if x.grad is None else [x.grad]))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-10, atol=1e-12)


def test_half_precision_has_names_but_no_tensors() -> None:
    x = tg.ones(2)
    assert x.dtype not in (tg.float16, tg.half, tg.bfloat16)
    for call in (lambda: x.to(tg.bfloat16), lambda: tg.zeros(2, dtype=tg.half), lambda: tg.finfo(tg.float16)):
        with pytest.raises(TypeError, match="no half precision; use float32"):
            call()


def train(lib: Any, *, amp: Any, enabled: bool) -> list[float]:
    """A step of training with a scaler, of which one gradient is not finite."""
    w = lib.tensor([1.0, -2.0], dtype=lib.float64, requires_grad=True)
    optimizer = lib.optim.SGD([w], lr=0.1)
    scaler = amp.GradScaler("cpu", init_scale=4.0, growth_interval=2, enabled=enabled)
    seen: list[float] = []
    for factor in (1.0, float("inf"), 2.0, 3.0):
        optimizer.zero_grad()
        scaler.scale((w * w * factor).sum()).backward()
        scaler.unscale_(optimizer)
        lib.nn.utils.clip_grad_norm_([w], 10.0)
        scaler.step(optimizer)
        scaler.update()
        seen += [*w.detach().tolist(), scaler.get_scale()]
    state = scaler.state_dict()
    other = amp.GradScaler("cpu", enabled=enabled)
    other.load_state_dict(state)
    return [*seen, other.get_scale(), *map(float, other.state_dict().values())]


@needs_torch
@pytest.mark.filterwarnings("ignore:invalid value")
def test_grad_scaler() -> None:
    np.testing.assert_allclose(
        train(tg, amp=tg.amp, enabled=True), train(torch, amp=torch.amp, enabled=True), equal_nan=True
    )
    assert not np.isfinite(train(tg, amp=tg.amp, enabled=False)).all()


def test_autocast_changes_nothing_and_says_so() -> None:
    with tg.autocast("cpu", enabled=False), tg.amp.autocast("cuda", dtype=tg.float16, enabled=False):
        assert (tg.ones(2, 2) @ tg.ones(2)).dtype == tg.float64
    with pytest.warns(UserWarning, match="no half precision. Disabling autocast"):
        tg.autocast("cpu", dtype=tg.bfloat16)
    with pytest.warns(UserWarning, match="CUDA is not available. Disabling"):
        function = tg.cuda.amp.autocast()(lambda x: x + 1)
    assert function(1) == 2
    with pytest.warns(UserWarning, match="CUDA is not available"):
        scaler = tg.cuda.amp.GradScaler()
    assert (scaler.is_enabled(), scaler.get_scale(), scaler.state_dict()) == (False, 1.0, {})
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        tg.autocast("gpu")


def test_functions_of_jit_return_what_they_are_given() -> None:
    @tg.jit.script
    def f(x: Any) -> Any:
        return x * 2

    layer = tg.nn.Linear(2, 2)
    assert tg.jit.trace(layer, tg.ones(2)) is layer
    assert tg.jit.ignore(f) is f is tg.jit.ignore()(f)
    assert f(2) == 4
    assert not tg.jit.is_scripting()
    assert tg.jit.Final[int] is int


def test_a_compiled_module_is_used_as_a_module() -> None:
    module = tg.nn.Sequential(tg.nn.Linear(2, 3), tg.nn.Dropout(0.5))
    compiled = tg.compile(module, backend="inductor", mode="reduce-overhead", dynamic=True, fullgraph=True)
    optimizer = tg.optim.SGD(compiled.parameters(), lr=0.5)
    compiled.eval()
    assert module.training is False is compiled.training
    x = tg.ones(4, 2)
    before = compiled(x)
    np.testing.assert_allclose(before.detach().numpy(), module(x).detach().numpy())
    before.sum().backward()
    optimizer.step()
    np.testing.assert_allclose((before - compiled(x)).detach().numpy(), 6.0)
    compiled.train()
    assert (compiled(x) == 0).any()
    with pytest.raises(AttributeError, match="nothing"):
        compiled.nothing  # noqa: B018
    assert tg.compile(max, disable=True) is max


def test_kinds_of_tensors_are_types() -> None:
    assert isinstance(tg.arange(3), tg.LongTensor)
    assert not isinstance(tg.arange(3), (tg.FloatTensor, tg.DoubleTensor))
    assert not isinstance(np.arange(3), tg.LongTensor)


def test_what_programs_ask_of_the_version_and_of_cuda() -> None:
    assert tg.version.__version__ == tg.__version__
    assert tg.version.cuda is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (tg.cuda.memory_allocated(), tg.cuda.max_memory_allocated(), tg.cuda.is_initialized()) == (0, 0, False)


CLOSE: dict[str, Any] = {
    "equal": lambda T: ([T.ones(2), 2.0, {"a": None}], [T.ones(2), 2.0, {"a": None}]),
    "rounding": lambda T: (T.ones(2, dtype=T.float32) + 1e-6, T.ones(2, dtype=T.float32)),
    "far": lambda T: (T.tensor([1.0, 2.0, 3.0]), T.tensor([1.0, 2.5, 4.0])),
    "integers": lambda T: (T.tensor([1, 2]), T.tensor([1, 3])),
    "nan": lambda T: (T.tensor([float("nan")]), T.tensor([float("nan")])),
    "dtype": lambda T: (T.ones(2, dtype=T.float64), T.ones(2, dtype=T.float32)),
    "shape": lambda T: (T.ones(2), T.ones(3)),
    "length": lambda T: ([T.ones(2)], [T.ones(2), 1]),
    "keys": lambda T: ({"a": 1}, {"b": 1}),
    "item": lambda T: ({"a": [1.0, 2.0]}, {"a": [1.0, 3.0]}),
    "scalars": lambda T: (1.0, 1.1),
}


@needs_torch
@pytest.mark.parametrize("name", CLOSE)
def test_assert_close(name: str) -> None:
    said = []
    for lib in (tg, torch):
        try:
            lib.testing.assert_close(*CLOSE[name](lib))
        except AssertionError as error:
            said.append(str(error).splitlines())
        else:
            said.append([])
    ours, theirs = said
    assert len(ours) == len(theirs), (ours, theirs)
    if ours and name not in ("shape", "dtype", "keys"):  # whose names differ
        assert ours[:3] == theirs[:3]
