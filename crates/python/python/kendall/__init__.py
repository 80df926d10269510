"""How long do requests take, and how many can a system sustain?

kendall answers by formula, by simulation and by measuring a real server under load.

>>> import kendall
>>> station = kendall.Station("M/M/3", arrival_rate=0.2, service_rate=0.1)
>>> round(station.formula().waiting.mean, 4)
4.4444

Times are in seconds and rates per second, unless a text names a unit ("20ms", "600/min"). Intervals are 95 % confidence intervals.
"""

from kendall._kendall import KendallError, NoAnswer, Unstable
from kendall._answer import Answer, ClassAnswer, Estimate, NetworkAnswer, Summary
from kendall._command import command
from kendall._record import Record
from kendall._runs import Run, compare, experiment, fit, load, predict, read
from kendall._stations import Network, Station, model, models

__all__ = [
    "Answer",
    "ClassAnswer",
    "Estimate",
    "KendallError",
    "Network",
    "NetworkAnswer",
    "NoAnswer",
    "Record",
    "Run",
    "Station",
    "Summary",
    "Unstable",
    "command",
    "compare",
    "experiment",
    "fit",
    "load",
    "model",
    "models",
    "predict",
    "read",
]
__version__ = "0.1.0"
