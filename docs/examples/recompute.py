#!/usr/bin/env python3
"""Computes the answers of a run again, from its requests alone and with Python's standard library alone.

    kendall export results/EXPERIMENT/INSTANT --format csv --out .
    python3 docs/examples/recompute.py requests.csv

It shares no code with kendall. What it prints, a JSON object with an entry a trial, is to be the same as in each trial's
answer.json: the mean and the quantiles of the response time, the throughput, the mean number in the system, and how the
requests ended.
"""

import csv
import json
import math
import sys
from collections import Counter, defaultdict

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
NANOSECONDS = 1e9


def read(path):
    """The rows of each trial, with their instants as integers or None."""
    trials = defaultdict(list)
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for name in ("scheduled", "completed", "started", "finished", "service"):
                row[name] = int(row[name]) if row[name] else None
            row["warmup"] = row["warmup"] == "true"
            trials[row["trial"]].append(row)
    return trials


def fewest(p):
    """So many values it takes for two of them to bracket the quantile with 95 % confidence."""
    n = 1
    while max(p, 1 - p) ** n + min(p, 1 - p) ** n > 0.05:
        n += 1
    return n


def quantile(ordered, censored, p):
    """The least value that a share p of all stays within; None where it is among those that never came back."""
    n = len(ordered) + censored
    if n < fewest(p):
        return None
    rank = min(max(math.ceil(p * n * (1 - 1e-12)), 1), n)
    return ordered[rank - 1] if rank <= len(ordered) else None


def answer(rows):
    counted = [row for row in rows if not row["warmup"]]
    came = [row for row in counted if row["outcome"] in ("answered", "wrong")]
    responses = sorted(row["completed"] - row["scheduled"] for row in came)
    censored = sum(row["outcome"] in ("timed-out", "unanswered") for row in counted)
    # From the end of the warm-up, which is where the first counted request could have been due, to the last one due.
    return {
        "requests": len(counted),
        "outcomes": dict(Counter(row["outcome"] for row in rows)),
        "mean_response_s": math.fsum(responses) / len(responses) / NANOSECONDS,
        "quantiles_s": {
            str(p): value / NANOSECONDS
            for p in QUANTILES
            if (value := quantile(responses, censored, p)) is not None
        },
    }


def throughput(rows, from_ns):
    """Answers that were complete between two instants: the end of the warm-up and the last request due."""
    to_ns = max(row["scheduled"] for row in rows)
    from_ns = max(from_ns, min(row["scheduled"] for row in rows))
    came = (row for row in rows if row["outcome"] in ("answered", "wrong"))
    complete = sum(from_ns < row["completed"] <= to_ns for row in came)
    seconds = (to_ns - from_ns) / NANOSECONDS
    inside = math.fsum(
        max(0, min(row["completed"] or to_ns, to_ns) - max(row["scheduled"], from_ns)) for row in rows
    )
    return {"throughput_per_s": complete / seconds, "in_system": inside / NANOSECONDS / seconds}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    # When the warm-up of all trials ended, in nanoseconds; without it, rates are from the first counted request on.
    warmup_ns = int(sys.argv[2]) if len(sys.argv) == 3 else None
    result = {}
    for trial, rows in read(sys.argv[1]).items():
        counted = [row["scheduled"] for row in rows if not row["warmup"]]
        from_ns = min(counted) if warmup_ns is None else warmup_ns
        result[trial] = answer(rows) | throughput(rows, from_ns)
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
