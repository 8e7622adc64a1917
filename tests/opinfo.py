"""PyTorch's own samples of its functions, run here: values, gradients, second gradients, and errors.

``python -m tests.opinfo [NAME ...]`` prints what differs and what is missing. The samples are those of PyTorch's OpInfo
database, which ships in its wheel. Only the sample of a function is drawn that exists here.
"""

from __future__ import annotations

import random
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo import core

import tapegrad as tg
from tests.torch_programs import OF_TRIANGLES

# Each sample looks through the stack for a `unittest.TestCase`, with the source of each frame. There is none.
core.extract_test_fn = common_utils.extract_test_fn = lambda: None


def _seed(seed: int = common_utils.SEED) -> None:
    """Seed what samples draw from: PyTorch's own function keeps the stack for each kind of device that is not there."""
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (what PyTorch's samples draw from)


common_utils.set_rng_seed = _seed  # before each sample
DTYPES: Final = (torch.float64, torch.complex128)
MOST: Final = 60  # samples of a function and a dtype
_ALL: Final = 20  # of these, every third of those behind
DRAWN: Final = "draws random numbers, of which PyTorch has others"
# Names that are not compared, with the reason.
NOT_COMPARED: Final = {
    **dict.fromkeys([
        "bernoulli", "normal", "uniform", "exponential", "geometric", "log_normal", "cauchy", "multinomial",
        "randint_like", "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "svd_lowrank",
        "pca_lowrank", "randn_like", "rand_like", "randn", "nn.functional.dropout", "nn.functional.dropout2d",
        "nn.functional.dropout3d", "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout",
        "nn.functional.rrelu",
    ], DRAWN),
    "nn.functional.triplet_margin_with_distance_loss": "takes a function: the samples have PyTorch's",
    "empty": "has any values",
    "empty_like": "has any values",
    "new_empty": "has any values",
    "new_empty_strided": "has any values",
    "zero_": "writes: a method here",
    "to": "its samples name devices",
    "as_strided_scatter": "PyTorch's has gradients where elements were replaced",
    "as_strided(partial_views)": "PyTorch's reads memory that is not the tensor's",
}  # fmt: skip
# Names that do not exist here, with the reason.
NOT_HERE: Final = {
    "_chunk_cat": "PyTorch's own",
    "native_layer_norm": "PyTorch's own",
    "empty_permuted": "memory is NumPy's",
    "jiterator_binary": "of CUDA",
    "jiterator_binary_return_by_ref": "of CUDA",
    "__rdiv__": "Python's has another name, __rtruediv__",
    **dict.fromkeys(
        [f"signal.windows.{name}" for name in (
            "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming",
            "hamming", "hann", "kaiser", "nuttall",
        )],
        "SciPy has these windows, which have no gradient",
    ),
}  # fmt: skip
# Names of which first derivatives alone are compared, with the reason.
ONCE: Final = {
    "linalg.norm(subgradients_at_zero)": "PyTorch's second derivatives are nan at 0",
    **dict.fromkeys(
        [f"nn.functional.linear_cross_entropy({how})" for how in ("chunked", "chunked_none")],
        "PyTorch's second derivatives are 0 where it computes in parts",
    ),
}
# What PyTorch refuses in other words, or what is not refused here: a pattern of its message, and the reason.
OTHER_ERRORS: Final = {
    "must be Tensor, not int|got .int, |got .Tensor, int|descriptor '__r": "a number may stand for a tensor",
    "received an invalid combination of arguments": "PyTorch lists its signatures; here the argument is named",
    "and Half": "there is no such dtype",
    "same device": "there is one device",
    "written-to tensor and|input tensor and the written-to": "results are computed before they are written",
    "not resizable": "an `out` of any length is written to",
    "up to 64 dims": "arrays of more than 64 dimensions are NumPy's ValueError",
    "internal error|Could this error message": "PyTorch's is of its checks of itself",
    "Trying to create tensor with negative": "the argument that is negative is named",
    "must be tuple of Tensors, not Tensor": "a tensor is a sequence of its parts, as np.concatenate takes it",
}  # fmt: skip
# Error samples, by name and number, that differ otherwise.
OTHER_SAMPLES: Final = {
    ("arange", 6): "PyTorch rounds the step to the dtype of `out`",
    ("multinomial", 2): "its probabilities are memory that nothing was written to",
    ("narrow_copy", 6): "narrow's words, which PyTorch's narrow has too",
    ("ormqr", 1): "the dtype is looked at before the shape",
}
# What does not depend on a choice, such as the phase of an eigenvector.
INVARIANT: Final[dict[str, Callable[..., Any]]] = {
    "linalg.eigh": lambda m, out: [out[0], abs(out[1])],
    "linalg.eig": lambda m, out: [m.real(out[0]).sum(), abs(out[1]).sum()],
    "linalg.eigvals": lambda m, out: [m.real(out).sum(), m.imag(out * out).sum()],
    "linalg.svd": lambda m, out: [
        abs(out[0][..., : out[1].shape[-1]]),
        out[1],
        abs(out[2][..., : out[1].shape[-1], :]),
    ],
    "svd": lambda m, out: [abs(out[i][..., : out[1].shape[-1]]) if i != 1 else out[1] for i in range(3)],
}


def ours(op: Any) -> Callable[..., Any] | None:
    """Return our function of an OpInfo; None if there is none.

    Some of PyTorch's call its function with other arguments in a function of their own: that one calls ours.
    """
    place: Any = tg
    for part in op.name.split("."):
        place = getattr(place, part, None)
    method = None if "." in op.name else getattr(tg.Tensor, op.name, None)
    if isinstance(method, property):
        return lambda x: getattr(x, op.name)
    if place is None:  # `uniform` is written `uniform_`
        method = method or getattr(tg.Tensor, f"{op.name}_", None)
    found = place if callable(place) and not isinstance(place, np.dtype) else method
    if found is not None and isinstance(op.op, types.FunctionType) and op.op.__module__.startswith("torch.testing"):
        names = {**op.op.__globals__, "torch": tg}
        return types.FunctionType(op.op.__code__, names, op.op.__name__, op.op.__defaults__, op.op.__closure__)
    return found


def converted(value: Any, leaves: list[tuple[torch.Tensor, tg.Tensor]]) -> Any:
    """Return an argument with our tensors and dtypes in place of PyTorch's; pairs of leaves are put into a list."""
    if isinstance(value, torch.Tensor):
        tensor = tg.tensor(array_of(value).copy())
        if value.requires_grad:
            leaves.append((value, tensor.requires_grad_(True)))
        return tensor
    if isinstance(value, torch.dtype):
        return getattr(tg, str(value).split(".")[1])
    if isinstance(value, dict):
        return {key: converted(one, leaves) for key, one in value.items() if key not in ("device", "memory_format")}
    if isinstance(value, (tuple, list)):
        items = [converted(one, leaves) for one in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def array_of(value: Any) -> np.ndarray:
    """Return a tensor of either library as an array."""
    if isinstance(value, torch.Tensor):
        return value.detach().resolve_conj().resolve_neg().numpy(force=True)
    return np.asarray(value.detach().numpy() if isinstance(value, tg.Tensor) else value)


def results_of(value: Any) -> list[Any]:
    """Return all results of a call in one list."""
    return [one for item in value for one in results_of(item)] if isinstance(value, (tuple, list)) else [value]


def are_close(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two tensors or arrays have the same shape and dtype, and nearly the same values."""
    x, y = array_of(one), array_of(other)
    alike = x.shape == y.shape and x.dtype == y.dtype
    return alike and bool(np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True))


def _precision(value: Any) -> float:
    """Return how much less precisely a call is computed than in double precision: some samples have single weights."""
    values = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    single = isinstance(value, torch.Tensor) and value.dtype in (torch.float32, torch.complex64)
    return max([1e3 if single else 1.0, *map(_precision, values)])


def _total(m: Any, results: list[Any], weights: list[np.ndarray]) -> Any:
    """Return a real number that depends on all results."""
    total = 0.0
    for result, weight in zip(results, weights, strict=True):
        product = result * m.tensor(weight)
        total = total + (m.real(product) + 0.5 * m.imag(product) if product.is_complex() else product).sum()
    return total


def _gradients(m: Any, total: Any, leaves: list[Any], again: bool) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the gradients, and those of the sum of their squares, with zeros for None."""

    def arrays(grads: Any) -> list[np.ndarray]:
        return [
            np.zeros(tuple(x.shape)) if grad is None else array_of(grad) for x, grad in zip(leaves, grads, strict=True)
        ]

    first = m.autograd.grad(total, leaves, create_graph=again, allow_unused=True)
    some = [grad * grad for grad in first if grad is not None and grad.requires_grad]
    if not again or not some:
        return arrays(first), [np.zeros(tuple(x.shape)) for x in leaves]
    squares = _total(m, some, [np.ones(tuple(one.shape)) for one in some])
    return arrays(first), arrays(m.autograd.grad(squares, leaves, allow_unused=True))


def difference(op: Any, function: Callable[..., Any], sample: Any) -> str:
    """Return what differs in a sample: nothing, if the text is empty."""
    leaves: list[tuple[torch.Tensor, tg.Tensor]] = []
    try:
        expected = OF_TRIANGLES.get(op.name, op)(sample.input, *sample.args, **sample.kwargs)
    except Exception:  # a sample that PyTorch itself refuses
        return ""
    rough = _precision((sample.input, sample.args, sample.kwargs))
    args = converted((sample.input, *sample.args), leaves)
    invariant = INVARIANT.get(op.name, lambda m, out: out)
    try:
        found = results_of(invariant(tg, function(*args, **converted(sample.kwargs, leaves))))
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    wanted = results_of(invariant(torch, expected))
    if len(found) != len(wanted):
        return f"{len(found)} results, PyTorch has {len(wanted)}"
    pairs = []
    for one, other in zip(found, wanted, strict=True):
        if not isinstance(other, torch.Tensor):
            if one != other:
                return f"result {one}, PyTorch {other}"
            continue
        if not are_close(one, other, 1e-7 * rough):
            x, y = array_of(one), array_of(other)
            return f"value {x.dtype}{x.shape} {x.ravel()[:4]}, PyTorch {y.dtype}{y.shape} {y.ravel()[:4]}"
        if one.requires_grad != other.requires_grad:
            return f"requires_grad {one.requires_grad}, PyTorch {other.requires_grad}"
        if other.requires_grad:
            pairs.append((one, other))
    if not pairs or not leaves:
        return ""
    rng = np.random.default_rng(0)
    weights = [np.asarray(rng.normal(size=one.shape)) for one, _ in pairs]
    again = op.supports_gradgrad and title(op) not in ONCE
    try:
        total = _total(torch, [other for _, other in pairs], weights)
        expected_grads = _gradients(torch, total, [one for one, _ in leaves], again)
    except Exception:  # PyTorch has no such derivative
        return ""
    try:
        total = _total(tg, [one for one, _ in pairs], weights)
        grads = _gradients(tg, total, [one for _, one in leaves], again)
    except Exception as error:
        return f"gradient raises {type(error).__name__}: {error}"
    for order, tolerance in ((0, 1e-6), (1, 1e-5)):
        for x, y in zip(grads[order], expected_grads[order], strict=True):
            if not np.allclose(x, y, rtol=tolerance * rough, atol=tolerance * rough, equal_nan=True):
                return f"gradient {order + 1} {x.ravel()[:4]}, PyTorch {y.ravel()[:4]}"
    return ""


def _is_left_out(op: Any, sample: Any) -> bool:
    """Whether a sample of attention draws what it drops; or is one of istft by a window.

    PyTorch lacks the gradient by some windows, on which the value depends; tests/test_signals.py has others.
    """
    if op.name == "istft" and sample.kwargs.get("window") is not None:
        return True
    of_heads = op.name.endswith("multi_head_attention_forward") and sample.kwargs.get("training") and sample.args[9]
    return bool(sample.kwargs.get("dropout_p") or of_heads)


def differences(
    op: Any, function: Callable[..., Any], most: int = MOST, dtypes: Sequence[torch.dtype] = DTYPES
) -> Iterator[str]:
    """Yield what differs in PyTorch's samples of a function."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for dtype in dtypes:
            if dtype not in op.dtypes:
                continue
            torch.manual_seed(0)
            with_grad = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
            for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=with_grad)):
                if number == most:
                    break
                if _is_left_out(op, sample) or (number >= _ALL and number % 3):
                    continue
                text = difference(op, function, sample)
                if text:
                    shape = getattr(sample.input, "shape", type(sample.input).__name__)
                    call = f"{tuple(shape) if not isinstance(shape, str) else shape}, {sample.args}, {sample.kwargs}"
                    yield f"{str(dtype)[6:]} sample {number}: {text}; called with {' '.join(call.split())[:160]}"


def shared(value: Any) -> Any:
    """Return an argument with our tensors, of the same memory, in place of PyTorch's."""
    if isinstance(value, torch.Tensor):
        return tg.from_numpy(array_of(value))
    if isinstance(value, dict):
        return {key: shared(one) for key, one in value.items()}
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)([shared(one) for one in value])
    return converted(value, [])


def first_words(message: str) -> list[str]:
    """Return what a message begins with, but for the call, numbers, and what stands in brackets."""
    text = re.sub(r"^[\w.]+(\(\))?: |torch\.|\(.*?\)|\[.*?\]", "", message.replace("\n", " "))
    return re.findall("[a-z_]+", text.lower())[:3]


def refusals(op: Any, function: Callable[..., Any]) -> Iterator[str]:
    """Yield where what PyTorch refuses is accepted, or refused by an error of another type or with other words."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number, error in enumerate(op.error_inputs("cpu")):
            sample = error.sample_input
            try:
                op(sample.input, *sample.args, **sample.kwargs)
                continue
            except Exception as raised:
                wanted = raised
            is_declared = (op.name, number) in OTHER_SAMPLES or re.search("|".join(OTHER_ERRORS), str(wanted))
            try:
                function(*shared((sample.input, *sample.args)), **shared(sample.kwargs))
                if not is_declared:
                    yield f"error sample {number}: accepted; PyTorch raises {wanted!r}"
            except Exception as raised:
                words = first_words(str(wanted))
                alike = isinstance(raised, type(wanted)) and first_words(str(raised))[: len(words)] == words
                if not alike and not is_declared:
                    yield f"error sample {number}: raises {raised!r}, PyTorch {wanted!r}"


def infos() -> list[Any]:
    """Return the OpInfos of functions that are differentiable and compared."""
    return [op for op in op_db if op.supports_autograd and not {op.name, title(op)} & NOT_COMPARED.keys()]


def title(op: Any) -> str:
    """Return the name of an OpInfo, with its variant."""
    return f"{op.name}({op.variant_test_name})" if op.variant_test_name else op.name


def main(names: list[str]) -> int:
    """Print what differs, for all functions or those that are named, and how many agree."""
    agree, missing, wrong = set(), set(), set()
    for op in infos():
        if names and op.name not in names:
            continue
        function = ours(op)
        if function is None:
            missing.add(op.name)
            continue
        found = [*differences(op, function), *(refusals(op, function) if op.error_inputs_func else ())]
        (wrong if found else agree).add(op.name)
        if found:
            print(f"{title(op)}: {len(found)} samples\n   {found[0]}", flush=True)
    print(f"{len(agree - wrong)} names agree, {len(wrong)} differ, {len(missing)} are missing")
    if missing:
        print("missing:", ", ".join(sorted(missing)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
