"""The base of layers that are a function with options: the options are the fields of the class."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, dataclass_transform

from tapegrad.nn import functional
from tapegrad.nn.modules.module import Module

_REQUIRED = object()


@dataclass_transform(eq_default=False)
class Layer(Module):
    """A module whose annotated attributes are the parameters of its constructor, as in a dataclass.

    Its forward calls the function of `tapegrad.nn.functional` that the class names, with its operands and with all
    fields by name.
    """

    _fields: ClassVar[dict[str, Any]] = {}
    _function: ClassVar[str]
    _shown: ClassVar[tuple[str, ...] | None] = None

    def __init_subclass__(cls, function: str = "", show: str | None = None) -> None:
        """Collect the fields.

        Parameters
        ----------
        function : str
            Name of the function.
        show : str, optional
            The fields that `repr` shows, default all; ``inplace`` only if it is set.
        """
        super().__init_subclass__()
        own = {
            name: vars(cls).get(name, _REQUIRED)
            for name, annotation in inspect.get_annotations(cls).items()
            if not str(annotation).startswith(("ClassVar", "typing.ClassVar"))
        }
        for name in own:
            if name in vars(cls):
                delattr(cls, name)  # as in PyTorch, only instances have them
        cls._fields = {**cls._fields, **own}
        if function:
            cls._function = function
        if show is not None:
            cls._shown = tuple(show.split())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        name = type(self).__name__
        if len(args) > len(self._fields):
            raise TypeError(
                f"{name}.__init__() takes at most {len(self._fields) + 1} positional arguments but {len(args) + 1} "
                "were given"
            )
        values = {**self._fields, **dict(zip(self._fields, args, strict=False))}
        for key, value in kwargs.items():
            if key not in values:
                raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{key}'")
            if key in list(self._fields)[: len(args)]:
                raise TypeError(f"{name}.__init__() got multiple values for argument '{key}'")
            values[key] = value
        missing = [repr(key) for key, value in values.items() if value is _REQUIRED]
        if missing:
            raise TypeError(
                f"{name}.__init__() missing {len(missing)} required positional argument{'s' * (len(missing) > 1)}: "
                f"{' and '.join(missing)}"
            )
        self.__dict__.update(values)
        self._setup()

    def _setup(self) -> None:
        """Look at the fields, which are there now."""

    def _options(self) -> dict[str, Any]:
        """Return the arguments of the function beside its operands: those fields that are not as by default.

        The function has the same defaults, and is called faster without arguments.
        """
        own = self.__dict__
        return {name: own[name] for name, default in self._fields.items() if own.get(name, default) is not default}

    def forward(self, *operands: Any, **options: Any) -> Any:
        return getattr(functional, self._function)(*operands, **self._options(), **options)

    def extra_repr(self) -> str:
        names = self._fields if self._shown is None else self._shown
        hidden = self._shown is None and not self.__dict__.get("inplace")
        own = self.__dict__
        return ", ".join(f"{name}={own[name]!r}" for name in names if not (hidden and name == "inplace"))
