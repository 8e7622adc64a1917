"""Small programs that run on tapegrad and, where it is installed, on PyTorch, and give the same on both.

Each is a function of the library, and returns what is compared: tensors, numbers, texts.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tests.both import needs_torch
from tests.torch_programs import torch

Program = Callable[[Any], Any]
PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def plain(value: Any) -> Any:
    """Return a result with arrays for tensors, and without the names of the libraries."""
    if isinstance(value, (tg.Tensor, torch.Tensor)):
        return value.detach().numpy()
    if isinstance(value, dict):
        return {key: plain(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(own) for own in value]
    return value


def check_equal(ours: Any, theirs: Any, where: str = "") -> None:
    if isinstance(ours, (list, dict)):
        assert len(ours) == len(theirs), where
        for key in ours if isinstance(ours, dict) else range(len(ours)):
            check_equal(ours[key], theirs[key], f"{where}[{key!r}]")
    elif isinstance(ours, (np.ndarray, float)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12, err_msg=where)
    else:
        assert ours == theirs, where


@pytest.fixture(autouse=True)
def _numbers_are_double() -> Any:
    if torch is None:
        yield
        return
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def refusal(call: Callable[[], Any]) -> Any:
    """Return the type and the message of the error that a call raises."""
    with pytest.raises(Exception) as raised:  # noqa: PT011  # of either library
        call()
    return raised.type.__name__, str(raised.value)


def warned(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(own.message) for own in caught]


@program
def writes_to_real_and_imaginary_parts(T: Any) -> Any:
    z, a = T.zeros(3, dtype=T.complex128), T.tensor([1.0, 2.0, 3.0], requires_grad=True)
    z.real = a * 2
    z.imag = a**2
    z.imag += 1
    (z.abs() ** 2).sum().backward()
    x = T.ones(2)
    x.real = T.tensor([3.0, 4.0])
    return z, a.grad, x


@program
def hooks_of_leaves_that_are_no_longer_alive(T: Any) -> Any:
    seen = []

    def loss() -> Any:
        w = T.tensor([1.0, 2.0], requires_grad=True)
        w.register_post_accumulate_grad_hook(lambda leaf: seen.append((leaf.detach().clone(), leaf.grad.clone())))
        return (w * w).sum()

    result = loss()
    gc.collect()
    result.backward()
    return seen


@program
def containers_as_dictionaries(T: Any) -> Any:
    d = T.nn.ModuleDict({"a": T.nn.ReLU(), "b": T.nn.Linear(1, 2)})
    return repr(d.keys()), repr(d.items()), [type(own).__name__ for own in d.values()], [key for key, _ in d.items()]


@program
def images_with_new_axes(T: Any) -> Any:
    x = T.arange(12.0).reshape(3, 4).requires_grad_()
    at = T.full((2,), 0.25, requires_grad=True)
    found = T.nn.functional.grid_sample(x[None, None], at[None, None, None], align_corners=True)
    found.sum().backward()
    return found, x.grad, at.grad


@program
def sizes_as_several_arguments(T: Any) -> Any:
    x = T.arange(3.0)
    return x.broadcast_to(2, 3), x.broadcast_to((2, 3)), T.broadcast_to(x, (1, 3))


@program
def inputs_of_a_function_by_name(T: Any) -> Any:
    needs = []

    class Product(T.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            needs.append(ctx.needs_input_grad)
            x, y = ctx.saved_tensors
            return grad * y, grad * x

    a, b = T.tensor(2.0, requires_grad=True), T.tensor(3.0, requires_grad=True)
    found = [Product.apply(a, y=b), Product.apply(x=b, y=a), Product.apply(y=b, x=T.tensor(4.0))]
    sum(found).backward()
    return found, a.grad, b.grad, sorted(needs)


@program
def kinds_of_tensors_as_dtypes(T: Any) -> Any:
    x = T.tensor([1.5, 2.0])
    found = [x.type(kind) for kind in (T.FloatTensor, T.LongTensor, "torch.IntTensor", T.float32)]
    return found, [str(own.dtype).removeprefix("torch.") for own in found]


@program
def unknown_names_in_functional_calls(T: Any) -> Any:
    m = T.nn.Linear(2, 1)
    zeros = {"weight": T.zeros(1, 2), "bias": T.ones(1), "unknown": T.ones(3)}
    return T.func.functional_call(m, zeros, T.ones(1, 2)), hasattr(m, "unknown")


@program
def older_hooks_of_states(T: Any) -> Any:
    m, seen = T.nn.Linear(1, 1), []
    m._register_state_dict_hook(lambda module, state, prefix, metadata: state.update(extra=T.ones(1)))
    m._register_load_state_dict_pre_hook(lambda state, prefix, *_: seen.append((prefix, state.pop("extra"))))
    m._register_load_state_dict_pre_hook(lambda module, state, *_: seen.append(type(module).__name__), with_module=True)
    state = m.state_dict()
    return list(state), repr(m.load_state_dict(state)), seen


@program
def members_of_a_module_as_dictionaries(T: Any) -> Any:
    m = T.nn.Sequential(T.nn.Linear(1, 2), T.nn.BatchNorm1d(2))
    shown = [repr(m._modules), repr(m._modules.keys()), repr(m._modules.items()), repr(m[1]._buffers.keys())]
    names = [list(m._modules), [type(own).__name__ for own in m._modules.values()], "0" in m._modules, len(m._modules)]
    m._modules["0"] = T.nn.Identity()
    del m._modules["1"]
    return shown, names, repr(m), list(dict(m._modules))


@program
def second_derivatives_of_straight_lines(T: Any) -> Any:
    """They are 0, also by what nothing but a relu depends on, e.g. the input of a network."""
    F, found = T.nn.functional, []
    functions = (F.relu, F.leaky_relu, F.relu6, F.hardtanh, F.softshrink, F.hardshrink, F.threshold, F.prelu)
    for function, more in zip(functions, [()] * 6 + [(0.1, 0.0), (T.full((1,), 0.5),)], strict=True):
        x = T.tensor([-2.0, -0.25, 0.25, 2.0, 8.0], requires_grad=True)
        w = T.ones(5, requires_grad=True)
        (slope,) = T.autograd.grad((w * function(x, *more)).sum(), x, create_graph=True)
        found.append((slope, T.autograd.grad((slope**2).sum(), (x, w))))
    return found


@program
def dtypes_of_results(T: Any) -> Any:
    single, double, small = T.ones(2, dtype=T.float32), T.ones((), dtype=T.float64), T.ones(2, dtype=T.int32)
    long, truth, bytes_ = T.arange(3), T.ones(2) > 0, T.ones(2, dtype=T.uint8)
    results = [
        single * double, single * T.ones(2), long * T.tensor(2.0), long / 2, truth + truth, long.sin(),
        small * T.tensor(2), small * 2.5, truth.sum(), small.sum(), bytes_.cumsum(0), truth * 2,
        bytes_ + 1, long // 2, long % 2, long**2,
        T.full((2,), 3), T.full((2,), 3.0), T.zeros_like(small), T.where(truth, single, 0.0), T.where(truth, 1, 2),
        T.sum(single, dtype=T.float64), T.tensor([1, 2.0]), T.tensor([True]), T.tensor(1 + 2j), single.type_as(small),
        T.stack([single, T.ones(2)]), T.cat([small, T.arange(2)]), single + 1j, T.eye(2), T.linspace(0, 1, 3),
    ]  # fmt: skip
    x, y = single.clone().requires_grad_(), T.ones(2).requires_grad_()
    (x * y + x.double()).sum().backward()
    same = [single.to(T.float32) is single, single.float() is single, single.double() is single, x.cpu() is x]
    single += T.ones(2)
    results += [x.grad, y.grad, single]
    return [str(own.dtype).replace("torch.", "") for own in results], same


@needs_torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_the_same_on_both(name: str) -> None:
    check_equal(plain(PROGRAMS[name](tg)), plain(PROGRAMS[name](torch)))


def test_leaves_with_hooks_are_freed() -> None:
    before = sum(isinstance(own, tg.Tensor) for own in gc.get_objects())
    for _ in range(3):
        tg.ones(2, requires_grad=True).register_post_accumulate_grad_hook(lambda leaf: None)
    gc.collect()
    assert sum(isinstance(own, tg.Tensor) for own in gc.get_objects()) == before


# What both refuse, or warn of: PyTorch's type and first words -------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "not_a_number": (lambda T: T.tensor(None), "Could not infer dtype of NoneType"),
    "text_behind_a_number": (lambda T: T.tensor([1, "a"]), "invalid data type 'str'"),
    "sizes_from_the_right": (
        lambda T: T.ones(3, 3).expand(2, 2),
        "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 1.",
    ),
    "angles": (
        lambda T: T.nn.functional.cosine_similarity(T.ones(3, 3), T.ones(2)),
        "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1",
    ),
    "dtypes_of_a_layer": (
        lambda T: T.nn.Linear(3, 2, dtype=T.float32)(T.ones(2, 3, dtype=T.float64)),
        "mat1 and mat2 must have the same dtype, but got Double and Float",
    ),
    "number_of_a_number": (
        lambda T: T.tensor(1.0)[0], "invalid index of a 0-dim tensor. Use `tensor.item()` in Python",
    ),
    "classes": (
        lambda T: T.nn.functional.cross_entropy(T.ones(2, 3), T.ones(2, dtype=T.float32)),
        "expected target dtype to be Long or Byte, but got Float",
    ),
    "rows_of_a_table": (
        lambda T: T.nn.Embedding(3, 2)(T.ones(2, dtype=T.float32)),
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got",
    ),
    "cells": (
        lambda T: T.nn.GRUCell(3, 4)(T.ones(2, 4)), "input has inconsistent input_size: got 4 expected 3",
    ),
    "copies": (
        lambda T: T.zeros(2).copy_(T.zeros(3)),
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
    ),
    "channels": (
        lambda T: T.nn.BatchNorm1d(3)(T.arange(8.0).reshape(2, 4)), "running_mean should contain 4 elements not 3",
    ),
    "imaginary_part": (
        lambda T: setattr(T.ones(2), "imag", 0.0), "imag is not implemented for tensors with non-complex dtypes",
    ),
    "part_of_a_leaf": (
        lambda T: setattr(T.ones(2, dtype=T.complex128, requires_grad=True), "real", 0.0),
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    "slices": (lambda T: T.ones(2, 3).index_select(0, T.tensor([2])), "index out of range in self"),
    "columns": (lambda T: T.ones(2, 3).index_select(1, T.tensor([3])), "INDICES element is out of DATA bounds"),
    "bags": (lambda T: _bags(T, [[0, 2]]), "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to"),
    "bags_of_maxima": (lambda T: _bags(T, [[-1]], mode="max"), "embedding_bag: Expected idx >= 0 && idx < num"),
    "labels": (lambda T: _labels(T, [0, 1, 3]), "argument #2 'target' is out of range"),
    "labels_below": (lambda T: _labels(T, [-2, 1, 0]), "argument #2 'target' is out of range"),
    "labels_behind_the_end": (lambda T: _labels(T, [1, -1, 5]), "argument #2 'target' is out of range"),
    "flat_indices": (
        lambda T: T.take_along_dim(T.ones(6), T.tensor([0, -7])), "index -7 is out of bounds for dimension 0 with size",
    ),
    **{
        f"{name}_times_a_complex_number": (
            lambda T, name=name: getattr(T, name)(T.ones(2), T.ones(2), alpha=1j),
            "For non-complex input tensors, argument alpha must not be a complex number",
        )
        for name in ("add", "sub", "rsub")
    },
    "integers_times_a_complex_number": (
        lambda T: T.tensor([1]).add(T.tensor([1]), alpha=2j),
        "For integral input tensors, argument alpha must not be a floating point number",
    ),
    "complex_factors": (lambda T: T.addmm(T.eye(2), T.eye(2), T.eye(2), alpha=1j), "value cannot be converted to type"),
    "complex_summands": (lambda T: T.addmv(T.ones(2), T.eye(2), T.ones(2), beta=1j), "value cannot be converted to"),
    "complex_quotients": (lambda T: T.addcdiv(*[T.ones(2)] * 3, value=1j), "value cannot be converted to type"),
    "complex_slices": (
        lambda T: T.ones(2).index_add(0, T.tensor([0]), T.ones(1), alpha=1j), "value cannot be converted to type",
    ),
    "double_powers": (
        lambda T: T.ones(2, dtype=T.float32).float_power_(2),
        "the base given to float_power_ has dtype Float but the operation's result requires dtype Double",
    ),
    "complex_powers": (
        lambda T: T.ones(2, dtype=T.float64).float_power_(2j),
        "the base given to float_power_ has dtype Double but the operation's result requires dtype ComplexDouble",
    ),
    **{
        f"{mode}_ends_of_{len(shape)}_dimensions_by_{count}": (
            lambda T, mode=mode, shape=shape, count=count: T.nn.functional.pad(T.ones(shape), (1,) * count, mode=mode),
            f"Padding size {count} is not supported for {len(shape)}D input tensor.",
        )
        for mode in ("circular", "reflect", "replicate")
        for shape, count in (((3,), 2), ((3, 3), 4), ((3,) * 3, 6), ((3,) * 4, 2), ((3,) * 5, 4), ((3,) * 4, 8))
    },
    "counts_of_fractions": (lambda T: T.bincount(T.ones(2)), "not implemented for '"),
    "counts_of_truth_values": (lambda T: T.bincount(T.ones(2) > 0), "not implemented for '"),
    "fewer_counts_than_none": (lambda T: T.bincount(T.tensor([1]), minlength=-1), "minlength should be >= 0"),
}  # fmt: skip


def _bags(T: Any, indices: list[list[int]], **options: Any) -> Any:
    return T.nn.functional.embedding_bag(T.tensor(indices), T.ones(2, 3, dtype=T.float64), **options)


def _labels(T: Any, labels: list[int]) -> Any:
    return T.nn.functional.multilabel_margin_loss(T.ones(2, 3), T.tensor([[0, -1, 0], labels]))


def test_refusals_name_no_function_that_users_cannot_call() -> None:
    for name in ("min", "max", "median"):
        with pytest.raises(NotImplementedError, match=f"^{name} not implemented for complex tensors"):
            getattr(tg, name)(tg.ones(2, dtype=tg.complex128), 0)


@needs_torch
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_have_the_type_and_the_words_of_torch(name: str) -> None:
    call, words = REFUSED[name]
    (kind, ours), (expected, theirs) = refusal(lambda: call(tg)), refusal(lambda: call(torch))
    assert kind == expected
    assert words in theirs
    assert words in ours


WARNED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "qr": (lambda T: T.qr(T.eye(2)), ".qr is deprecated in favor of"),
    "lu": (lambda T: T.lu(T.eye(2)), ".lu is deprecated in favor of"),
    "triangular_solve": (
        lambda T: T.triangular_solve(T.eye(2), T.eye(2)), ".triangular_solve is deprecated in favor of",
    ),
    "std": (lambda T: T.ones(1).std(), "std(): degrees of freedom is <= 0. Correction should be strictly less than"),
    "var": (lambda T: T.ones(2, 1).var(1), "var(): degrees of freedom is <= 0. Correction should be strictly less"),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNED)
def test_warnings_are_those_of_torch(name: str) -> None:
    call, words = WARNED[name]
    (message,) = warned(lambda: call(tg))
    assert words in message
    if torch is not None and name in ("std", "var"):  # it warns of the others once a process
        (message,) = warned(lambda: call(torch))
        assert words in message


def test_modes_show_themselves() -> None:
    assert repr(tg.set_grad_enabled(True)) == "set_grad_enabled(mode=True)"
