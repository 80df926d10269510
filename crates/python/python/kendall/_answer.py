"""Answers of formula, simulation and measurement."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from kendall import _kendall
from kendall._record import Record


class Estimate(float):
    """A number, with its 95 % confidence interval where it was estimated. It is a float like any other."""

    interval: tuple[float, float] | None
    """Lower and upper end; None for an exact number."""

    def __new__(cls, value: float, interval: tuple[float, float] | None = None) -> Estimate:
        self = super().__new__(cls, value)
        self.interval = interval
        return self

    @classmethod
    def _of(cls, fields: Mapping[str, Any]) -> Estimate:
        interval = fields.get("interval")
        return cls(_number(fields["value"]), None if interval is None else (interval[0], interval[1]))

    @property
    def half_width(self) -> float:
        """Half the width of the interval; 0 for an exact number."""
        return 0.0 if self.interval is None else (self.interval[1] - self.interval[0]) / 2

    def contains(self, value: float) -> bool:
        """Whether a value is within the interval; an exact number contains only itself."""
        low, high = self.interval or (float(self), float(self))
        return low <= value <= high

    def __repr__(self) -> str:
        if self.interval is None:
            return _kendall.significant(float(self), 6)
        return f"{_kendall.significant(float(self), 4)} ± {_kendall.significant(self.half_width, 2)}"

    def __reduce__(self) -> tuple[type[Estimate], tuple[float, tuple[float, float] | None]]:
        return Estimate, (float(self), self.interval)


class Summary:
    """The distribution of a time, in seconds."""

    __slots__ = ("mean", "quantiles", "variance")

    mean: Estimate
    """The mean, in s."""
    variance: float | None
    """The variance, in s², where it is known."""
    quantiles: dict[float, Estimate]
    """Quantiles by their share: 0.5 is the median, 0.99 is p99; in s."""

    def __init__(self, fields: Mapping[str, Any]):
        self.mean = Estimate._of(fields["mean_s"])
        self.variance = fields.get("variance_s2")
        self.quantiles = {each["p"]: Estimate._of(each["value_s"]) for each in fields.get("quantiles", ())}

    def quantile(self, p: float) -> Estimate:
        """The time, in s, that a share p of all requests stays below or at.

        Raises KeyError where the answer has no such quantile.
        """
        for known, value in self.quantiles.items():
            if abs(known - p) < 1e-9:
                return value
        listed = ", ".join(f"{each:g}" for each in self.quantiles) or "none"
        raise KeyError(f"the answer has no quantile {p:g}; it has {listed}")

    def __repr__(self) -> str:
        parts = [f"mean {_time(self.mean)}"]
        parts += [f"p{100 * p:g} {_time(value)}" for p, value in self.quantiles.items() if p >= 0.5]
        return ", ".join(parts)


class ClassAnswer:
    """The answer for one class of requests."""

    __slots__ = ("name", "response", "throughput", "waiting")

    def __init__(self, fields: Mapping[str, Any]):
        self.name: str = fields["name"]
        self.response = Summary(fields["response"])
        self.waiting = Summary(fields["waiting"])
        self.throughput = Estimate._of(fields["throughput_per_s"])

    def __repr__(self) -> str:
        return f"{self.name}: response {self.response!r}"


class Answer:
    """What one method says about a station.

    Its parts are `response` and `waiting` (each a Summary, in s), `p_wait` (the share of requests that find every server busy; None
    where requests share the servers), `throughput` (in 1/s), `utilisation`, `in_system` (the mean number present), `lost` (the share
    of requests that are rejected) and `classes`.
    """

    def __init__(self, fields: Mapping[str, Any]):
        self._fields = fields
        self.response = Summary(fields["response"])
        self.waiting = Summary(fields["waiting"])
        self.p_wait = None if fields.get("p_wait") is None else Estimate._of(fields["p_wait"])
        self.throughput = Estimate._of(fields["throughput_per_s"])
        self.utilisation = Estimate._of(fields["utilisation"])
        self.in_system = Estimate._of(fields["in_system"])
        self.lost = Estimate._of(fields["lost"])
        self.classes = [ClassAnswer(each) for each in fields.get("classes") or ()]

    @property
    def source(self) -> str:
        """The formula and its reference, or how long the simulation was."""
        by: dict[str, Any] = self._fields["by"]
        if by["way"] == "formula":
            how = by.get("approximate")
            return f"{by['source']} (approximation: {how})" if how else str(by["source"])
        if by["way"] == "simulation":
            said = f"simulation of {by['customers']:,} customers after the warm-up, seed {by['seed']}"
            if by.get("needed"):
                said += f"; the station needs about {by['needed']:,} to settle, give more customers"
            return said
        return f"{by['requests']:,} requests in {by['trials']} trials"

    def to_dict(self) -> dict[str, Any]:
        """All numbers, as the command line's --json has them."""
        return dict(self._fields)

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("utilisation", _share(self.utilisation)), ("response time, mean", _time(self.response.mean))]
        rows += [
            (f"response time, p{100 * p:g}", _time(value))
            for p, value in self.response.quantiles.items()
            if p in (0.5, 0.9, 0.99)
        ]
        rows.append(("waiting time, mean", _time(self.waiting.mean)))
        if self.p_wait is not None:
            rows.append(("P(wait)", _share(self.p_wait)))
        rows.append(("in the station, mean", repr(self.in_system)))
        rows.append(("throughput, 1/s", repr(self.throughput)))
        if self.lost:
            rows.append(("lost", _share(self.lost)))
        rows += [(f"response time, {each.name}", _time(each.response.mean)) for each in self.classes]
        return rows

    def __repr__(self) -> str:
        width = max(len(name) for name, _ in self._rows()) + 2
        return "\n".join([f"{name:<{width}}{value}" for name, value in self._rows()] + [self.source])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self._rows()
        )
        return f"<table>{rows}</table><p><small>{html.escape(self.source)}</small></p>"


class NetworkAnswer(Record):
    """What one method says about a network, as a Record.

    A formula has `response_s`, `throughput_per_s`, `nodes` and the place of the `bottleneck` among them; a simulation has `overall`, of a
    request's way through the network, and `nodes`.
    """


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _time(estimate: Estimate) -> str:
    return _kendall.time_with_interval(float(estimate), estimate.interval)


def _share(estimate: Estimate) -> str:
    if estimate.interval is None:
        return _kendall.percent(float(estimate))
    return f"{_kendall.percent(float(estimate))} ± {_kendall.percent(estimate.half_width)}"
