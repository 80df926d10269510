//! The results of a load, in words and tables of text, for the terminal and for its page.

use kendall_analysis::generator::{Check, statuses};
use kendall_analysis::{Bottleneck, NO_DELAY, PrecisionReached, Table, TrialResult, paused};
use kendall_evidence::Score;
use kendall_evidence::streamed::{QuantileSeen, Streamed, TimesSeen};
use kendall_record::Outcome;
use kendall_station::Estimate;
use kendall_stats::number::{NONE, count, counted, percent, significant, time, time_with_interval};

use crate::terminal::{self, with_interval};

/// The quantiles that are shown.
const SHOWN: [f64; 6] = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];
/// A quantile that needs more than this many requests is left out.
const FAR: u64 = 10;

/// A field that the record of a load always has.
pub(super) fn recorded(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

/// How many requests, how they ended, and whether the rate exceeds the system's capacity.
pub(super) fn sentences(found: &TrialResult) -> Vec<String> {
    let run = &found.run;
    let offered =
        found.offered_per_s.map_or_else(String::new, |rate| format!(", offered {}/s", significant(rate, 4)));
    let ended =
        Outcome::ALL.iter().map(|&outcome| format!("{} {}", count(run.count(outcome)), outcome.name()));
    let mut lines = vec![
        format!("{} in {:.2} s{offered}, seed {}", counted(run.sent, "request"), run.wall_s, found.seed),
        ended.collect::<Vec<_>>().join(", "),
    ];
    lines.extend(statuses(run));
    lines.extend(run.refused_because.iter().map(|why| format!("The first that was refused: {why}")));
    lines.extend(found.seen.iter().flat_map(unstable));
    lines.extend(found.seen.as_ref().and_then(|seen| held_back(found, seen)));
    lines.extend(found.hopeless.iter().map(|why| format!("Stopped early: {why}.")));
    lines.extend(found.nothing_seen.iter().map(|why| format!("No response time: {why}.")));
    lines
}

/// What was asked of precision and of the system, and how it came out.
pub(super) fn expectations(found: &TrialResult) -> Vec<String> {
    let expected = found.expectations.iter().map(|judged| format!("Expected {judged}"));
    found.precision.iter().map(precision).chain(expected).collect()
}

/// A rate that the system cannot sustain is a result.
fn unstable(seen: &Streamed) -> Option<String> {
    let growth = seen.growth.filter(|growth| growth.unstable)?;
    Some(format!(
        "UNSTABLE at this rate: the number in flight grows by {} each second, so the times depend on how long the run is.",
        significant(growth.per_s, 2)
    ))
}

/// Reports that answers pause as Nagle's algorithm makes them, where the server's sockets do not show it already.
pub(super) fn held_back(found: &TrialResult, seen: &Streamed) -> Option<String> {
    let pauses = seen.pauses.filter(|pauses| pauses.are_of_delayed_acknowledgements())?;
    let limit = found.resources.as_ref().and_then(|seen| seen.limit.as_ref());
    (!matches!(limit, Some(Bottleneck::HeldBack { .. }))).then(|| {
        format!(
            "{}, as where Nagle's algorithm of the server waits for a delayed acknowledgement of the client. {NO_DELAY}; \
             --probe shows whether it is that.",
            paused(&pauses)
        )
    })
}

/// The three times side by side.
pub(super) fn times(seen: &Streamed) -> Table {
    let of = [Some(&seen.response), seen.service.as_ref(), seen.send_lag.as_ref()];
    let row = |name: &str, cell: &dyn Fn(&TimesSeen) -> String| {
        let cells = of.map(|times| times.map_or_else(|| NONE.to_owned(), cell));
        std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>()
    };
    let mut rows = vec![row("mean", &|times| {
        let bound = if times.mean_is_bound() { "≥ " } else { "" };
        format!("{bound}{}", time_with_interval(times.mean_s.value, times.mean_s.interval))
    })];
    for p in SHOWN {
        // Rounded to six digits, so that 0.99 · 100 is written as 99.
        let name = format!("p{}", (p * 1e8).round() / 1e6);
        let far = |quantile: &QuantileSeen| {
            quantile.value_s.is_none() && quantile.needs.is_some_and(|needs| needs > FAR * seen.requests)
        };
        if seen.response.quantile(p).is_some_and(far) && p > 0.99 {
            continue;
        }
        let unstable = seen.growth.is_some_and(|growth| growth.unstable);
        rows.push(row(&name, &|times| {
            let given_up = times.censored > 0 && !unstable;
            times.quantile(p).map_or_else(|| NONE.to_owned(), |found| quantile(found, given_up))
        }));
    }
    rows.push(row("longest", &|times| time(times.longest_s)));
    let head = ["", "response time (from due)", "service time (from sent)", "send lag"];
    Table { head: head.map(str::to_owned).into(), rows }
}

/// Reports that the interval of the mean is too narrow, where it is.
pub(super) fn correlated(seen: &Streamed) -> Option<String> {
    seen.response.correlated.then(|| {
        "Even the longest batches of requests are correlated, so the interval of the mean is too narrow: run longer.".into()
    })
}

/// The reason why quantiles have no interval, where they have none although there are enough requests.
pub(super) fn without_intervals(seen: &Streamed) -> Option<String> {
    if seen.growth.is_some_and(|growth| growth.unstable) {
        return Some(
            "No intervals: the system is unstable at this rate, and a longer run measures longer times."
                .into(),
        );
    }
    let open = |quantile: &&QuantileSeen| {
        SHOWN.iter().any(|p| (p - quantile.p).abs() < 1e-9)
            && quantile.value_s.is_some()
            && !quantile.at_least
            && quantile.interval_s.is_none()
    };
    let first = seen.response.quantiles.iter().find(open)?;
    let needs = count(two_digits(first.needs?));
    Some(format!(
        "From p{} on the interval has no upper end: slow requests came in bursts, so they count as few. About {needs} requests are \
         enough.",
        (first.p * 1e8).round() / 1e6
    ))
}

/// A quantile, its interval, or what it needs. Where requests were given up, an interval that is missing would end among them.
fn quantile(quantile: &QuantileSeen, given_up: bool) -> String {
    match *quantile {
        QuantileSeen { value_s: Some(value_s), interval_s: None, needs: None, at_least: false, .. }
            if given_up =>
        {
            format!("{} [?, given up]", time(value_s))
        }
        QuantileSeen { value_s: None, needs, .. } => {
            format!("needs {} requests", count(needs.unwrap_or_default()))
        }
        QuantileSeen { value_s: Some(value_s), at_least: true, .. } => format!("≥ {}", time(value_s)),
        QuantileSeen { value_s: Some(value_s), interval_s: None, needs: Some(_), .. } => {
            format!("{} [?, more requests]", time(value_s))
        }
        QuantileSeen { value_s: Some(value_s), interval_s, .. } => time_with_interval(value_s, interval_s),
    }
}

/// Rates and shares: what, and its value.
pub(super) fn rates(found: &TrialResult, seen: &Streamed) -> Vec<(String, String)> {
    let of = |estimate: Option<Estimate>, digits| {
        estimate.map_or_else(
            || NONE.to_owned(),
            |estimate| with_interval(estimate, |value| significant(value, digits)),
        )
    };
    let warmup = match (seen.warmup.used_s, seen.warmup.suggested_s) {
        (used, Some(suggested)) if suggested > used => {
            format!("{} left out; MSER-5 would cut {}: give --warmup auto", time(used), time(suggested))
        }
        (0.0, Some(_)) => "none found, none left out".to_owned(),
        (used, Some(_)) => format!("{} left out", time(used)),
        (0.0, None) => "none left out; the run is too short or too unsteady to find its end".to_owned(),
        (used, None) => {
            format!("{} left out; the run is too short or too unsteady to find its end", time(used))
        }
    };
    let run = &found.run;
    let waited = match run.waited_for_connection {
        0 => format!("none; {} opened", counted(run.connections_opened, "connection")),
        waited => format!(
            "{}, half of them up to {}, 99 % up to {}",
            counted(waited, "request"),
            time(run.wait_for_connection.p50_ns as f64 / 1e9),
            time(run.wait_for_connection.p99_ns as f64 / 1e9)
        ),
    };
    let rows = [
        ("throughput, 1/s", of(seen.throughput_per_s, 4)),
        ("in flight, mean", of(seen.in_flight, 3)),
        ("without answer", with_interval(seen.lost, percent)),
        ("errors", with_interval(seen.errors, percent)),
        ("waits for a connection", waited),
        ("warm-up", warmup),
    ];
    rows.map(|(name, value)| (name.to_owned(), value)).into()
}

/// What the generator was asked, and what was found.
pub(super) fn checks(found: &TrialResult) -> Table {
    let row = |check: &Check| {
        let held = match check.held {
            Some(true) => "ok",
            Some(false) => "NO",
            None => NONE,
        };
        [check.what.name(), held, &check.asked, &check.found].map(str::to_owned).into()
    };
    let head = ["check", "", "asked", "found"].map(str::to_owned).into();
    Table { head, rows: found.verdict.checks.iter().map(row).collect() }
}

fn precision(found: &PrecisionReached) -> String {
    let PrecisionReached { wanted, of, reached, missing } = found;
    match (reached, missing) {
        (Some(reached), Some(0)) => {
            format!("Precision of the {of}: ± {}, requested ± {}", percent(*reached), percent(*wanted))
        }
        (Some(reached), Some(missing)) => format!(
            "Precision of the {of}: ± {}, not ± {}: it needs about {} more requests",
            percent(*reached),
            percent(*wanted),
            count(two_digits(*missing))
        ),
        _ => format!("Precision of the {of}: unknown, too few requests; requested ± {}", percent(*wanted)),
    }
}

/// A number that is known to no more than two digits.
fn two_digits(count: u64) -> u64 {
    let unit = 10u64.pow(count.max(1).ilog10().saturating_sub(1));
    (count + unit / 2) / unit * unit
}

/// What to doubt for requests without a right answer.
pub(super) fn without_answer(found: &TrialResult) -> Vec<String> {
    let run = &found.run;
    let (answered, wrong) = (run.count(Outcome::Answered), run.count(Outcome::Wrong));
    let missing = run.sent - answered - wrong;
    let share = |count: u64| terminal::percent(count as f64 / run.sent.max(1) as f64);
    let mut lines = Vec::new();
    if missing > 0 {
        let score = match found.score.as_ref().is_some_and(Score::is_weighted) {
            true => ", and in the score as exactly that time",
            false => "",
        };
        lines.push(format!(
            "{} of the requests had no answer; each counts as at least the time until it was given up{score}.",
            share(missing)
        ));
    }
    if wrong > 0 {
        lines.push(format!("{} of the answers were wrong.", share(wrong)));
    }
    lines
}

/// The score of a run in words.
pub(super) fn score_in_words(score: &Score) -> String {
    let least = if score.without_answer > 0 { "at least " } else { "" };
    format!(
        "{least}{} µs: the mean of weight × response over {}; the lower the better",
        score.weighted_response_us,
        counted(score.requests, "request")
    )
}
