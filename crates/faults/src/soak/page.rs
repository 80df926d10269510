//! The page of a soak.

use std::fmt::Write as _;

use kendall_archive::{Machine, utc_now};
use kendall_stats::number::{count, percent, significant, time};
use kendall_stats::{Trend, median};

use super::verdict::Measured;
use super::watch::Sample;
use super::{Soak, Soaked};

const HEAD: &str = "| system | requests | memory, MB | growth, MB an hour | generator, MB | growth, MB an hour | p50 | p99, first quarter | last quarter | change | descriptors | threads | log, bytes | stored, MB |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

/// The page: what was measured of each system, and what is wrong.
pub(super) fn page(soak: &Soak, soaked: &[Soaked]) -> String {
    let machine = Machine::here();
    let mut page = format!(
        "# Soak\n\nWritten by `make soak` on {}.\n\n{} × {}, kernel {}, kendall {}. Each system was loaded for {}, {}, with seed {}.\n\n{ABOUT}\n{HEAD}",
        &utc_now()[..10],
        machine.cores,
        machine.cpu,
        machine.kernel,
        env!("CARGO_PKG_VERSION"),
        time(soak.duration.as_secs_f64()),
        if soak.side_by_side { "all at the same time" } else { "one after the other" },
        soak.seed,
    );
    for (subject, result) in soaked {
        if let Ok(Some(measured)) = result {
            page.push_str(&row(subject.system, measured));
        }
    }
    let disturbed: Vec<_> =
        soaked.iter().filter_map(|(_, result)| result.as_ref().ok()?.as_ref()?.disturbance()).collect();
    let share =
        |of: fn(&[(f64, f64); 2]) -> f64| percent(median(&disturbed.iter().map(of).collect::<Vec<_>>()));
    if !disturbed.is_empty() {
        _ = writeln!(
            page,
            "\nOther programs had {} of the processors' time in the first quarter and {} in the last one; other virtual machines had {} and {}.",
            share(|[first, _]| first.0),
            share(|[_, last]| last.0),
            share(|[first, _]| first.1),
            share(|[_, last]| last.1)
        );
    }
    page.push_str("\n## Problems\n\n");
    let before = page.len();
    for (subject, result) in soaked {
        if matches!(result, Ok(None)) {
            _ = writeln!(
                page,
                "- {}: not measured, because a program that it needs is not installed",
                subject.system
            );
        }
        for problem in problems(result) {
            _ = writeln!(page, "- {}: {problem}", subject.system);
        }
    }
    if page.len() == before {
        page.push_str("There were no problems.\n");
    }
    page
}

/// What is wrong with a system.
pub(super) fn problems(result: &Result<Option<Measured>, String>) -> Vec<String> {
    match result {
        Ok(measured) => measured.as_ref().map(Measured::problems).unwrap_or_default(),
        Err(why) => vec![format!("not measured: {}", why.trim())],
    }
}

const ABOUT: &str = "\
Every system gets requests at a fixed rate from `kendall load`, and every 15 s those of a new client. `curve`, remote copy, remote shell \
and tunnel get all requests from new clients. Each second another client sends random bytes. The first sixth of the time, at most \
10 min, is a warm-up and is left out.

- Memory is what the processes of the system hold. Growth is the slope of a line through it, with a 95 % interval that allows for \
correlated samples. It is a problem if the interval is above 0 and the memory grew by 256 KiB, or with SQLite by 64 MiB more, the size of \
its page cache. The memory of the load generator may grow by 2 MiB more, because its histograms fill, of 128 parts of the requests and \
2,048 parts of the time. nginx has the most requests: its generator would show a leak of one byte a request.
- p99 is the median over short parts of a quarter. Its change, with a 95 % interval, is a problem if the interval is above 10 %.
- Descriptors and threads are counted before and after, with no client. They must not become more.
- Logs must stay below 1 MiB.
";

fn row(system: &str, measured: &Measured) -> String {
    let memory = |of: fn(&Sample) -> u64| {
        let (first, last) = measured.memory_ends(of)?;
        Some(format!("{} → {}", megabytes(first), megabytes(last)))
    };
    let growth = |of: fn(&Sample) -> u64| measured.memory(of).map(per_hour);
    let system_bytes = |sample: &Sample| sample.memory_bytes;
    let generator_bytes = |sample: &Sample| sample.generator_bytes;
    let p50 = median(&measured.bins.iter().map(|bin| bin.p50_s).collect::<Vec<_>>());
    let drift = measured.drift();
    let (before, after) = &measured.idle;
    let cells = [
        Some(system.to_owned()),
        Some(count(measured.answered)),
        memory(system_bytes),
        growth(system_bytes),
        memory(generator_bytes),
        growth(generator_bytes),
        (!p50.is_nan()).then(|| time(p50)),
        drift.map(|drift| time(drift.quarters_s.0)),
        drift.map(|drift| time(drift.quarters_s.1)),
        drift.map(|drift| {
            let percent = |share: f64| format!("{:+.0}", 100.0 * share);
            format!(
                "{} % ({} to {})",
                percent(drift.change),
                percent(drift.interval.0),
                percent(drift.interval.1)
            )
        }),
        Some(format!("{} → {}", before.descriptors, after.descriptors)),
        Some(format!("{} → {}", before.threads, after.threads)),
        Some(count(after.log_bytes)),
        Some(megabytes(after.store_bytes as f64)),
    ];
    format!("| {} |\n", cells.map(Option::unwrap_or_default).join(" | "))
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1}", bytes / 1e6)
}

fn per_hour(trend: Trend) -> String {
    let hourly = |bytes: f64| significant(bytes * 3600.0 / 1e6, 2);
    format!("{} ({} to {})", hourly(trend.slope), hourly(trend.interval.0), hourly(trend.interval.1))
}
