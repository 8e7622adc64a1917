"""The base of layers that are a function with options: the options are the fields of the class."""

from __future__ import annotations

import functools
import inspect
from typing import Any, ClassVar, dataclass_transform

from tapegrad.nn import functional
from tapegrad.nn.modules.module import Module


@dataclass_transform(eq_default=False)
class Layer(Module):
    """A module whose annotated attributes are the parameters of its constructor, as in a dataclass.

    Its forward calls the function of `tapegrad.nn.functional` that the class names, with its operands and with the
    fields by name.
    """

    _fields: ClassVar[dict[str, Any]] = {}
    __signature__: ClassVar[inspect.Signature] = inspect.Signature()
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
        if "__init__" not in vars(cls):
            cls._add_fields()
        if function:
            cls._function = function
        if show is not None:
            cls._shown = tuple(show.split())

    @classmethod
    def _add_fields(cls) -> None:
        own = {
            name: vars(cls).get(name, inspect.Parameter.empty)
            for name, annotation in inspect.get_annotations(cls).items()
            if not str(annotation).startswith(("ClassVar", "typing.ClassVar"))
        }
        for name in own:
            if name in vars(cls):
                delattr(cls, name)  # as in PyTorch, only instances have them
        cls._fields = {**cls._fields, **own}
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        cls.__signature__ = inspect.Signature(
            [inspect.Parameter(name, kind, default=default) for name, default in cls._fields.items()]
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        try:
            given = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._get_name()}.__init__() {error}") from None
        self.__dict__.update({**self._fields, **given.arguments})
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
        if len(operands) > 1 and len(operands) > (
            most := _most_operands(self.__class__)  # type: ignore[arg-type]
        ):
            raise TypeError(
                f"{self._get_name()}.forward() takes {1 + most} positional arguments but {1 + len(operands)} were given"
            )
        return getattr(functional, self._function)(*operands, **self._options(), **options)

    def extra_repr(self) -> str:
        names = self._fields if self._shown is None else self._shown
        hidden = self._shown is None and not self.__dict__.get("inplace")
        own = self.__dict__
        return ", ".join(f"{name}={own[name]!r}" for name in names if not (hidden and name == "inplace"))


@functools.cache
def _most_operands(cls: type[Layer]) -> int:
    """Return how many operands a layer's function has before its options."""
    names = list(inspect.signature(getattr(functional, cls._function)).parameters)
    return next((place for place, name in enumerate(names) if name in cls._fields or name == "inplace"), len(names))
