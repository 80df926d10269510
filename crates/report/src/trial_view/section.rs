//! The section of a page that shows trials one by one: which of them, in which order, within a bound of bytes.

use askama::Template;
use kendall_probe::Timeline;

use super::{laws, over_time, quantiles, requests};
use crate::figure::{Figure, Named};
use kendall_analysis::TrialView;
use kendall_analysis::{Report, TrialLine};
use kendall_stats::number::{NONE, time};

/// All trials together take no more of a page than this, but for the first, which is always shown.
const MOST_BYTES: usize = 2_000_000;

/// The trials that a page shows. Without script only the first of them is seen.
#[derive(Template)]
#[template(path = "trials.html")]
pub(crate) struct Section {
    trials: Vec<Shown>,
    /// How many of the trials are here, and how to see others; empty where all are.
    note: String,
}

/// One trial on a page.
pub(crate) struct Shown {
    id: String,
    /// What distinguishes it from the others: "80 % · 004-rate=80%".
    label: String,
    html: String,
}

#[derive(Template)]
#[template(path = "trial.html")]
struct Figures<'a> {
    label: &'a str,
    sentences: Vec<String>,
    figures: Vec<(&'static str, Figure)>,
}

impl Section {
    /// `None` where no trial has a view.
    pub(crate) fn of(report: &Report) -> Option<String> {
        let order = by_weight(report);
        let (mut trials, mut bytes) = (Vec::new(), 0);
        for &at in &order {
            let shown = Shown::of(report, &report.trial_views[at]);
            bytes += shown.html.len();
            if bytes > MOST_BYTES && !trials.is_empty() {
                break;
            }
            trials.push((at, shown));
        }
        // The first is what matters most; the others are looked up in the order in which they ran.
        trials.get_mut(1..)?.sort_by_key(|(at, _)| *at);
        let (here, all) = (trials.len(), report.trial_views.len());
        let note = if here < all {
            format!(
                "{here} of {all} trials are shown: the one with the longest mean response, those with doubts, one of each point, and \
                 others up to the limit. kendall report FOLDER --trial NAME shows any other."
            )
        } else {
            String::new()
        };
        let section = Self { trials: trials.into_iter().map(|(_, shown)| shown).collect(), note };
        Some(section.render().expect("rendering to a string fails only where a value's Display does"))
    }
}

impl Shown {
    fn of(report: &Report, view: &TrialView) -> Self {
        let line = report.trials.iter().find(|line| line.id == view.trial);
        let place = line.and_then(|line| report.points.get(line.point?)).map(|point| report.place(point));
        let label = place.map_or_else(|| view.trial.clone(), |place| format!("{place} · {}", view.trial));
        let figures =
            Figures { label: &label, sentences: sentences(view, line), figures: drawn(report, view) };
        let html = figures.render().expect("rendering to a string fails only where a value's Display does");
        Self { id: view.trial.clone(), label, html }
    }
}

fn drawn(report: &Report, view: &TrialView) -> Vec<(&'static str, Figure)> {
    let resources = report.resources.iter().find(|one| one.trial == view.trial);
    let timeline: Option<&Timeline> = resources.map(|one| &one.summary.timeline);
    let mut figures = vec![("trial-time", over_time::figure(view, timeline))];
    figures.extend(requests::figure(view).map(|figure| ("trial-requests", figure)));
    figures.extend(quantiles::figure(view).map(|figure| ("trial-quantiles", figure)));
    figures.extend(laws::figure(view).map(|figure| ("trial-laws", figure)));
    figures
}

/// The most informative trial of a report: the one that its page shows first.
pub fn first_of(report: &Report) -> Option<&TrialView> {
    by_weight(report).first().map(|&at| &report.trial_views[at])
}

/// The figures of a trial of a report.
pub fn figures(report: &Report, view: &TrialView) -> Vec<Named> {
    let named = |(name, figure)| Named { name, figure, left: 0 };
    drawn(report, view).into_iter().map(named).collect()
}

/// What is to be known of a trial before its figures are read.
fn sentences(view: &TrialView, line: Option<&TrialLine>) -> Vec<String> {
    let mean = line.and_then(|line| line.response_s).map_or_else(|| NONE.to_owned(), time);
    let slowest = view.slowest.iter().map(|one| one.out_s).fold(0.0, f64::max);
    let mut sentences = vec![format!(
        "{} requests in {}; mean response {mean}, the slowest {}.",
        view.requests,
        time(view.length_s),
        if slowest > 0.0 { time(slowest) } else { NONE.to_owned() },
    )];
    let clauses = line.into_iter().flat_map(|line| line.limits.iter().chain(&line.doubts));
    sentences.extend(clauses.map(|clause| format!("To doubt: {clause}.")));
    sentences
}

/// The views, most informative first: the trial with the longest mean response where response times do not grow without bound, then
/// those with doubts, then one of each point, then the others; within each as they ran.
fn by_weight(report: &Report) -> Vec<usize> {
    let line = |view: &TrialView| report.trials.iter().find(|line| line.id == view.trial);
    let steady = |line: &TrialLine| {
        line.point.and_then(|point| report.points.get(point)).is_some_and(|point| point.is_steady())
    };
    let response_s = |view: &TrialView| {
        let line = line(view)?;
        Some((steady(line), line.response_s?))
    };
    let longest = (0..report.trial_views.len()).max_by(|&a, &b| {
        let of = |at: usize| response_s(&report.trial_views[at]).unwrap_or((false, 0.0));
        of(a).0.cmp(&of(b).0).then(of(a).1.total_cmp(&of(b).1))
    });
    let mut points: Vec<usize> =
        longest.and_then(|at| line(&report.trial_views[at])?.point).into_iter().collect();
    let mut rank = |(at, view): (usize, &TrialView)| {
        let line = line(view);
        let doubted = line.is_some_and(|line| !line.doubts.is_empty() || !line.limits.is_empty());
        let new = line.and_then(|line| line.point).filter(|point| !points.contains(point));
        points.extend(new);
        let rank = match (Some(at) == longest, doubted, new) {
            (true, _, _) => 0,
            (false, true, _) => 1,
            (false, false, Some(_)) => 2,
            (false, false, None) => 3,
        };
        (rank, at)
    };
    let mut order: Vec<(u8, usize)> = report.trial_views.iter().enumerate().map(&mut rank).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}
