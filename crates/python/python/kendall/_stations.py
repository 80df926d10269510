"""Stations, networks and models: what queueing theory and simulation say."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from kendall import _kendall, _laws, _words
from kendall._answer import Answer, NetworkAnswer
from kendall._record import Record

AnswerOf = TypeVar("AnswerOf", Answer, NetworkAnswer)
"""The answer for a station, or for a network."""


class _Model(Generic[AnswerOf]):
    """What a station and a network have in common."""

    _compiled: _kendall.Station | _kendall.Network
    _answer: type[AnswerOf]

    def formula(self) -> AnswerOf:
        """What queueing theory says: exact, or an approximation that its `source` names.

        Raises Unstable for a utilisation of 1 or more, and NoAnswer where there is no formula; both say why.
        """
        return self._answer(json.loads(self._compiled.formula()))

    def simulate(
        self,
        customers: int | None = None,
        seed: int = 1,
        *,
        precision: float | str | None = None,
        replications: int | None = None,
        progress: bool = False,
    ) -> AnswerOf:
        """What a simulation says, with 95 % intervals.

        It ends when the interval of the mean response time is within `precision` of it (0.01 unless `customers` is given; "p99=5%" is
        of a quantile), or after `customers`. `replications` are that many runs of `customers` each from an empty station. The same seed
        gives the same answer. It uses all processors, and other threads of the interpreter run meanwhile; Ctrl-C stops it.
        """
        length = {"customers": customers, "seed": seed, "precision": precision, "replications": replications}
        return self._answer(json.loads(self._compiled.simulate(_words.options(length), _notify(progress, customers))))

    def to_dict(self) -> dict[str, Any]:
        """Its parts: laws with their parameters, servers, capacity, discipline, conditions, routes."""
        parts: dict[str, Any] = json.loads(self._compiled.to_json())
        return parts


class Station(_Model[Answer]):
    """A station in Kendall's notation, A/S/c/K/N/D.

    The keyword arguments are the options of ``kendall solve``, with underscores: ``arrival_rate``, ``service_rate``, ``service_time``,
    ``rho``, ``think_time``, ``service_scv``, ``arrival_scv``, ``servers``, ``users``, ``discipline``, ``delay``, ``rate_profile``, and
    the conditions ``patience``, ``retry``, ``breakdown``, ``setup``, ``batch_size``. Rates are per second and times in seconds; a text
    may have a unit. ``classes`` is a list of dictionaries (``name``, ``share``, ``weight``, ``service_time``).

    ``service`` is a law of scipy.stats, or measured service times in s, as an array or list; ``arrivals`` is a law of scipy.stats for the
    gaps, or recorded instants of arrival in s. The notation's letter for them may be left as it is: it becomes that of the law.

    >>> Station("M/M/6", arrival_rate=20, service_rate=4.2).formula().utilisation
    0.793651

    Raises KendallError where such a station cannot be.
    """

    _compiled: _kendall.Station
    _answer = Answer

    def __init__(
        self,
        notation: str,
        *,
        service: Any = None,
        arrivals: Any = None,
        classes: list[Mapping[str, Any]] | None = None,
        delay: _words.Quantity = 0.0,
        **options: Any,
    ):
        self._asked = dict(
            notation=notation, service=service, arrivals=arrivals, classes=classes, delay=delay, **options
        )
        given = dict(options)
        if classes is not None:
            given["class"] = list(classes)
        parts = notation.split("/")
        services = self._take(service, given, parts, 1, "service_time", "service_scv", "service")
        instants = self._take(arrivals, given, parts, 0, None, "arrival_scv", "arrivals")
        self._compiled = _kendall.Station("/".join(parts), _words.options(given), services, instants, _seconds(delay))

    @staticmethod
    def _take(
        law: Any, given: dict[str, Any], parts: list[str], place: int, time: str | None, scv: str, name: str
    ) -> bytes | None:
        """Writes a law into notation and options; returns samples where it has no letter."""
        if law is None:
            return None
        if not _laws.is_scipy(law):
            parts[place] = "G"
            return _words.doubles(law)
        letter, moments, samples = _laws.from_scipy(law)
        if samples is not None and place == 0:
            raise ValueError(f"{name}: kendall has no letter for this law of gaps; pass recorded instants instead")
        parts[place] = letter
        if samples is not None:
            return _words.doubles(samples)
        if time is None:
            given["arrival_rate"] = 1.0 / moments["mean"]
        else:
            given[time] = moments["mean"]
        if "scv" in moments:
            given[scv] = moments["scv"]
        return None

    @property
    def notation(self) -> str:
        """The station in Kendall's notation, with its rates."""
        return self._compiled.notation

    @property
    def offered_utilisation(self) -> float | None:
        """The utilisation that arrivals and service imply, above 1 where the station is unstable."""
        return self._compiled.offered_utilisation

    @property
    def arrival_rate(self) -> float | None:
        """Requests per second, where arrivals have a rate; None for a closed population."""
        return self._compiled.arrival_rate

    def at(self, arrival_rate: _words.Quantity) -> Station:
        """The same station at another arrival rate, in 1/s."""
        asked = {name: value for name, value in self._asked.items() if name not in ("rho", "lambda_")}
        return Station(**{**asked, "arrival_rate": arrival_rate})

    def trace(self, customers: int = 10_000, seed: int = 1) -> dict[str, Any]:
        """The customers of a simulated run that begins with an empty station: of so many arrivals, those that were served.

        Returns arrays of doubles by name: arrival_s, service_s, waiting_s and response_s. They are memory views, which
        ``numpy.asarray`` takes without a copy, and ``pandas.DataFrame`` and ``polars.DataFrame`` take as columns.
        """
        return {name: memoryview(each).cast("d") for name, each in self._compiled.trace(customers, seed).items()}

    def plan(self, precision: float = 0.05) -> Record:
        """How many requests a measurement needs until the 95 % interval of its mean response time is within `precision` of it."""
        return Record(json.loads(self._compiled.plan(precision)))

    def approximations(self) -> list[Record]:
        """The textbooks' approximations of the mean wait."""
        return [Record(each) for each in json.loads(self._compiled.approximations())]

    def __repr__(self) -> str:
        rho = self.offered_utilisation
        return f"<Station {self.notation}" + ("" if rho is None else f", utilisation {_kendall.percent(rho)}") + ">"


class Network(_Model[NetworkAnswer]):
    """Stations with routes between them, open or with a closed population of users.

    `description` is a TOML file, its text, or a dictionary of the same form (docs/networks.md).

    Raises KendallError where such a network cannot be.
    """

    _compiled: _kendall.Network
    _answer = NetworkAnswer

    def __init__(self, description: Path | str | Mapping[str, Any]):
        if isinstance(description, Mapping):
            text = _kendall.toml(json.dumps(description))
        elif isinstance(description, Path) or "\n" not in description:
            text = Path(description).read_text(encoding="utf-8")
        else:
            text = description
        self._compiled = _kendall.Network(text)

    def bounds(self) -> Record | None:
        """Bounds of throughput and response time by the number of users; None for an open network."""
        found = self._compiled.bounds()
        return None if found is None else Record(json.loads(found))

    def __repr__(self) -> str:
        stations = self.to_dict()["station"]
        return f"<Network of {', '.join(each['name'] for each in stations)}>"


def model(name: str, **inputs: Any) -> Record:
    """Every quantity of a model of the textbooks: ``model("closed_mva", D=[0.05, 0.03], Z=1, N=20)``. See models()."""
    return Record(json.loads(_kendall.model(name, json.dumps(inputs))))


def models() -> dict[str, Record]:
    """The models by name, each with what it is about, its inputs and its quantities."""
    return {
        name: Record({"about": about, "inputs": inputs, "quantities": quantities})
        for name, about, inputs, quantities in _kendall.models()
    }


def _notify(progress: bool, customers: int | None) -> Callable[[int], object] | None:
    if not progress:
        return None

    def show(so_far: int) -> None:
        of = "" if customers is None else f" of {customers:,}"
        print(f"\r{so_far:,}{of} customers", end="", file=sys.stderr, flush=True)

    return show


def _seconds(time: _words.Quantity) -> float:
    if isinstance(time, str):
        units = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "min": 60.0, "s": 1.0}
        for unit, scale in units.items():
            if time.endswith(unit):
                return float(time.removesuffix(unit)) * scale
    return float(time)
