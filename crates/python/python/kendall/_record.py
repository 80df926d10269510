"""Results whose fields are attributes."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any


class Record(Mapping[str, Any]):
    """A result with named fields, as attributes and as keys.

    The names are those of the command line's ``--json``; a name that ends in ``_s`` is a time in seconds, ``_per_s`` a rate.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Any]):
        self._fields = dict(fields)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r}; there are {', '.join(self._fields)}") from None

    def __getitem__(self, name: str) -> Any:
        return _wrapped(self._fields[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._fields]

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain dictionaries, lists, numbers and texts."""
        plain: dict[str, Any] = json.loads(json.dumps(self._fields))
        return plain

    def __repr__(self) -> str:
        return "\n".join(_lines(self._fields))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [_wrapped(each) for each in value]
    return value


def _lines(value: Any, indent: str = "") -> Iterator[str]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in items:
        if isinstance(each, (dict, list)) and each:
            short = json.dumps(each, ensure_ascii=False)
            if len(indent) + len(str(name)) + len(short) < 100:
                yield f"{indent}{name}: {short}"
            else:
                yield f"{indent}{name}:"
                yield from _lines(each, indent + "  ")
        else:
            yield f"{indent}{name}: {each if isinstance(each, str) else json.dumps(each)}"
