"""Public functions: every list is made from what stands beside a function, and type checkers know the lists."""

from __future__ import annotations

import doctest
import importlib
import inspect
import operator
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import tapegrad as tg
from docs.extensions import public_names
from tapegrad.ops.table import scope
from tapegrad.ops.table.elementwise import unary
from tapegrad.ops.table.op import Op, op_table, xp
from tapegrad.ops.table.public import (
    METHODS,
    NAMESPACES,
    WRITES,
    Names,
    functions,
    names_in,
    public,
    registry,
    withdraw,
)

ROOT = Path(__file__).parents[1]

PROGRAM = """
import numpy as np
import tapegrad as tg
import tapegrad.nn.functional as F

x = tg.tensor([[1.0, 2.0]], requires_grad=True)
reveal_type(x.sin())
reveal_type(x.sum(dim=0, keepdim=True))
reveal_type(tg.softmax(x, 0))
reveal_type(F.cross_entropy(x, tg.tensor([1])))
reveal_type(x.T)
reveal_type(2 * x - x / 3)
reveal_type(x.exp_())
reveal_type(tg.randn(2, 3))
reveal_type(tg.linalg.inv(x))
reveal_type(tg.linalg.eigh(x).eigenvalues)
x.sum(dmi=0)
x.sine()
tg.softmaxx(x, 0)
"""
KNOWN = ["Tensor"] * 10
MISTAKES = [
    'Unexpected keyword argument "dmi" for "sum" of "TensorMethods"',
    '"Tensor" has no attribute "sine"',
    'Module has no attribute "softmaxx"',
]


def test_lists_are_those_of_the_registry() -> None:
    for namespace in NAMESPACES:
        module = importlib.import_module(namespace)
        for name, function in functions(namespace).items():
            assert getattr(module, name) is function
            assert name in module.__all__
    assert tg.linalg.inv.__module__ == "tapegrad.linalg"
    assert tg.relu.__module__ == "tapegrad"
    for name in names_in(WRITES):
        assert hasattr(tg.Tensor, f"{name}_")
    for name in names_in(METHODS):
        assert hasattr(tg.Tensor, name)


@pytest.mark.parametrize("name", ["multiply", "clip", "swapdims", "greater_equal", "negative"])
def test_aliases_are_methods(name: str) -> None:
    x = tg.tensor([[1.0, -2.0]])
    more = {"multiply": (3.0,), "clip": (-1.0, 0.5), "swapdims": (0, 1), "greater_equal": (0.0,)}.get(name, ())
    assert getattr(x, name)(*more).tolist() == getattr(tg, name)(x, *more).tolist()


def test_a_name_is_given_once() -> None:
    count = len(registry)
    with pytest.raises(ValueError, match=r"tapegrad\.sin is taken"):
        public(aliases=("sin",))(lambda x: x)
    assert len(registry) == count


def test_no_file_gives_a_name_twice() -> None:
    places = [place for one in registry for place in one.places()]
    assert [place for place in places if places.count(place) > 1] == []


def test_one_place() -> None:
    """An op says its names, and all lists have them."""
    count = len(registry)
    names = Names(("twofold",), ("tapegrad", "tapegrad.nn.functional"), method=True, inplace=True)
    double = unary("double_of_test", lambda x: x + x, lambda ct: 2 * ct, doc="Twice.", names=names)
    try:
        for own in ("double_of_test", "twofold"):
            for place in ("tapegrad", "tapegrad.nn.functional", METHODS):
                assert functions(place)[own] is double
        assert functions(WRITES)["double_of_test"] is double
        assert (double.__doc__ or "").endswith("tg.double_of_test(tg.tensor([0.5, 2.0]))\ntensor([1., 4.])")
    finally:
        withdraw("double_of_test")
        del op_table["double_of_test"], xp.double_of_test
    assert len(registry) == count


def test_ops_are_frozen_and_take_no_other_facts() -> None:
    op = op_table["sin"]
    with pytest.raises(AttributeError, match=r"'family' of .* it is frozen"):
        op.family = "binary"  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"Op has no \['colour'\], or lacks \['family', 'forward', .*'vjp'\]"):
        Op(name="of_test", operands=("x",), colour="red")  # type: ignore[call-arg]


def test_signatures_are_those_that_are_written() -> None:
    signature = inspect.signature(tg.sum)
    assert list(signature.parameters) == ["input", "dim", "keepdim", "dtype"]
    assert signature.return_annotation == "Tensor"


def test_ufuncs_by_name() -> None:
    x = tg.tensor([0.25, 0.5], requires_grad=True)
    for ours, theirs in [(tg.asin, np.arcsin), (tg.abs, np.fabs), (tg.sub, np.subtract), (tg.lt, np.less)]:
        args = (x, 0.25) if theirs.nin == 2 else (x,)
        assert theirs(*args).tolist() == ours(*args).tolist()
    assert np.multiply(x, x).grad_fn is not None


def test_numpy_functions_by_name() -> None:
    x = tg.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    assert np.linalg.inv(x).grad_fn is not None
    assert (
        np.linalg.solve(x, np.ones((1, 2, 1))).tolist()
        == np.linalg.solve(x.detach().numpy(), np.ones((1, 2, 1))).tolist()
    )
    assert np.amax(x, 0).tolist() == [2.0, 3.0]


def test_stubs_are_not_stale() -> None:
    pytest.importorskip("ruff")
    done = subprocess.run([sys.executable, "-m", "tools.stubs", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert not done.returncode, f"run python -m tools.stubs: {done.stdout}{done.stderr}"


def test_a_type_checker_knows_operations(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--config-file", "", "--ignore-missing-imports", "--follow-imports=silent"]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "program.py")],
        cwd=ROOT, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)},
    )  # fmt: skip
    revealed = [line.rpartition("is ")[2].strip('"') for line in done.stdout.splitlines() if "Revealed type" in line]
    assert [kind.rpartition(".")[2] for kind in revealed] == KNOWN, done.stdout + done.stderr
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(errors) == len(MISTAKES), done.stdout
    for line, words in zip(errors, MISTAKES, strict=True):
        assert words in line


def test_functions_are_called_as_they_are_found() -> None:
    for namespace in NAMESPACES:
        own = {alias for entry in registry for alias in entry.names.aliases}
        own |= {entry.name for entry in registry if entry.name != entry.function.__name__}  # of another namespace only
        for name, function in functions(namespace).items():
            assert name in own or function.__name__ == function.__qualname__ == name
            assert (function.__doc__ or "").strip(), name


def _defaults_of_torch(name: str) -> dict[str, set[object]]:
    """Return, for each parameter of PyTorch's function, the defaults that it has."""
    torch = pytest.importorskip("torch")
    found: dict[str, set[object]] = {}
    written = getattr(torch, name, None)
    if inspect.isfunction(written):
        return {own.name: {own.default} for own in inspect.signature(written).parameters.values()}
    packet = getattr(torch.ops.aten, name, None)
    for overload in packet.overloads() if packet is not None else ():
        for argument in getattr(packet, overload)._schema.arguments:
            if argument.has_default_value() and isinstance(argument.default_value, (bool, int, float, str)):
                found.setdefault(argument.name, set()).add(argument.default_value)
    return found


# PyTorch warns if the first is not given, and takes "ij"; of the others it has an overload that takes words.
OWN_DEFAULTS = {("meshgrid", "indexing"), *((f"conv{n}d", "padding") for n in (1, 2, 3))}


def test_defaults_are_those_of_torch() -> None:
    compared = 0
    linear = [(f"linalg_{name}", function) for name, function in functions("tapegrad.linalg").items()]
    for name, function in [*functions("tapegrad").items(), *functions(METHODS).items(), *linear]:
        theirs = _defaults_of_torch(name) or _defaults_of_torch(name.removeprefix("linalg_"))
        for own in inspect.signature(function).parameters.values():
            if (name, own.name) in OWN_DEFAULTS:
                continue
            if isinstance(own.default, (bool, int, float, str)) and own.name in theirs:
                compared += 1
                assert own.default in theirs[own.name], f"{name}: {own}, but of PyTorch one of {theirs[own.name]}"
    assert compared > 30


@pytest.mark.parametrize("module", ["nn.functional", "nn.init"])
def test_defaults_of_functions_in_python_are_those_of_torch(module: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = operator.attrgetter(module)(tg), operator.attrgetter(module)(torch)
    compared = 0
    for name in ours.__all__:
        pair = getattr(ours, name), getattr(theirs, name, None)
        try:
            own, other = (inspect.signature(function).parameters for function in pair)
        except (TypeError, ValueError):
            continue  # one that is not written in Python
        for parameter in own.values():
            default = other[parameter.name].default if parameter.name in other else None
            if isinstance(default, (bool, int, float, str)) and parameter.default is not None:
                compared += 1
                assert parameter.default == default, f"{name}: {parameter}, but of PyTorch {default}"
    assert compared > 5


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        (tg, "inv", "it is tapegrad.linalg.inv"),
        (tg.linalg, "softmax", "it is tapegrad.softmax"),
        (tg, "log_sum_exp", "did you mean tapegrad.logsumexp?"),
        (tg.nn.functional, "cross_entrpy", "did you mean tapegrad.nn.functional.cross_entropy?"),
        (tg, "xpu", "tapegrad computes on the CPU only"),
        (tg, "backward", "it is a method of tensors: x.backward(...)"),
        (tg, "cudnn_convolution", "it is internal to PyTorch"),
        (tg.nn.functional, "max_pool2d_with_indices", "use return_indices=True"),
        (tg, "frobnicate", "docs/reference/ops.md lists what there is"),
    ],
)
def test_a_missing_name_says_what_is_meant(module: object, name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': {re.escape(words)}"):
        getattr(module, name)
    with pytest.raises(AttributeError, match=r"has no attribute '__path_of__'$"):
        module.__path_of__  # type: ignore[attr-defined]  # noqa: B018


def test_a_function_of_numpy_that_is_missing_says_what_is_near() -> None:
    with pytest.raises(TypeError, match=r"np\.spacing does not work on tensors; .* x\.detach\(\)\.numpy\(\)"):
        np.spacing(tg.ones(3))
    with pytest.raises(TypeError, match=r"smirnov does not work on tensors: SciPy has no function .*; use x\."):
        scipy.special.smirnov(3, tg.ones(3))


# Names of PyTorch that stand in its modules by accident, or are no functions.
ACCIDENTS = (
    "TYPE_CHECKING "
    "AVG SUM PRIVATE_OPS USE_GLOBAL_DEPS USE_RTLD_GLOBAL_WITH_LIBTORCH classproperty compiled_with_cxx11_abi "
    "convolution get_file_path has_lapack has_mkl has_openmp has_spectral merge_type_from_type_comment "
    "prepare_multiprocessing_environment profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 thread_safe_generator "
    "unify_type_list is_storage is_distributed Optional BroadcastingList1 BroadcastingList2 BroadcastingList3 "
    "GRID_SAMPLE_INTERPOLATION_MODES GRID_SAMPLE_PADDING_MODES assert_int_or_pair boolean_dispatch alpha_dropout_ "
    "dropout_ feature_alpha_dropout_ feature_dropout_ is_deterministic_algorithms_warn_only_enabled"
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", ["", "Tensor", "nn.functional", "linalg", "special", "fft"])
def test_each_function_of_torch_is_here_or_declared(module: str) -> None:
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13."):
        pytest.skip("other versions have other names")
    ours, theirs = (operator.attrgetter(module)(T) if module else T for T in (tg, torch))
    undeclared = []
    for name in dir(theirs):
        found = getattr(theirs, name, None)
        if name.startswith("_") or hasattr(ours, name) or inspect.isclass(found) or inspect.ismodule(found):
            continue
        why = scope.why_missing(f"tapegrad.{module}", name)
        if name not in ACCIDENTS.split() and (why.startswith("did you mean") or why.endswith("lists what there is")):
            undeclared.append(name)
    assert undeclared == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "module",
    ["nn", "nn.Module", "nn.parameter", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations",
     "nn.utils.fusion", "nn.utils.stateless", "nn.init", "optim", "optim.Optimizer", "optim.lr_scheduler",
     "optim.swa_utils", "utils.data", "utils.data.distributed", "utils.checkpoint"],
)  # fmt: skip
def test_each_class_and_helper_of_torch_is_here_or_declared(module: str) -> None:
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13."):
        pytest.skip("other versions have other names")
    importlib.import_module("torch." + module.removesuffix(".Module").removesuffix(".Optimizer"))
    ours, theirs = (operator.attrgetter(module)(T) for T in (tg, torch))
    names = getattr(theirs, "__all__", dir(theirs))
    missing = {
        name
        for name in names
        if not name.startswith("_") and not hasattr(ours, name) and not inspect.ismodule(getattr(theirs, name, None))
    }
    assert missing <= set(scope.OUT_OF_SCOPE)


def test_a_missing_class_says_what_to_use() -> None:
    for owner, name, words in (
        (tg.nn, "SyncBatchNorm", "use the module itself, or BatchNorm2d"),
        (tg.nn, "LinearCrossEntropyLoss", "linear_cross_entropy"),
        (tg.optim, "SparseAdam", "use Adam"),
        (tg.nn.utils, "convert_conv2d_weight_memory_format", "NumPy's order"),
    ):
        with pytest.raises(AttributeError, match=words):
            getattr(owner, name)


def test_no_name_is_declared_missing_that_is_here() -> None:
    for name in scope.OUT_OF_SCOPE:
        assert not any(name in names_in(namespace) for namespace in NAMESPACES), name
        assert name == "names" or not hasattr(tg.Tensor, name), name
        assert name not in dir(tg) or "float" in str(getattr(tg, name)), name  # dtypes that are refused


# Without an example of their own: what has that of another function, and what programs do not call.
DERIVED = re.compile(r"Compute `\w+` in|Give the tensor the shape of what|`\w+`, by its older name")
NOT_CALLED = {
    "Tensor.cuda", "autograd.function.BackwardCFunction", "autograd.function.FunctionCtx",
    "autograd.function.InplaceFunction", "autograd.set_strong_zero", "program.Guard", "testing.OpSample",
    "amp.custom_bwd", "amp.custom_fwd", "cuda.max_memory_allocated", "jit.Final", "jit.ignore",
}  # fmt: skip


def test_each_public_name_has_an_example() -> None:
    without = {
        one.short
        for one in public_names.names()
        if callable(one.value) and ">>>" not in (one.value.__doc__ or "") and not DERIVED.match(one.value.__doc__ or "")
    }
    assert without == NOT_CALLED


def test_examples_of_functions_that_are_made_from_lists_run() -> None:
    """Doctest finds no function that stands in no module."""
    runner, parser = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE), doctest.DocTestParser()
    texts = {one.short: one.value.__doc__ or "" for one in public_names.names()}
    for name in ("is_sparse", "is_mps", "cpu", "share_memory_", "new_zeros", "new_empty", "is_contiguous", "uniform_"):
        test = parser.get_doctest(texts[f"Tensor.{name}"], {}, name, None, None)
        assert test.examples, name
        assert not runner.run(test).failed, name
