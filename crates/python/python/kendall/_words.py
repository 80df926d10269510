"""Values as the options of the command line have them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

Quantity = Union[float, int, str]
"""A number in seconds or per second, or a text with a unit: "20ms", "600/min"."""

Samples = Union[Sequence[float], Iterable[float]]


def options(given: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as options, each in one word: arrival_rate=20 is --arrival-rate=20."""
    words = []
    for name, value in given.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple)):
            words += [f"{option}={_word(each)}" for each in value]
        else:
            words.append(f"{option}={_word(value)}")
    return words


def _word(value: Any) -> str:
    """A value; the parts of a dictionary are key=value pairs."""
    if isinstance(value, Mapping):
        return ",".join(f"{name.rstrip('_').replace('_', '-')}={_word(each)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return "/".join(_word(each) for each in value)
    if isinstance(value, float) or hasattr(value, "__float__"):
        # Of a NumPy number, too.
        return repr(float(value)).removesuffix(".0")
    return str(value)


def doubles(samples: Samples) -> bytes:
    """Numbers as the bytes of doubles; a NumPy array without a loop."""
    if hasattr(samples, "__array__"):
        import numpy

        return numpy.ascontiguousarray(samples, dtype=numpy.float64).tobytes()
    return array("d", samples).tobytes()
