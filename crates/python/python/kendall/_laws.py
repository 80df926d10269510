"""Laws of random times from scipy.stats and from samples."""

from __future__ import annotations

from typing import Any

STRATA = 20_000
"""How many equally likely values stand for a law that kendall has no letter for."""

Law = tuple[str, dict[str, float], "list[float] | None"]
"""The letter of the notation, the mean and squared coefficient of variation, and samples if the letter is G."""


def is_scipy(law: object) -> bool:
    """Whether it is a frozen distribution of scipy.stats."""
    return hasattr(law, "ppf") and hasattr(law, "dist") and hasattr(law, "mean")


def from_scipy(law: Any) -> Law:
    """The same law where kendall has it, otherwise its quantiles at evenly spaced shares, which keep its mean.

    An exponential, gamma with a whole shape, uniform, or log-normal law at its usual place is the law of that name; a constant has no
    object in scipy.stats.
    """
    mean, variance = float(law.mean()), float(law.var())
    shape, loc = _parameters(law)
    name = law.dist.name
    if name == "expon" and loc == 0:
        return "M", {"mean": mean}, None
    if name in ("gamma", "erlang") and loc == 0 and float(shape[0]).is_integer():
        return f"E{int(shape[0])}", {"mean": mean}, None
    if name == "uniform":
        return "U", {"mean": mean, "scv": variance / mean**2}, None
    if name == "lognorm" and loc == 0:
        return "LN", {"mean": mean, "scv": variance / mean**2}, None
    values = [float(value) for value in law.ppf([(k + 0.5) / STRATA for k in range(STRATA)])]
    if values[0] < 0:
        raise ValueError(f"{name} has negative values, which no time has; truncate it, or pass samples")
    # The last stratum of a heavy tail is longer than its middle says.
    scale = mean / (sum(values) / len(values))
    return "G", {}, [scale * value for value in values]


def _parameters(law: Any) -> tuple[tuple[float, ...], float]:
    """The shape parameters of a frozen law, and its location."""
    shape, loc, _ = law.dist._parse_args(*law.args, **law.kwds)
    return tuple(shape), float(loc)
