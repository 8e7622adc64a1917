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
    from operator import itemgetter

    _new = tuple.__new__

    class _Meta(type):
        """Makes properties of annotations."""

        def __new__(meta, name, bases, namespace):
            if hasattr(bases[0], "_fields") and bases[0]._fields:
                return super().__new__(meta, name, bases, {"__slots__": (), **namespace})
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace[field] for field in fields if field in namespace}
            if list(defaults) != list(fields[len(fields) - len(defaults) :]):
                raise TypeError(f"{name}: a field without default follows one with default")
            namespace.update({field: _getter(number, "") for number, field in enumerate(fields)})
            namespace.update(__slots__=(), _fields=fields, __match_args__=fields)
            namespace.update(_field_defaults=defaults, _defaults=tuple(defaults.values()))
            # Of one field, itemgetter returns no tuple.
            namespace["_in_order"] = staticmethod(
                itemgetter(*fields) if len(fields) > 1 else lambda given: tuple(given.values())
            )
            return super().__new__(meta, name, bases, namespace)

    class NamedTuple(tuple, metaclass=_Meta):
        """The base of named tuples: a subclass annotates its fields, and may give the last ones defaults."""

        def __new__(cls, *values, **named):
            """Return a tuple of values in the order of the fields, or given by name."""
            missing = len(cls._fields) - len(values)
            if not missing and not named:
                return _new(cls, values)
            if named or not 0 <= missing <= len(cls._defaults):
                return _new(cls, cls._completed(values, named))
            return _new(cls, values + cls._defaults[len(cls._defaults) - missing :])

        @classmethod
        def _completed(cls, values, named):
            """Return the values of all fields, in their order."""
            given = cls._field_defaults | named
            if values:
                given |= zip(cls._fields, values, strict=False)  # there may be too many
            if len(given) == len(cls._fields) >= len(values) and named.keys().isdisjoint(cls._fields[: len(values)]):
                try:
                    return cls._in_order(given)
                except KeyError:
                    pass
            raise TypeError(f"{cls.__name__} has the fields {cls._fields}, not {len(values)} and {sorted(named)}")

        @classmethod
        def _make(cls, values):
            """Return a tuple with these values."""
            return cls(*values)

        def _replace(self, **named):
            """Return a tuple with some values replaced."""
            replaced = _new(type(self), map(named.pop, self._fields, self))
            if named:
                raise ValueError(f"{type(self).__name__} has no fields {sorted(named)}")
            return replaced

        def _asdict(self):
            """Return the values by the names of their fields."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            values = ", ".join([f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True)])
            return f"{type(self).__name__}({values})"

        def __getnewargs__(self):
            """For `copy` and `pickle`."""
            return tuple(self)
