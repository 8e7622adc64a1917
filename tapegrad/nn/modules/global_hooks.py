"""Hooks of all modules, which PyTorch has in `torch.nn.modules.module`: they run before a module's own hooks.

They stand in the class attribute that a call looks at anyway to see whether a module has hooks. A function that was
compiled before does not notice them, as in PyTorch.
"""

from __future__ import annotations

from tapegrad.nn.modules.hooks import BACKWARD, BACKWARD_PRE, FORWARD, FORWARD_PRE, Entry, Hook, Hooked, added
from tapegrad.nn.modules.members import BUFFER, MODULE, PARAMETER, REGISTRATION_HOOKS
from tapegrad.tape.hooks import RemovableHandle


def _add(kind: str, entry: Entry) -> RemovableHandle:
    return added(Hooked._hooks, kind, entry)


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, args)`` before the forward of every module; what it returns takes the place of the arguments.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.modules.module import register_module_forward_pre_hook
    >>> with register_module_forward_pre_hook(lambda module, args: print(module)):
    ...     _ = tg.nn.Sequential(tg.nn.ReLU())(tg.zeros(2))
    Sequential(
      (0): ReLU()
    )
    ReLU()
    """
    return _add(FORWARD_PRE, Entry(hook))


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after the forward of every module.

    Parameters
    ----------
    hook : callable
        What it returns takes the place of the output.
    with_kwargs : bool
        Call ``hook(module, args, kwargs, output)``.
    always_call : bool
        Call it with None also when the forward raises.

    Returns
    -------
    RemovableHandle

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.modules import module
    >>> with module.register_module_forward_hook(lambda module, args, output: 2 * output):
    ...     tg.nn.ReLU()(tg.ones(2))
    tensor([2., 2.])
    """
    return _add(FORWARD, Entry(hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the backward of every module; it may return other gradients.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.modules import module
    >>> x = tg.ones(2, requires_grad=True)
    >>> with module.register_module_full_backward_pre_hook(lambda module, grad_output: print(module, grad_output)):
    ...     tg.nn.ReLU()(x).sum().backward()
    ReLU() (tensor([1., 1.]),)
    """
    return _add(BACKWARD_PRE, Entry(hook))


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` once the gradients of the inputs of any module are there.

    It may return other gradients of the inputs.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.modules import module
    >>> x = tg.ones(2, requires_grad=True)
    >>> with module.register_module_full_backward_hook(lambda module, grad_input, grad_output: (3 * grad_input[0],)):
    ...     tg.nn.ReLU()(x).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    """
    return _add(BACKWARD, Entry(hook))


register_module_backward_hook = register_module_full_backward_hook  # PyTorch's older name


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` when a module gets a parameter; it may return another one.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.modules import module
    >>> with module.register_module_parameter_registration_hook(lambda module, name, parameter: print(name)):
    ...     _ = tg.nn.Linear(2, 1)
    weight
    bias
    """
    return RemovableHandle(REGISTRATION_HOOKS[PARAMETER], hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` when a module gets a buffer; it may return another one.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.modules import module
    >>> with module.register_module_buffer_registration_hook(lambda module, name, buffer: print(name)):
    ...     _ = tg.nn.BatchNorm1d(2)
    running_mean
    running_var
    num_batches_tracked
    """
    return RemovableHandle(REGISTRATION_HOOKS[BUFFER], hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` when a module gets a child; it may return another one.

    Examples
    --------
    >>> import tapegrad as tg
    >>> from tapegrad.nn.modules import module
    >>> with module.register_module_module_registration_hook(lambda module, name, submodule: print(name, submodule)):
    ...     _ = tg.nn.Sequential(tg.nn.ReLU())
    0 ReLU()
    """
    return RemovableHandle(REGISTRATION_HOOKS[MODULE], hook)
