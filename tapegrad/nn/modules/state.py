"""`state_dict` and `load_state_dict`: the tensors of a module and of those below it, by their paths."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tapegrad.modes import no_grad
from tapegrad.nn.modules.hooks import LOAD, LOAD_PRE, SAVE, SAVE_PRE, Hooked
from tapegrad.nn.modules.members import BUFFER, MODULE, PARAMETER, Members
from tapegrad.nn.parameter import Parameter
from tapegrad.tensor import Tensor

_EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """Keys that a state dict lacks, and those that the module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def _size(tensor: Tensor) -> str:
    return f"torch.Size({list(tensor.shape)})"  # PyTorch's words, which programs look for


class Stateful(Members, Hooked):
    """The base of `Module` that gives its state away and takes it."""

    _version = 1

    def get_extra_state(self) -> Any:
        """Return what is to be saved beside the tensors; for subclasses to define."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take what `get_extra_state` returned; for subclasses to define."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _saved(self) -> Iterator[tuple[str, Tensor | None]]:
        """Yield parameters and those buffers that are saved."""
        yield from self._members(PARAMETER)
        yield from (pair for pair in self._members(BUFFER) if pair[0] not in self._non_persistent_buffers_set)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, tensor in self._saved():
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Return parameters and persistent buffers by their paths. They share memory with the module.

        Parameters
        ----------
        destination : dict, optional
            What they are added to.
        prefix : str
            Put before each path.
        keep_vars : bool
            Return the tensors themselves, not detached ones.

        Returns
        -------
        OrderedDict
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # by path: the version of each module
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for entry in self._entries(SAVE_PRE):
            entry.hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._members(MODULE):
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for entry in self._entries(SAVE):
            changed = entry.hook(self, destination, prefix, metadata)
            destination = destination if changed is None else changed
        return destination

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        for entry in self._entries(LOAD_PRE):
            entry.hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        saved = {name: tensor for name, tensor in self._saved() if tensor is not None}
        for name, tensor in saved.items():
            key = prefix + name
            if key in state_dict:
                self._load(name, tensor, state_dict[key], key, local_metadata, error_msgs)
            elif strict:
                missing_keys.append(key)
        takes_extra = type(self).set_extra_state is not Stateful.set_extra_state
        if takes_extra and prefix + _EXTRA in state_dict:
            self.set_extra_state(state_dict[prefix + _EXTRA])
        elif takes_extra and strict:
            missing_keys.append(prefix + _EXTRA)
        if strict:
            names, modules = {*saved, *[_EXTRA] * takes_extra}, self._modules
            for key in state_dict:
                if key.startswith(prefix):
                    first, dot, _ = key[len(prefix) :].partition(".")
                    if first not in (modules if dot else names):
                        unexpected_keys.append(key)

    def _load(
        self, name: str, tensor: Tensor, value: Any, key: str, metadata: dict[str, Any], error_msgs: list[str]
    ) -> None:
        """Copy one value of a state dict into a tensor, or put it in its place."""
        if not isinstance(value, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
            return
        if tensor.ndim == 0 and value.shape == (1,):
            value = value[0]
        if value.shape != tensor.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {_size(value)} from checkpoint, the shape in "
                f"current model is {_size(tensor)}."
            )
            return
        try:
            with no_grad():
                if metadata.get("assign_to_params_buffers"):
                    is_new = isinstance(tensor, Parameter) and not isinstance(value, Parameter)
                    setattr(self, name, Parameter(value, tensor.requires_grad) if is_new else value)
                else:
                    tensor.copy_(value)
        except Exception as error:
            error_msgs.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are {_size(tensor)} and '
                f"whose dimensions in the checkpoint are {_size(value)}, an exception occurred : {error.args}."
            )

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy the tensors of a state dict into this module and those below it.

        Parameters
        ----------
        state_dict : mapping of str to Tensor
        strict : bool
            Raise if keys are missing, or unexpected.
        assign : bool
            Put the tensors in the place of the module's own.

        Returns
        -------
        named tuple
            ``missing_keys`` and ``unexpected_keys``.

        Raises
        ------
        TypeError
            If `state_dict` is no mapping.
        RuntimeError
            If shapes differ, or keys do and `strict` is set. What fits has been copied.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", {})
        found, errors = IncompatibleKeys([], []), list[str]()

        def load(module: Stateful, state: dict[str, Any], prefix: str) -> None:
            own = dict(metadata.get(prefix[:-1], {}), **{"assign_to_params_buffers": True} if assign else {})
            module._load_from_state_dict(state, prefix, own, True, found.missing_keys, found.unexpected_keys, errors)
            for name, child in module._members(MODULE):
                if child is not None:
                    start = f"{prefix}{name}."
                    load(child, {key: value for key, value in state.items() if key.startswith(start)}, start)
            for entry in module._entries(LOAD):
                entry.hook(module, found)

        load(self, OrderedDict(state_dict), "")
        if strict:
            for which, keys in (("Unexpected", found.unexpected_keys), ("Missing", found.missing_keys)):
                if keys:
                    names = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{which} key(s) in state_dict: {names}. ")
        if errors:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors))
            )
        return found
