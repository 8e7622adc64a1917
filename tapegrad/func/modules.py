"""`functional_call`, `stack_module_state`: modules as functions of their parameters.

They work with any object that has the methods ``named_parameters`` and ``named_buffers``, and whose tensors stand in
its ``__dict__``, or in dicts ``_parameters`` and ``_buffers``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tapegrad.ops.table import functions as ops
from tapegrad.tensor import Tensor

_STORES = ("_parameters", "_buffers")
_MISSING = object()


def functional_call(
    module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Mapping[str, Any] | None = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Call a module with other tensors in place of its parameters and buffers; these are restored afterwards.

    Parameters
    ----------
    module : Module
    parameter_and_buffer_dicts : dict, or tuple of dict
        Tensors by the names that ``named_parameters`` and ``named_buffers`` give them, e.g. ``"layer.weight"``.
    args : tuple or Any, optional
        Positional arguments of the call. A value that is not a tuple is the only argument.
    kwargs : dict, optional
        Keyword arguments of the call.
    tie_weights : bool
        Where a module has one tensor under several names, replace it under all of them.
    strict : bool
        Raise an error for a missing name and for an unknown one.

    Returns
    -------
    Any
        What the module returns.

    Raises
    ------
    ValueError
        If a name stands in two dicts, or two tensors are given for one that is tied.
    RuntimeError
        In strict mode.

    Examples
    --------
    >>> import tapegrad as tg
    >>> class Scale:
    ...     def __init__(self):
    ...         self.weight = tg.ones(2)
    ...
    ...     def named_parameters(self, remove_duplicate=True):
    ...         yield "weight", self.weight
    ...
    ...     def named_buffers(self, remove_duplicate=True):
    ...         return iter(())
    ...
    ...     def __call__(self, x):
    ...         return self.weight * x
    >>> tg.func.functional_call(Scale(), {"weight": tg.tensor([2.0, 3.0])}, tg.ones(2))
    tensor([2., 3.])
    """
    if isinstance(parameter_and_buffer_dicts, Mapping):
        given = dict(parameter_and_buffer_dicts)
    elif isinstance(parameter_and_buffer_dicts, (tuple, list)):
        if not all(isinstance(one, Mapping) for one in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for one in parameter_and_buffer_dicts for name in one]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: value for one in parameter_and_buffer_dicts for name, value in one.items()}
    else:
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, _tied(module, given, tie_weights, strict)):
        return module(*positional, **(kwargs or {}))


def _named_tensors(module: Any) -> dict[str, Tensor]:
    """Return all tensors of a module by name, with those that have several names under each."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False)),
    }  # fmt: skip


def _tied(module: Any, given: dict[str, Any], tie_weights: bool, strict: bool) -> dict[str, Any]:
    """Return what is replaced by what, with the other names of tensors that have several."""
    known = _named_tensors(module)
    names_of: dict[int, list[str]] = {}
    for name, tensor in known.items():
        names_of.setdefault(id(tensor), []).append(name)
    replaced = dict(given)
    for name, value in given.items() if tie_weights else ():
        for other in names_of[id(known[name])] if name in known else ():
            if other in given and given[other] is not value:
                raise ValueError(f"functional_call got multiple values for keys {[name, other]}, which are tied.")
            replaced[other] = value
    if strict:
        unexpected, missing = sorted(set(given) - set(known)), sorted(set(known) - set(replaced))
        if unexpected or missing:
            problems = [f"Unexpected key(s): {', '.join(unexpected)}."] * bool(unexpected)
            problems += [f"Missing key(s): {', '.join(missing)}."] * bool(missing)
            raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}: {' '.join(problems)}")
    return replaced


@contextmanager
def _replaced(module: Any, tensors: Mapping[str, Any]) -> Iterator[None]:
    """Replace tensors of a module, by name, in a ``with`` block."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for path, tensor in tensors.items():
            owner, name = module, path
            while "." in name:
                first, _, name = name.partition(".")
                owner = getattr(owner, first)
            before.append((owner, name, _exchange(owner, name, tensor)))
        yield
    finally:
        for owner, name, tensor in reversed(before):
            _exchange(owner, name, tensor)


def _exchange(owner: Any, name: str, tensor: Any) -> Any:
    """Set a tensor of a module, and return what it had, past ``__setattr__``, which takes parameters only.

    A name that the module does not have is added, as in PyTorch; to set `_MISSING` takes it away again.
    """
    if tensor is _MISSING:
        del vars(owner)[name]
        return None
    for store in (vars(owner), *(getattr(owner, store, {}) for store in _STORES)):
        if name in store:
            before, store[name] = store[name], tensor
            return before
    vars(owner)[name] = tensor
    return _MISSING


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and buffers of several modules of one kind, stacked: for `vmap` over an ensemble.

    Parameters
    ----------
    models : sequence of Module
        Of the same class, in the same mode.

    Returns
    -------
    parameters, buffers : dict
        By name, with the models along the first dimension. The parameters are leaves that require grad where those of
        the models do.

    Raises
    ------
    RuntimeError
        If there is no model, or they differ in class or mode.

    Examples
    --------
    >>> import tapegrad as tg
    >>> class Scale:
    ...     def __init__(self, value):
    ...         self.weight = tg.tensor([value])
    ...
    ...     def named_parameters(self):
    ...         yield "weight", self.weight
    ...
    ...     def named_buffers(self):
    ...         return iter(())
    >>> tg.func.stack_module_state([Scale(1.0), Scale(2.0)])
    ({'weight': tensor([[1.],
            [2.]])}, {})
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    modes = {getattr(model, "training", None) for model in models}
    if len(modes) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = {name: _stacked([dict(model.named_parameters())[name] for model in models], name)
                  for name, _ in models[0].named_parameters()}  # fmt: skip
    buffers = {name: _stacked([dict(model.named_buffers())[name] for model in models], name)
               for name, _ in models[0].named_buffers()}  # fmt: skip
    return parameters, buffers


def _stacked(tensors: Sequence[Tensor], name: str) -> Tensor:
    wants = {tensor.requires_grad for tensor in tensors}
    if len(wants) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    stacked: Tensor = ops.stack([tensor.detach() for tensor in tensors])
    return stacked.requires_grad_(wants.pop())


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let the batch norms of a module use the statistics of each batch, and keep none: for `vmap`, and return it.

    Parameters
    ----------
    root : Module
        Changed in place, with all its children.

    Examples
    --------
    >>> import tapegrad as tg
    >>> class BatchNorm:
    ...     def __init__(self):
    ...         self.running_mean, self.running_var, self.track_running_stats = tg.zeros(2), tg.ones(2), True
    ...
    ...     def modules(self):
    ...         yield self
    >>> norm = tg.func.replace_all_batch_norm_modules_(BatchNorm())
    >>> norm.running_mean, norm.track_running_stats
    (None, False)
    """
    for module in root.modules():
        # An instance norm has these attributes too, and its statistics are those of each sample already.
        if hasattr(module, "track_running_stats") and "BatchNorm" in type(module).__name__:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
