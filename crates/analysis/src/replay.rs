//! The results of the replays in a report: the first sentence, the table of candidates, and the intervals that theory expects, with the
//! measured ones.

use std::fmt;

use kendall_evidence::{ArrivedBy, Candidate, Candidates, Fit, ReplayVerdict};
use serde::{Deserialize, Serialize};

use crate::analyse::ReplayedPoint;
use crate::report::Report;
use crate::report::point::Point;
use crate::table::Table;
use kendall_stats::number::{NONE, few, list, percent, significant, time};

/// The number of candidates that the table shows; the system's own is always among them.
const SHOWN: usize = 7;

/// The replay of the most informative point, worded by `Display`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    place: String,
    verdict: ReplayVerdict,
    best: Named,
    /// Where the best is not the system's own: the latter.
    own: Option<Named>,
    /// Distinguishable from the best and nearest to it, with another number of servers and with another order.
    others: Vec<Named>,
    /// Other candidates that predict equally well.
    alike: Vec<String>,
    /// The number of points that were replayed, and those at which another station than the system's own explains them.
    points: usize,
    otherwise: Vec<String>,
}

/// A candidate and its errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Named {
    name: String,
    fit: Fit,
}

impl Named {
    fn of(candidate: &Candidate) -> Self {
        Self { name: name(candidate), fit: candidate.fit.clone() }
    }

    /// "4 servers FIFO underestimates by 24 %", by the quantile where the mean is not off.
    fn off(&self) -> String {
        let side = |error: f64| if error > 0.0 { "overestimates" } else { "underestimates" };
        let Fit { mean_error, .. } = self.fit;
        let at_p95 = self.fit.quantile_error(0.95).filter(|error| error.abs() > mean_error.abs());
        match at_p95 {
            _ if mean_error.abs() >= 0.05 => {
                format!("{} {} by {}", self.name, side(mean_error), percent(mean_error.abs()))
            }
            Some(error) => format!("{} {} by {} at p95", self.name, side(error), percent(error.abs())),
            None => format!("{} is off by {} for each request", self.name, percent(self.fit.relative_error)),
        }
    }
}

/// "3 servers FIFO", "1 server FIFO with capacity 50".
fn name(candidate: &Candidate) -> String {
    let servers = candidate.servers.get();
    let plural = if servers == 1 { "" } else { "s" };
    let room = candidate.capacity.map_or_else(String::new, |room| format!(" with capacity {room}"));
    format!("{servers} server{plural} {}{room}", candidate.discipline.in_words())
}

/// The most informative point: among those that identify servers and order, the one where the nearest wrong station fits worst relative
/// to the right one; otherwise the one with the highest utilisation.
pub fn most_informative(report: &Report) -> Option<(&Point, &Candidates)> {
    let replayed = report.points.iter().filter_map(|point| Some((point, point.replay.as_ref()?)));
    let tells = |(point, candidates): &(&Point, &Candidates)| {
        let error = |candidate: &Candidate| candidate.fit.relative_error;
        let rival = candidates.ranked.iter().find(|candidate| candidate.told_apart).map(error);
        match (candidates.verdict, candidates.ranked.first().map(error), rival) {
            (ReplayVerdict::Explained, Some(best), Some(rival)) => (2, rival / best.max(f64::MIN_POSITIVE)),
            (ReplayVerdict::Explained | ReplayVerdict::CannotTell, ..) => {
                (1, point.measured.utilisation.value)
            }
            (ReplayVerdict::Unexplained, ..) => (0, point.measured.utilisation.value),
        }
    };
    replayed.max_by(|a, b| {
        let (a, b) = (tells(a), tells(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })
}

/// The result of the replays, if there are any.
pub fn replayed(report: &Report) -> Option<Replayed> {
    let (point, candidates) = most_informative(report)?;
    let best = candidates.ranked.first()?;
    let own = (candidates.own > 0).then(|| Named::of(&candidates.ranked[candidates.own]));
    let others = [
        nearest(candidates, |other| other.discipline == best.discipline),
        nearest(candidates, |other| other.servers == best.servers),
    ];
    let otherwise = |point: &&Point| {
        let own = |candidates: &Candidates| candidates.ranked[candidates.own].told_apart;
        point.replay.as_ref().is_some_and(|found| own(found) || found.verdict == ReplayVerdict::Unexplained)
    };
    Some(Replayed {
        place: report.place(point),
        verdict: candidates.verdict,
        best: Named::of(best),
        own,
        others: others.into_iter().flatten().map(Named::of).collect(),
        alike: candidates.alike().skip(1).map(name).collect(),
        points: report.points.iter().filter(|point| point.replay.is_some()).count(),
        otherwise: report.points.iter().filter(otherwise).map(|point| report.place(point)).collect(),
    })
}

/// The station that explains a point best, in words.
pub fn best_name(candidates: &Candidates) -> String {
    candidates.ranked.first().map_or_else(String::new, name)
}

/// The best of those that are distinguishable and equal the best in this.
fn nearest(candidates: &Candidates, like: impl Fn(&Candidate) -> bool) -> Option<&Candidate> {
    candidates.ranked.iter().skip(1).find(|candidate| candidate.told_apart && like(candidate))
}

impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, best, .. } = self;
        let error = percent(best.fit.relative_error);
        if self.verdict == ReplayVerdict::Unexplained {
            write!(
                f,
                "No candidate station explains the run at {place}: replayed with the run's own arrivals and service times, the best, \
                 {}, is off by {error} of the mean response. Something other than the number of servers and the order of service \
                 decides how long requests take.",
                best.name
            )?;
            return self.write_others(f);
        }
        write!(
            f,
            "Replayed through {}, the run's own arrivals and service times predict each response at {place} to {error}",
            best.name
        )?;
        if let Some(correlation) = best.fit.correlation {
            write!(f, " (correlation {})", shown_correlation(correlation))?;
        }
        let off: Vec<String> = self.others.iter().map(Named::off).collect();
        match (self.verdict, off.as_slice()) {
            (ReplayVerdict::CannotTell, _) => write!(
                f,
                "; {} would predict the same, because too few requests waited to distinguish them.",
                some(&self.alike)
            )?,
            (_, []) => f.write_str(".")?,
            _ => write!(f, "; {}.", off.join(", "))?,
        }
        if let Some(own) = &self.own {
            write!(f, " The configured system is {}: {}.", own.name, own.off())?;
        }
        self.write_others(f)
    }
}

impl Replayed {
    /// What the other points say of the system's own station.
    fn write_others(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others: Vec<String> =
            self.otherwise.iter().filter(|place| **place != self.place).cloned().collect();
        match (self.points, others.as_slice()) {
            (0 | 1, _) => Ok(()),
            (_, []) if self.own.is_none() && self.verdict != ReplayVerdict::Unexplained => {
                write!(f, " No other point contradicts that.")
            }
            (_, []) => Ok(()),
            _ => write!(f, " The system's own station does not explain the run at {}.", few(&others)),
        }
    }
}

/// "0.999", and never rounded up to 1.
fn shown_correlation(correlation: f64) -> String {
    let digits = ((correlation * 1e4).floor() / 1e4).max(-1.0);
    if digits >= 0.9995 { "above 0.999".to_owned() } else { format!("{digits:.3}") }
}

/// A few names, and how many more there are.
fn some(names: &[String]) -> String {
    const MOST: usize = 3;
    match names.len() {
        0..=MOST => list(names),
        many => format!("{} and {} others", names[..MOST].join(", "), many - MOST),
    }
}

/// The candidates of the most informative point: the best of them, and the system's own.
pub fn table(report: &Report) -> Option<(String, Table)> {
    let (point, candidates) = most_informative(report)?;
    let head = ["servers", "order"].into_iter().chain(ERRORS).chain([""]).map(str::to_owned).collect();
    let shown = candidates.ranked.iter().enumerate().filter(|(at, _)| *at < SHOWN || *at == candidates.own);
    let row = |(at, candidate): (usize, &Candidate)| {
        let Candidate { servers, discipline, capacity, fit, told_apart } = candidate;
        let remark = match (at == candidates.own, *told_apart) {
            (true, true) => "the system's own; distinguishable",
            (true, false) => "the system's own",
            (false, true) => "distinguishable",
            (false, false) if at == 0 => "the best",
            (false, false) => "predicts alike",
        };
        let mut row = vec![
            servers.to_string(),
            format!(
                "{}{}",
                discipline.in_words(),
                capacity.map_or_else(String::new, |room| format!(", capacity {room}"))
            ),
        ];
        row.extend(errors(fit));
        row.push(remark.to_owned());
        row
    };
    let title = format!("Which station explains the run at {}", report.place(point));
    Some((title, Table { head, rows: shown.map(row).collect() }))
}

/// The points of a run that were replayed through one station: how well it predicts their requests.
pub fn points_table(points: &[ReplayedPoint]) -> Table {
    let head = ["point"].into_iter().chain(ERRORS).chain(["requests"]).map(str::to_owned).collect();
    let row = |ReplayedPoint { place, replay }: &ReplayedPoint| {
        let mut row = vec![place.clone()];
        row.extend(errors(&replay.fit));
        row.push(replay.compared.to_string());
        row
    };
    Table { head, rows: points.iter().map(row).collect() }
}

/// The heads of the columns with the errors of a replay.
const ERRORS: [&str; 6] = ["mean", "p50", "p95", "p99", "each", "correlation"];

/// The errors of a replay, in the order of [`ERRORS`].
fn errors(fit: &Fit) -> [String; 6] {
    let signed = |error: Option<f64>| error.map_or_else(|| NONE.to_owned(), signed);
    [
        signed(Some(fit.mean_error)),
        signed(fit.quantile_error(0.50)),
        signed(fit.quantile_error(0.95)),
        signed(fit.quantile_error(0.99)),
        percent(fit.relative_error),
        fit.correlation.map_or_else(|| NONE.to_owned(), |value| format!("{value:.3}")),
    ]
}

/// The meaning of the numbers in the table and the figure.
pub fn caption(report: &Report) -> Option<String> {
    let (_, Candidates { best, .. }) = most_informative(report)?;
    let instants = match best.arrived_by {
        ArrivedBy::Server => "the instants at which the server had each request, by its own stamps",
        ArrivedBy::Client => "the instants at which each request was sent, because the server reported none",
    };
    let left_out = match best.left_out {
        0 => String::new(),
        1 => " One request without a service time is left out.".to_owned(),
        many => format!(" {many} requests without a service time are left out."),
    };
    Some(format!(
        "Each candidate was given {instants}, and the server-side service times, of {} requests. The predictions include each \
         request's send lag and {}, the median time outside the station, so that they use no measured waiting time. Errors of mean and \
         quantiles are predicted ÷ measured − 1; “each” is the mean absolute error of a request ÷ the mean response.{left_out}",
        best.compared,
        time(best.delay_s),
    ))
}

fn signed(error: f64) -> String {
    let sign = if error < 0.0 { "−" } else { "+" };
    match percent(error.abs()).as_str() {
        "0 %" => "±0 %".to_owned(),
        size => format!("{sign}{size}"),
    }
}

/// The half-width of a measured mean, and the one that theory expects: "0.90, theory 0.85", as a share of the mean.
pub fn expected_share(mean_s: f64, expected_s: Option<f64>) -> Option<String> {
    let share = expected_s? / mean_s;
    (share.is_finite() && share > 0.0).then(|| format!("theory ± {}", percent(share)))
}

/// A number of requests or a ratio as words of a sentence.
pub fn times_narrower(half_width_s: f64, expected_s: f64) -> String {
    significant(expected_s / half_width_s.max(f64::MIN_POSITIVE), 2)
}
