//! Which number of servers and which order of service explain a run: many stations replayed, ranked, and told apart.

use kendall_station::{Discipline, Servers};
use serde::{Deserialize, Serialize};

use super::fit::{Fit, Pair};
use super::visits::Visits;
use super::{NotReplayed, Replay, Rules};
use crate::Trial;
use crate::statistics::{batch_means, mean};

/// Up to so many servers every number is tried up to twice as many; above, some of them.
const EVERY: u32 = 8;
/// Two stations whose errors differ by less than this share of the mean response predict alike, however sure that is.
const ALIKE: f64 = 0.01;
/// Two stations are told apart where their errors differ by so many half-widths of a 95 % interval: four standard
/// errors, so that a choice among some thirty of them is still safe.
const SURE: f64 = 2.0;
/// A best candidate that is further off than this share of the mean response explains nothing.
const UNEXPLAINED: f64 = 0.25;

/// One station that a run was replayed through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its servers.
    pub servers: Servers,
    /// Its order of service.
    pub discipline: Discipline,
    /// How far its predictions are from the measurement.
    pub fit: Fit,
    /// Whether the run tells it from the best.
    pub told_apart: bool,
}

/// What a run says of the candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The first one explains it, and no other predicts alike.
    Explained,
    /// The first ones predict alike: too few requests waited to tell them apart.
    CannotTell,
    /// Even the best is far off: something else than the servers and their order decides.
    Unexplained,
}

/// Stations ranked by how well they explain a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidates {
    /// What the run says of them.
    pub verdict: Verdict,
    /// The best first; among those that it cannot be told from, the system's own comes before.
    pub ranked: Vec<Candidate>,
    /// Where the system's own stands among them.
    pub own: usize,
    /// The replay through the first.
    pub best: Replay,
}

impl Candidates {
    /// Those that the run cannot tell from the best, which is the first of them.
    pub fn alike(&self) -> impl Iterator<Item = &Candidate> {
        self.ranked.iter().filter(|candidate| !candidate.told_apart)
    }
}

/// Replays trials through stations of one to twice as many servers as the system's `own`, each first in first out, last in
/// first out, sharing, in its own order, and by priority where classes differ in weight. They are ranked by
/// [`Fit::relative_error`] and told apart by the batch means of their paired errors.
///
/// # Errors
/// As [`super::replay`].
pub fn candidates(trials: &[Trial<'_>], own: &Rules<'_>) -> Result<Candidates, NotReplayed> {
    let visits = Visits::of(trials)?;
    let mut tried: Vec<Replay> = Vec::new();
    for servers in numbers(own.servers) {
        for discipline in disciplines(own, visits.are_weighted(own)) {
            tried.push(visits.replay(&Rules { servers, discipline, ..*own }));
        }
    }
    let is_own = |replay: &Replay| replay.servers == own.servers && replay.discipline == own.discipline;
    tried.sort_by(|a, b| a.fit.relative_error.total_cmp(&b.fit.relative_error));
    let told_apart: Vec<bool> = tried.iter().map(|replay| differ(&tried[0].pairs, &replay.pairs)).collect();
    let mut ranked: Vec<(Replay, bool)> = tried.into_iter().zip(told_apart).collect();
    ranked.sort_by_key(|(replay, told_apart)| (*told_apart, !is_own(replay) && !*told_apart));
    let own = ranked.iter().position(|(replay, _)| is_own(replay)).expect("the system's own is tried");
    let alike = ranked.iter().filter(|(_, told_apart)| !told_apart).count();
    let verdict = match ranked[0].0.fit.relative_error {
        error if error > UNEXPLAINED => Verdict::Unexplained,
        _ if alike > 1 => Verdict::CannotTell,
        _ => Verdict::Explained,
    };
    let candidate = |(replay, told_apart): &(Replay, bool)| Candidate {
        servers: replay.servers,
        discipline: replay.discipline,
        fit: replay.fit.clone(),
        told_apart: *told_apart,
    };
    let candidates = ranked.iter().map(candidate).collect();
    Ok(Candidates { verdict, ranked: candidates, own, best: ranked.swap_remove(0).0 })
}

/// The numbers of servers to try around the system's own.
fn numbers(own: Servers) -> Vec<Servers> {
    let own = own.get();
    let mut numbers: Vec<u32> = match own {
        1..=EVERY => (1..=2 * own).collect(),
        _ => {
            let around = own - 4..=own.saturating_add(4);
            let shares = [1, 2, 3, 5, 6, 8].map(|quarters| (u64::from(own) * quarters / 4) as u32);
            around.chain(shares).chain([1]).collect()
        }
    };
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().filter_map(Servers::new).collect()
}

/// The orders of service to try, the system's own included.
fn disciplines(own: &Rules<'_>, weighted: bool) -> Vec<Discipline> {
    let mut disciplines = vec![Discipline::Fifo, Discipline::ProcessorSharing, Discipline::Lifo];
    if weighted {
        disciplines.extend([Discipline::Priority, Discipline::PreemptivePriority]);
    }
    if !disciplines.contains(&own.discipline) {
        disciplines.push(own.discipline);
    }
    disciplines
}

/// Whether another's errors on the same requests are larger than the best's, by more than chance and more than a trifle.
///
/// Chance is judged by the ratios of the errors rather than their differences: requests differ in bursts, a busy period at
/// a time, and a few long ones would drown the many that say the same.
fn differ(best: &[Pair], other: &[Pair]) -> bool {
    let measured_s = best.iter().map(|pair| pair.measured_s).sum::<f64>() / best.len() as f64;
    let trifle_s = ALIKE * measured_s;
    let errors =
        || best.iter().zip(other).map(|(best, other)| (best.absolute_error_s(), other.absolute_error_s()));
    let larger_s: Vec<f64> = errors().map(|(best_s, other_s)| other_s - best_s).collect();
    let ratios: Vec<f64> =
        errors().map(|(best_s, other_s)| libm::log((other_s + trifle_s) / (best_s + trifle_s))).collect();
    let surely_larger = batch_means(&ratios).is_some_and(|found| found.mean > SURE * found.half_width);
    mean(&larger_s) > trifle_s && surely_larger
}
