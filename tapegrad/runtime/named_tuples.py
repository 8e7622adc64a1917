"""Named tuples as `typing.NamedTuple` makes them, for a tenth of the time at import.

Python's compile a function for each class, and check what we know: thirty of them would be a sixth of `import
tapegrad`. A type checker sees Python's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import _tuplegetter as _getter  # a property of which CPython knows that it reads an item

    _new = tuple.__new__
    # By the number of a field, shared by all classes.
    _GETTERS = [_getter(number, f"Field {number}.") for number in range(32)]

    class _Meta(type):
        """Makes properties of annotations."""

        def __new__(meta, name, bases, namespace):
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace[field] for field in fields if field in namespace}
            if list(defaults) != list(fields[len(fields) - len(defaults) :]):
                raise TypeError(f"{name}: a field without default follows one with default")
            namespace.update(zip(fields, _GETTERS, strict=False))
            namespace.update(__slots__=(), _fields=fields, __match_args__=fields)
            namespace.update(_field_defaults=defaults, _defaults=tuple(defaults.values()))
            return super().__new__(meta, name, bases, namespace)

    class NamedTuple(tuple, metaclass=_Meta):
        """The base of named tuples: a subclass annotates its fields, and may give the last ones defaults."""

        def __new__(cls, *values, **named):
            """Return a tuple of values in the order of the fields, or given by name."""
            missing = len(cls._fields) - len(values)
            if named or not 0 <= missing <= len(cls._defaults):
                return _new(cls, cls._completed(values, named))
            return _new(cls, values + cls._defaults[len(cls._defaults) - missing :] if missing else values)

        @classmethod
        def _completed(cls, values, named):
            """Return the values of all fields, in their order."""
            rest, given = cls._fields[len(values) :], cls._field_defaults | named
            try:
                completed = (*values, *[given[field] for field in rest])
            except KeyError as error:
                raise TypeError(f"{cls.__name__} needs a value for {error}") from None
            if len(completed) > len(cls._fields):
                raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(values)}")
            for name in named:
                if name not in rest:
                    raise TypeError(f"{cls.__name__} has no field {name!r}, or two values for it")
            return completed

        @classmethod
        def _make(cls, values):
            """Return a tuple with these values."""
            return cls(*values)

        def _replace(self, **named):
            """Return a tuple with some values replaced."""
            unknown = sorted(named.keys() - set(self._fields))
            if unknown:
                raise ValueError(f"{type(self).__name__} has no fields {unknown}")
            return _new(type(self), [named.get(*pair) for pair in zip(self._fields, self, strict=True)])

        def _asdict(self):
            """Return the values by the names of their fields."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            values = ", ".join([f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True)])
            return f"{type(self).__name__}({values})"

        def __getnewargs__(self):
            """For `copy` and `pickle`."""
            return tuple(self)
