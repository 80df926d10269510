//! The highest rate at which a system meets an objective, found by trying rates.
//!
//! The search begins where a model of the system says that the rate is, and each probe corrects the model: what a probe
//! measured at its rate is what the model must say there. So the next probe is near the answer, on the side that is still
//! open, and the bracket closes in about half the probes that doubling and halving take. A probe passes or fails by the
//! interval of what it saw, not by its value; where the limit lies within, it is repeated four times as long, and what is
//! grey even then is the boundary. A disturbed probe is repeated and not believed. Three confirmations and an isotonic regression over all
//! probes make the answer, near a rate at which a probe passed; how far the probes near the limit scatter makes its interval.
//!
//! Who probes is the caller: this module knows neither servers nor clocks.

mod evidence;
mod model;
mod sighting;

use kendall_station::Estimate;
use kendall_stats::random::{Purpose, stream};
use rand::seq::SliceRandom as _;
use serde::Serialize;

pub use model::{Curve, Knee};
pub use sighting::{Outcome, Sighting, requests_needed};

use crate::fit::Slo;

/// The bracket is closed when its ends are this near to each other.
pub const PRECISION: f64 = 0.02;
/// An inconclusive probe is repeated this many times as long.
const LONGER: u32 = 4;
/// No more probes than this before the confirmations: each closes the bracket by a fifth at least, so from any guess within a
/// factor of a thousand fewer are enough.
const MOST_PROBES: usize = 40;
/// How far beyond the guess the next rate lies, so that a right guess ends up within the bracket.
const ASIDE: f64 = 0.008;
/// What confirms what was found.
const CONFIRM: [f64; 3] = [0.95, 1.0, 1.05];
/// The probes that search for a pass just below the found rate: the share of that rate, and how many times as long.
const NEAR: [(f64, u32); 2] = [(0.95, 4), (0.9, 8)];
/// The search is taken up again no more often than this.
const ROUNDS: u64 = 3;
/// Where no probe of the search passed, lower rates are tried in steps of this factor, and at most this many.
const STEP_DOWN: f64 = 0.9;
const STEPS_DOWN: usize = 6;
/// No system is asked for more.
const MOST_PER_S: f64 = 1e9;
/// Of a bracket, the ends of which are left alone by so much: a probe there would hardly close it.
const KEEP_OFF: f64 = 0.2;

/// So often a disturbed probe is repeated, and so often in all: a disturbance that does not end is the machine as it is.
const REPEATS: (u32, u32) = (2, 10);

/// The aim of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Aim {
    /// The objective.
    pub slo: Slo,
    /// The share of requests that may lack a right answer.
    pub errors_at_most: f64,
}

/// The reason why a rate is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// To close the bracket.
    Search,
    /// Because the last one was inconclusive.
    Longer,
    /// Because the last one was disturbed.
    Again,
    /// To confirm the result.
    Confirm,
}

/// The probe that the caller must run next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ask {
    /// Requests per second.
    pub rate_per_s: f64,
    /// The length of the probe, as a multiple of the usual one.
    pub length: u32,
    /// The reason for the probe.
    pub why: Why,
}

/// A rate that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Probe {
    /// The requested probe.
    pub ask: Ask,
    /// The measurement of the probe.
    pub sighting: Sighting,
    /// The outcome of the probe.
    pub outcome: Outcome,
}

impl PeakResult {
    /// The probes that count although they were disturbed and did not pass: however often they were repeated, they were disturbed.
    pub fn doubtful(&self) -> usize {
        evidence::believed(&self.probes).iter().filter(|probe| !probe.is_believed()).count()
    }
}

impl Probe {
    /// Whether the probe counts as evidence of the system: a disturbed probe does so only if it passes all the same.
    pub fn is_believed(&self) -> bool {
        !self.sighting.disturbed || self.outcome == Outcome::Pass
    }
}

/// The result of a search for the highest rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeakResult {
    /// The highest rate, per second: at most 6 % above one at which a probe passed. Another search ends within its interval in 95 of 100
    /// cases; where too few probes were near the limit to say that, it goes from the highest rate up to which every probe passed to the
    /// lowest from which every one failed. `None` where no rate passed, or where none failed.
    pub rate_per_s: Option<Estimate>,
    /// Every probe, in order.
    pub probes: Vec<Probe>,
    /// How many probes doubling from a light load until one fails, and then halving, would have taken to the same precision,
    /// confirmations as here.
    pub plain_probes: u32,
    /// The model as the last probe left it.
    pub curve: Curve,
}

/// A search that ended before its answer was confirmed.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfinished<E> {
    /// The result of the probes that finished.
    pub found: PeakResult,
    /// The reason why no other probe was made.
    pub why: E,
}

/// Searches. `probe` loads the system at a rate and returns what it measured; `curve` is prior knowledge of the system, and
/// `light_per_s` a rate that is certainly a light load.
///
/// # Errors
/// Ends when `probe` fails, with what was found by then.
pub fn search<E>(
    aim: &Aim,
    curve: Curve,
    light_per_s: f64,
    seed: u64,
    probe: &mut dyn FnMut(&Ask) -> Result<Sighting, E>,
) -> Result<PeakResult, Box<Unfinished<E>>> {
    let mut search = Search {
        aim: *aim,
        curve,
        light_per_s,
        low: None,
        high: None,
        streak: 0,
        repeats: 0,
        probes: Vec::new(),
        probe,
    };
    match search.run(seed) {
        Ok(()) => Ok(search.found()),
        Err(why) => Err(Box::new(Unfinished { found: search.found(), why })),
    }
}

struct Search<'p, E> {
    aim: Aim,
    curve: Curve,
    light_per_s: f64,
    /// The highest rate that passed, and the lowest that did not.
    low: Option<f64>,
    high: Option<f64>,
    /// How many probes one after the other moved the same end: the lower one above 0, the upper one below.
    streak: i32,
    /// How many disturbed probes were repeated.
    repeats: u32,
    probes: Vec<Probe>,
    probe: &'p mut dyn FnMut(&Ask) -> Result<Sighting, E>,
}

/// Whether the probes confirm the found rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Confirmed {
    Yes,
    No,
}

impl<E> Search<'_, E> {
    fn run(&mut self, seed: u64) -> Result<(), E> {
        for round in 0..ROUNDS {
            while let Some(rate_per_s) = self.next() {
                self.try_at(rate_per_s)?;
            }
            if self.confirm(seed.wrapping_add(round))? == Confirmed::Yes {
                break;
            }
        }
        self.find_a_pass()?;
        self.pass_near()
    }

    /// The next rate to try; `None` once the bracket is closed.
    fn next(&self) -> Option<f64> {
        if self.probes.len() >= MOST_PROBES {
            return None;
        }
        let guess = self.curve.highest_per_s(self.aim.slo);
        // A model that sends the search one way again and again is wrong there: then by steps that double, or to the middle.
        let step = libm::pow(1.0 + PRECISION, libm::exp2(f64::from(self.streak.abs() - 1))).min(2.0);
        match (self.low, self.high) {
            (Some(low), Some(high)) if high <= low * (1.0 + PRECISION) => None,
            (Some(low), Some(high)) => {
                let at = |share: f64| low * libm::pow(high / low, share);
                let guess = guess.filter(|_| self.streak.abs() < 2).unwrap_or_else(|| at(0.5));
                // Towards the end that is further off, so that a right guess is bracketed at once.
                let aside = if guess / low > high / guess { 1.0 - ASIDE } else { 1.0 + ASIDE };
                Some((guess * aside).clamp(at(KEEP_OFF), at(1.0 - KEEP_OFF)))
            }
            (None, None) => Some(guess.unwrap_or(self.light_per_s)),
            // Open upwards: a little above the guess, but on, and no more than twice as far.
            (Some(low), None) => {
                let guess = guess.unwrap_or(2.0 * low) * (1.0 + ASIDE);
                (low < MOST_PER_S).then(|| guess.clamp(low * step, 2.0 * low))
            }
            // Open downwards, to the light load.
            (None, Some(high)) => {
                let guess = guess.unwrap_or(0.5 * high) * (1.0 - ASIDE);
                let next = guess.clamp(0.5 * high, high / step).max(self.light_per_s);
                (next < high).then_some(next)
            }
        }
    }

    /// Tries a rate, longer if that is inconclusive, and moves the bracket.
    fn try_at(&mut self, rate_per_s: f64) -> Result<(), E> {
        let mut outcome = self.ask(Ask { rate_per_s, length: 1, why: Why::Search })?;
        if outcome == Outcome::Grey {
            outcome = self.ask(Ask { rate_per_s, length: LONGER, why: Why::Longer })?;
        }
        match outcome {
            Outcome::Pass => {
                self.low = Some(rate_per_s.max(self.low.unwrap_or(0.0)));
                self.streak = self.streak.max(0) + 1;
            }
            Outcome::Fail => {
                let seen = &self.probes.last().expect("one was asked").sighting;
                // What it achieved is all that it can.
                let achieved = seen.achieved_share * rate_per_s;
                let bound = if seen.is_overloaded() { achieved.min(rate_per_s) } else { rate_per_s };
                let bound = self.low.map_or(bound, |low| bound.max(low));
                self.high = Some(bound.min(self.high.unwrap_or(f64::INFINITY)));
                self.streak = self.streak.min(0) - 1;
            }
            // No rate between the two can be distinguished: this is the boundary.
            Outcome::Grey => {
                let half = (1.0 + PRECISION).sqrt();
                self.low = Some(self.low.unwrap_or(0.0).max(rate_per_s / half));
                self.high = Some(self.high.unwrap_or(f64::INFINITY).min(rate_per_s * half));
            }
        }
        Ok(())
    }

    /// Asks for a probe, and again where it was disturbed; one that is disturbed each time counts as it is.
    fn ask(&mut self, ask: Ask) -> Result<Outcome, E> {
        let mut outcome = self.ask_once(ask)?;
        for _ in 0..REPEATS.0 {
            if self.probes.last().is_none_or(Probe::is_believed) || self.repeats >= REPEATS.1 {
                break;
            }
            self.repeats += 1;
            outcome = self.ask_once(Ask { why: Why::Again, ..ask })?;
        }
        Ok(outcome)
    }

    fn ask_once(&mut self, ask: Ask) -> Result<Outcome, E> {
        let sighting = (self.probe)(&ask)?;
        let outcome = sighting.outcome(&self.aim);
        self.probes.push(Probe { ask, sighting, outcome });
        self.curve.correct(&self.probes, self.aim.slo);
        Ok(outcome)
    }

    /// Tries rates just below, at and just above the found one, in random order, so that drift does not look like an answer. Where it
    /// passes above or fails below, a probe of the search was a false positive or negative, and the bracket is opened on that side.
    fn confirm(&mut self, seed: u64) -> Result<Confirmed, E> {
        let (Some(low), Some(high)) = (self.low, self.high) else { return Ok(Confirmed::Yes) };
        let found = (low * high).sqrt();
        let mut factors = CONFIRM;
        factors.shuffle(&mut stream(seed, Purpose::Order, 0));
        let (mut passes_above, mut fails_below) = (false, false);
        for factor in factors {
            let outcome = self.ask(Ask { rate_per_s: factor * found, length: 2, why: Why::Confirm })?;
            passes_above |= factor > 1.0 && outcome == Outcome::Pass;
            fails_below |= factor < 1.0 && outcome == Outcome::Fail;
        }
        self.streak = 0;
        match (fails_below, passes_above) {
            (false, true) => (self.low, self.high) = (Some(CONFIRM[2] * found), None),
            (true, false) => (self.low, self.high) = (None, Some(CONFIRM[0] * found)),
            _ => return Ok(Confirmed::Yes),
        }
        Ok(Confirmed::No)
    }

    /// Tries lower rates, longer, until one passes: a boundary that only grey probes drew shows no rate that meets the objective.
    fn find_a_pass(&mut self) -> Result<(), E> {
        let has = |probes: &[Probe], outcome| probes.iter().any(|probe| probe.outcome == outcome);
        // If every rate fails down to a light load, no rate passes.
        if !has(&self.probes, Outcome::Grey) {
            return Ok(());
        }
        for _ in 0..STEPS_DOWN {
            let lowest = self.probes.iter().map(|probe| probe.ask.rate_per_s).fold(f64::INFINITY, f64::min);
            if has(&self.probes, Outcome::Pass) || lowest <= self.light_per_s {
                break;
            }
            let rate_per_s = (STEP_DOWN * lowest).max(self.light_per_s);
            self.ask(Ask { rate_per_s, length: LONGER, why: Why::Search })?;
        }
        Ok(())
    }

    /// Tries a rate right below what was found, for longer, where no probe passed so near: the answer is a rate at which probes passed.
    fn pass_near(&mut self) -> Result<(), E> {
        for (share, length) in NEAR {
            let Some(value) = evidence::crossing_alone(&self.probes) else { break };
            if evidence::highest_passed(&self.probes).is_none_or(|passed| passed * evidence::BEYOND >= value)
            {
                break;
            }
            self.ask(Ask { rate_per_s: share * value, length, why: Why::Confirm })?;
        }
        Ok(())
    }

    fn found(self) -> PeakResult {
        let Self { aim, probes, curve, light_per_s, .. } = self;
        let rate_per_s = evidence::crossing(&probes, &curve, aim.slo);
        let plain_probes = rate_per_s.map_or(0, |rate| plain_probes(rate.value, light_per_s));
        PeakResult { rate_per_s, probes, plain_probes, curve }
    }
}

/// Doubling from the light load until a rate fails, then halving the bracket, by the ratio of its ends, to the precision, then
/// three confirmations.
fn plain_probes(rate_per_s: f64, light_per_s: f64) -> u32 {
    let doublings = libm::log2(rate_per_s / light_per_s).max(0.0).floor() as u32 + 2;
    let halvings = libm::ceil(libm::log2(std::f64::consts::LN_2 / libm::log1p(PRECISION))) as u32;
    doublings + halvings + 3
}

#[cfg(test)]
mod coverage;
#[cfg(test)]
mod tests;
