#!/usr/bin/env python3
"""Reads the requests of a run with pandas, Polars or DuckDB, and says the same of each trial.

    kendall export results/EXPERIMENT/INSTANT --format parquet --out .
    python3 docs/examples/requests.py pandas requests.parquet

docs/notebook.md goes through it step by step. Exit status 77 says that the library is not installed.
"""

import json
import sys

LEFT_OUT = 77


def with_pandas(path):
    import pandas

    requests = pandas.read_parquet(path)
    counted = requests[~requests["warmup"] & requests["outcome"].eq("answered")]
    response_ms = (counted["completed"] - counted["scheduled"]) / 1e6
    by_trial = response_ms.groupby(counted["trial"])
    table = by_trial.agg(requests="size", mean_ms="mean", p99_ms=lambda ms: ms.quantile(0.99, interpolation="higher"))
    return table.sort_index().reset_index().to_dict("records")


def with_polars(path):
    import polars

    response_ms = (polars.col("completed") - polars.col("scheduled")) / 1e6
    table = (
        polars.scan_parquet(path)
        .filter(~polars.col("warmup") & (polars.col("outcome") == "answered"))
        .group_by("trial")
        .agg(
            requests=polars.len(),
            mean_ms=response_ms.mean(),
            p99_ms=response_ms.quantile(0.99, interpolation="higher"),
        )
        .sort("trial")
    )
    return table.collect().to_dicts()


def with_duckdb(path):
    import duckdb

    query = """
        select trial, count(*) as requests,
               avg(completed - scheduled) / 1e6 as mean_ms,
               quantile_disc(completed - scheduled, 0.99) / 1e6 as p99_ms
        from read_parquet(?)
        where not warmup and outcome = 'answered'
        group by trial
        order by trial
    """
    result = duckdb.execute(query, [path])
    names = [column[0] for column in result.description]
    return [dict(zip(names, row)) for row in result.fetchall()]


LIBRARIES = {"pandas": with_pandas, "polars": with_polars, "duckdb": with_duckdb}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in LIBRARIES:
        sys.exit(__doc__)
    try:
        table = LIBRARIES[sys.argv[1]](sys.argv[2])
    except ImportError as missing:
        print(missing, file=sys.stderr)
        sys.exit(LEFT_OUT)
    json.dump(table, sys.stdout, indent=2, default=float)
    print()


if __name__ == "__main__":
    main()
