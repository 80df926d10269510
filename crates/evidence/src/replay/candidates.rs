//! Finds which number of servers and which order of service explain a run: replays many stations, ranks and distinguishes them.

use kendall_station::{Discipline, Servers};
use serde::{Deserialize, Serialize};

use super::fit::{Fit, Pair, median};
use super::visits::Visits;
use super::{NotReplayed, Replay, Rules};
use crate::Trial;
use kendall_stats::{lag_one_correlation, mean};

/// Up to this number of servers, every number up to twice as many is tried; above, only some.
const EVERY: u32 = 8;
/// Two stations whose errors differ by less than this share of the mean response predict alike, however sure that is.
const ALIKE: f64 = 0.01;
/// Two stations are distinguished if the log-likelihood of the run is this much higher by the better one. If the worse one is true,
/// this happens at most once in e^12 = 160 000 runs (Royall 2000, "On the probability of observing misleading statistical evidence"),
/// so that a choice among some thirty of them is still safe.
const SURE: f64 = 12.0;
/// A best candidate that is further off than this share of the mean response explains nothing.
const UNEXPLAINED: f64 = 0.25;

/// One station that a run was replayed through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The candidate's servers.
    pub servers: Servers,
    /// The candidate's order of service.
    pub discipline: Discipline,
    /// The candidate's capacity, in requests waiting and in service; `None` is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// The errors of the candidate's predictions.
    pub fit: Fit,
    /// Whether the run distinguishes the candidate from the best.
    pub told_apart: bool,
}

/// The verdict of a run on the candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayVerdict {
    /// The first one explains it, and no other predicts alike.
    Explained,
    /// The first ones predict alike: too few requests waited to distinguish them.
    CannotTell,
    /// Even the best candidate has large errors: the response times depend on more than the servers and their order.
    Unexplained,
}

/// Stations ranked by how well they explain a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidates {
    /// The verdict of the run on the candidates.
    pub verdict: ReplayVerdict,
    /// The best first; the system's own comes before candidates that the run cannot distinguish from it.
    pub ranked: Vec<Candidate>,
    /// The rank of the system's own station among the candidates.
    pub own: usize,
    /// The replay through the first.
    pub best: Replay,
}

impl Candidates {
    /// The candidates that the run cannot distinguish from the best, which comes first.
    pub fn alike(&self) -> impl Iterator<Item = &Candidate> {
        self.ranked.iter().filter(|candidate| !candidate.told_apart)
    }
}

/// Replays trials through stations of one to twice as many servers as the system's `own`, each first in first out, last in first out,
/// sharing, in its own order, and by priority where classes differ in weight. Where the server turned requests away, each also with
/// room for as many as were there when it did, one more and one fewer. They are ranked by [`Fit::relative_error`] and distinguished by
/// the likelihood of their errors on the same requests, and of which requests were rejected. What room the system's own station has is
/// not known in advance: with any it is the own one.
///
/// # Errors
/// As [`super::replay`].
pub fn candidates(trials: &[Trial<'_>], own: &Rules<'_>) -> Result<Candidates, NotReplayed> {
    let visits = Visits::of(trials)?;
    let mut tried: Vec<Replay> = Vec::new();
    let rooms = rooms(visits.found_by_refused());
    for servers in numbers(own.servers) {
        for discipline in disciplines(own, visits.are_weighted(own)) {
            let fits = |room: &&Option<u64>| room.is_none_or(|room| room >= u64::from(servers.get()));
            let at = |&capacity| visits.replay(&Rules { servers, discipline, capacity, ..*own });
            tried.extend(rooms.iter().filter(fits).map(at));
        }
    }
    let is_own = |replay: &Replay| replay.servers == own.servers && replay.discipline == own.discipline;
    tried.sort_by(|a, b| a.fit.relative_error.total_cmp(&b.fit.relative_error));
    let least_error = tried[0].fit.relative_error;
    // Response times, with the run's own refusals, distinguish servers and order; the rejected requests distinguish the capacity. A
    // replay that turns one request away too many or too few is another from there on, and that says little against its room.
    let unlimited = |replay: &Replay| {
        let same = |other: &&Replay| {
            other.capacity.is_none()
                && (other.servers, other.discipline) == (replay.servers, replay.discipline)
        };
        tried.iter().find(same).expect("unlimited room is always tried")
    };
    let best = unlimited(&tried[0]);
    let apart = |replay: &Replay| {
        let unlimited = unlimited(replay);
        let worse = replay.fit.relative_error - unlimited.fit.relative_error;
        (worse > UNEXPLAINED && replay.refusal_evidence <= SURE) || differ(&best.pairs, &unlimited.pairs)
    };
    let mut told_apart: Vec<bool> = tried.iter().map(apart).collect();
    tell_apart_by_refusals(&tried, &mut told_apart);
    let mut ranked: Vec<(Replay, bool)> = tried.into_iter().zip(told_apart).collect();
    let place = |(replay, told_apart): &(Replay, bool)| (*told_apart, !is_own(replay) && !*told_apart);
    // Stable, so that what is left alike by all this stays in the order of the errors.
    ranked.sort_by(|a, b| {
        let explains = |one: &(Replay, bool)| if one.1 { 0.0 } else { one.0.refusal_evidence };
        place(a).cmp(&place(b)).then(explains(b).total_cmp(&explains(a)))
    });
    let own = ranked.iter().position(|(replay, _)| is_own(replay)).expect("the system's own is tried");
    let alike = ranked.iter().filter(|(_, told_apart)| !told_apart).count();
    let verdict = match least_error {
        error if error > UNEXPLAINED => ReplayVerdict::Unexplained,
        _ if alike > 1 => ReplayVerdict::CannotTell,
        _ => ReplayVerdict::Explained,
    };
    let candidate = |(replay, told_apart): &(Replay, bool)| Candidate {
        servers: replay.servers,
        discipline: replay.discipline,
        capacity: replay.capacity,
        fit: replay.fit.clone(),
        told_apart: *told_apart,
    };
    let candidates = ranked.iter().map(candidate).collect();
    Ok(Candidates { verdict, ranked: candidates, own, best: ranked.swap_remove(0).0 })
}

/// Among candidates with like responses, those that explain which requests were rejected are distinguished from the rest.
fn tell_apart_by_refusals(tried: &[Replay], told_apart: &mut [bool]) {
    let alike = tried.iter().zip(&*told_apart).filter(|(_, told_apart)| !**told_apart);
    let most = alike.map(|(replay, _)| replay.refusal_evidence).fold(0.0, f64::max);
    for (replay, told_apart) in tried.iter().zip(told_apart) {
        *told_apart |= most - replay.refusal_evidence > SURE;
    }
}

/// The rooms to try: unlimited, and about as much as was taken when requests were turned away.
fn rooms(found: Option<u64>) -> Vec<Option<u64>> {
    let around =
        found.into_iter().flat_map(|found| found.saturating_sub(1).max(1)..=found.max(1).saturating_add(1));
    [None].into_iter().chain(around.map(Some)).collect()
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

/// Whether another's errors on the same requests are larger than the best's, by more than a trifle and more than chance.
///
/// Given a run, predictions are certain, and chance is only in what the best one leaves over. That is taken to have the density
/// 1/(1 + |e|/s)² of an error e, up to a factor, with half of the errors within s: tails so heavy that a pause of the machine decides nothing. Each
/// request then adds 2·ln((s + |e'|)/(s + |e|)) to the evidence, which is nothing where both predict alike, however many
/// such requests there are. What is left over in one burst is not independent, so all of it counts only as that many
/// requests as are as good as independent, (1 − r)/(1 + r) of them with a correlation r of neighbours (Law 2015, section 4.4).
fn differ(best: &[Pair], other: &[Pair]) -> bool {
    let trifle_s = ALIKE * mean(&best.iter().map(|pair| pair.measured_s).collect::<Vec<_>>());
    let left_s: Vec<f64> = best.iter().map(Pair::absolute_error_s).collect();
    let scale_s = median(left_s.clone()).max(trifle_s);
    let errors = || left_s.iter().zip(other).map(|(&best_s, other)| (best_s, other.absolute_error_s()));
    let larger_s = errors().map(|(best_s, other_s)| other_s - best_s).sum::<f64>() / left_s.len() as f64;
    let evidence = |(best_s, other_s): (f64, f64)| 2.0 * libm::log((scale_s + other_s) / (scale_s + best_s));
    let signed: Vec<f64> = best
        .iter()
        .map(|pair| (pair.predicted_s - pair.measured_s) / (scale_s + pair.absolute_error_s()))
        .collect();
    let correlation = lag_one_correlation(&signed).max(0.0);
    let independent = (1.0 - correlation) / (1.0 + correlation);
    larger_s > trifle_s && independent * errors().map(evidence).sum::<f64>() > SURE
}
