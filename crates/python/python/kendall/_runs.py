"""Runs: measured loads and experiments, in folders that the command kendall has written."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kendall import _kendall, _words
from kendall._command import call, call_json
from kendall._kendall import KendallError
from kendall._record import Record


class Run:
    """A recorded run: of an experiment, or a single load."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        """Its folder."""
        if not (self.path / "manifest.json").is_file():
            raise KendallError(f"{self.path} is no recorded run: it has no manifest.json")
        self._report: Record | None = None

    @property
    def manifest(self) -> Record:
        """What was measured: machine, versions, seed, command."""
        return Record(json.loads((self.path / "manifest.json").read_text(encoding="utf-8")))

    @property
    def report(self) -> Record:
        """The results, as the page shows them: measured points, models, findings."""
        if self._report is None:
            self._report = Record(call_json(["report", str(self.path)]))
        return self._report

    @property
    def files(self) -> list[Path]:
        """The Parquet files of its requests, one for each trial."""
        return sorted(self.path.glob("**/requests.parquet"))

    def requests(self, library: str | None = None) -> Any:
        """Every request, one row each, times in ns; the column ``trial`` names the trial.

        `library` is "polars", which gives a LazyFrame that reads what is used, or "pandas", which gives a DataFrame; without it the one
        that is installed.
        """
        files = self.files
        if not files:
            raise KendallError(f"{self.path} has no requests")
        library = library or _installed()
        if library == "polars":
            import polars

            frames = [
                polars.scan_parquet(file).with_columns(trial=polars.lit(file.parent.name)) for file in files
            ]
            return polars.concat(frames)
        if library == "pandas":
            import pandas

            return pandas.concat(
                [pandas.read_parquet(file).assign(trial=file.parent.name) for file in files], ignore_index=True
            )
        raise ValueError(f"library is {library!r}; it must be 'polars' or 'pandas'")

    def fit(self, **options: Any) -> Record:
        """The station behind the measured points; the options are those of ``kendall fit``."""
        return Record(call_json(["fit", str(self.path), *_words.options(options)]))

    def predict(self, rate: _words.Quantity | None = None, **options: Any) -> Record:
        """Response times at a load that was not measured; the options are those of ``kendall predict``."""
        return Record(call_json(["predict", str(self.path), *_words.options({"rate": rate, **options})]))

    def check(self, **options: Any) -> Record:
        """Which assumptions hold, and what it costs where one does not."""
        return Record(call_json(["check", str(self.path), *_words.options(options)]))

    def replay(self, station: str | None = None) -> list[Record]:
        """The run's own arrivals and service times through candidate stations: for each point, how well each predicts every request.

        `station`, such as "G/G/3/50/LIFO", is the only one then, as in ``kendall replay``: its servers, capacity and discipline count,
        and the last two are those of the system if left out. Without it the list is empty where the server sends no timestamps.
        """
        if station is not None:
            return [Record(each) for each in call_json(["replay", str(self.path), station])]
        points = self.report.to_dict().get("points", [])
        return [Record({"point": number, **each["replay"]}) for number, each in enumerate(points) if each.get("replay")]

    def compare(self, other: Run | Path | str, **options: Any) -> Record:
        """Which of two runs is faster, and whether the difference is significant."""
        return compare(self, other, **options)

    def __repr__(self) -> str:
        return f"<Run {self.path}>"

    def _repr_html_(self) -> str:
        page = self.path / "report.html"
        link = f" <a href='{page.resolve().as_uri()}'>report</a>" if page.exists() else ""
        return f"<code>{self.path}</code>{link}"


def read(path: Path | str) -> Run:
    """Opens a recorded run: the folder of an experiment's run, or of ``kendall load --record``."""
    return Run(path)


def compare(*sides: Run | Path | str, **options: Any) -> Record:
    """Which of several runs is faster; the options are those of ``kendall compare``."""
    paths = [str(side.path if isinstance(side, Run) else side) for side in sides]
    return Record(call_json(["compare", *paths, *_words.options(options)]))


def fit(table: Any, **options: Any) -> Record:
    """The station behind a table of measurements: a DataFrame, a dictionary of columns, or the path of a file.

    The columns are those that ``kendall fit`` understands: a load (``rate`` or ``users``), and a mean (``mean_ms``) or throughput.
    """
    return _of_table("fit", table, options)


def predict(table: Any, rate: _words.Quantity | None = None, **options: Any) -> Record:
    """Response times at a load that is not in a table of measurements."""
    return _of_table("predict", table, {"rate": rate, **options})


def _of_table(what: str, table: Any, options: Mapping[str, Any]) -> Record:
    words = _words.options(options)
    if isinstance(table, (str, Path)):
        return Record(call_json([what, str(table), *words]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text(_csv(table), encoding="utf-8")
        return Record(call_json([what, str(path), *words]))


def load(url: str, *, record: Path | str | None = None, progress: bool = False, **options: Any) -> Run:
    """Loads a running server, in a process of its own, and returns the recorded run.

    ``load("http://127.0.0.1:8080/", rate=500, duration="10s")``; the options are those of ``kendall load``. `record` is the new folder
    of the run, by default one in a temporary place.
    """
    folder = Path(record) if record else Path(tempfile.mkdtemp(prefix="kendall-")) / "load"
    call(["load", url, f"--record={folder}", *_words.options(options)], progress=progress)
    return Run(folder)


def experiment(
    description: Mapping[str, Any] | Path | str,
    *,
    results: Path | str = "results",
    progress: bool = False,
    **options: Any,
) -> Run:
    """Runs an experiment and returns its run. `description` is a TOML file, or a dictionary with the same keys."""
    results = Path(results)
    before = _runs_below(results)
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(description, Mapping):
            path = Path(folder) / f"{description.get('name', 'experiment')}.toml"
            path.write_text(_kendall.toml(json.dumps(description)), encoding="utf-8")
        else:
            path = Path(description)
        words = ["run", str(path), f"--results={results}", *_words.options(options)]
        call(words, progress=progress)
    new = _runs_below(results) - before
    if len(new) != 1:
        raise KendallError(f"{len(new)} new runs are in {results}, so the one of this experiment is not known")
    return Run(new.pop())


def _runs_below(results: Path) -> set[Path]:
    return {manifest.parent for manifest in results.glob("*/*/manifest.json")}


def _csv(table: Any) -> str:
    if hasattr(table, "write_csv"):
        return str(table.write_csv())
    if hasattr(table, "to_csv"):
        return str(table.to_csv(index=False))
    if isinstance(table, Mapping):
        rows = zip(*table.values(), strict=True)
        lines = [",".join(table)] + [",".join(str(value) for value in row) for row in rows]
        return "\n".join(lines) + "\n"
    raise TypeError(f"{type(table).__name__} is no table; pass a DataFrame, a dictionary of columns, or a path")


def _installed() -> str:
    for name in ("polars", "pandas"):
        try:
            __import__(name)
        except ImportError:
            continue
        return name
    raise KendallError("requests as a table need Polars or pandas: pip install polars")
