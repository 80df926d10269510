"""Figures with matplotlib, in the colours of kendall's reports.

Each function draws on `axes`, by default on those of a new figure, and returns them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kendall._kendall import NoAnswer
from kendall._runs import Run
from kendall._stations import Station

INK, SOFT, GRID = "#1a1a1a", "#595959", "#e3e3e0"
COLOURS = ("#0b62a8", "#b34700", "#00795a", "#8a3b7f")


def response(
    station: Station | None = None,
    run: Run | None = None,
    *,
    rates: Iterable[float] = (),
    quantile: float | None = None,
    customers: int = 200_000,
    axes: Any = None,
) -> Any:
    """Mean response time, or a quantile of it, against the arrival rate.

    Of a station there is the formula as a line, or where there is none the simulation with its intervals; of a run the measured points
    with theirs. `rates`, in 1/s, are those of the station: by default twenty up to 95 % of its capacity.
    """
    axes = axes or _axes()
    if station is not None:
        _station_line(station, list(rates), quantile, customers, axes)
    if run is not None:
        _measured_points(run, quantile, axes)
    what = "mean response time" if quantile is None else f"p{100 * quantile:g} of the response time"
    return _finished(axes, "arrival rate [1/s]", f"{what} [s]")


def _station_line(
    station: Station, rates: list[float], quantile: float | None, customers: int, axes: Any
) -> None:
    points = []
    for rate in rates or _usual_rates(station):
        at_rate = station.at(rate)
        try:
            answer, is_exact = at_rate.formula(), True
            if quantile is not None and quantile not in answer.response.quantiles:
                raise NoAnswer("the formula has no such quantile")
        except NoAnswer:
            answer, is_exact = at_rate.simulate(customers), False
        times = answer.response
        points.append((rate, times.mean if quantile is None else times.quantile(quantile), is_exact))
    x, y = [point[0] for point in points], [float(point[1]) for point in points]
    is_exact = all(point[2] for point in points)
    axes.plot(x, y, color=COLOURS[0], linestyle="-" if is_exact else "--", label="formula" if is_exact else "simulation")
    bands = [estimate.interval or (float(estimate), float(estimate)) for _, estimate, _ in points]
    if not is_exact:
        axes.fill_between(x, *zip(*bands, strict=True), color=COLOURS[0], alpha=0.13, linewidth=0)


def _usual_rates(station: Station) -> list[float]:
    rate, utilisation = station.arrival_rate, station.offered_utilisation
    if rate is None or utilisation is None:
        raise ValueError(f"{station.notation} has no arrival rate; a closed population has users instead")
    return [rate / utilisation * 0.95 * (k + 1) / 20 for k in range(20)]


def _measured_points(run: Run, quantile: float | None, axes: Any) -> None:
    for point in run.report.to_dict()["points"]:
        measured, rate = point["measured"], point["offered_per_s"]
        estimate = measured["response"]["mean_s"]
        if quantile is not None:
            matching = [each for each in measured["response"]["quantiles"] if abs(each["p"] - quantile) < 1e-9]
            if not matching:
                continue
            estimate = matching[0]["value_s"]
        low, high = estimate.get("interval") or (estimate["value"], estimate["value"])
        value = estimate["value"]
        axes.errorbar(rate, value, yerr=[[value - low], [high - value]], color=INK, fmt="o", markersize=4, capsize=2)


def distribution(
    *samples: Sequence[float], labels: Sequence[str] = (), survival: bool = False, axes: Any = None
) -> Any:
    """The distribution of times in s, each of the samples as a line: the share of requests that took at most so long.

    With `survival`, the share that took longer, on logarithmic axes, which show the tail.
    """
    axes = axes or _axes()
    for number, times in enumerate(samples):
        values = sorted(float(value) for value in times)
        shares = [(at + 1) / len(values) for at in range(len(values))]
        if survival:
            shares = [1 - share + 0.5 / len(values) for share in shares]
        label = labels[number] if number < len(labels) else None
        axes.step(values, shares, where="post", color=COLOURS[number % len(COLOURS)], label=label)
    if survival:
        axes.set_xscale("log")
        axes.set_yscale("log")
    return _finished(axes, "response time [s]", "share that took longer" if survival else "share of requests")


def gantt(run: Run, *, trial: str | None = None, first: int = 0, count: int = 60, axes: Any = None) -> Any:
    """Single requests of a run as bars in time: due, sent, waiting, served, answered."""
    axes = axes or _axes()
    files = [file for file in run.files if trial is None or file.parent.name == trial]
    if not files:
        raise ValueError(f"{run.path} has no trial {trial!r}")
    rows = _rows(files[0], first, count)
    for place, row in enumerate(rows):
        steps = [row["scheduled"], row["sent"], row["queued"], row["started"], row["finished"], row["completed"]]
        colours = [COLOURS[3], SOFT, COLOURS[1], COLOURS[0], SOFT]
        known = [(at, colour) for at, colour in zip(steps, [*colours, None], strict=True) if at is not None]
        for (start, colour), (end, _) in zip(known, known[1:], strict=False):
            axes.barh(place, (end - start) / 1e9, left=start / 1e9, color=colour, height=0.8)
    axes.invert_yaxis()
    return _finished(axes, "time since the start of the trial [s]", f"request, from {first}")


def _rows(file: Any, first: int, count: int) -> list[dict[str, Any]]:
    columns = ["scheduled", "sent", "queued", "started", "finished", "completed"]
    try:
        import polars

        frame: Any = polars.read_parquet(file, columns=columns).sort("scheduled").slice(first, count)
        return list(frame.to_dicts())
    except ImportError:
        import pandas

        frame = pandas.read_parquet(file, columns=columns).sort_values("scheduled").iloc[first : first + count]
        return [
            {name: None if pandas.isna(value) else value for name, value in row.items()}
            for row in frame.to_dict("records")
        ]


def _axes() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("figures need matplotlib: pip install matplotlib") from None
    return pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")[1]


def _finished(axes: Any, x: str, y: str) -> Any:
    axes.set_xlabel(x, color=SOFT)
    axes.set_ylabel(y, color=SOFT)
    axes.grid(color=GRID)
    axes.set_axisbelow(True)
    axes.tick_params(colors=SOFT)
    for side in axes.spines.values():
        side.set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)
    return axes
