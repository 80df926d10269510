//! The choice of an engine for this machine: the requested one, or the fastest that computes correctly.

use std::time::Duration;

use crate::engine::{Engine, UnknownEngine, names_of_available};
use crate::interrupt::Interrupt;
use crate::sha256::{Outcome, Targets, digest, scan};

/// No engine could be chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoChoice {
    /// No engine has the requested name.
    #[error(transparent)]
    Unknown(#[from] UnknownEngine),
    /// The requested engine is for other processors.
    #[error("this processor cannot run the engine {0}; it can run {available}", available = names_of_available())]
    Unavailable(Engine),
    /// The requested engine fails its self-test.
    #[error("the engine {0} computes wrong digests on this machine; choose another")]
    Wrong(Engine),
}

/// The time for which each engine is measured.
const TRIAL: Duration = Duration::from_millis(1);
/// The number of candidates between two readings of the clock.
const SLICE: u64 = 4096;
/// The most slices, in case the clock does not advance.
const SLICES: usize = 64;

impl Engine {
    /// The environment variable by which users force an engine. Nothing here reads it; see [`choose`](Self::choose).
    pub const VARIABLE: &str = "KENDALL_DIGEST";

    /// The engine named `forced`, which is the value of [`VARIABLE`](Self::VARIABLE) if it is set, or otherwise the
    /// fastest. Every engine must pass a self-test; the speed is that of SHA-256, measured for a millisecond each.
    /// `clock` returns the time since any fixed instant and never goes back.
    ///
    /// # Errors
    /// Fails only for a forced engine: if there is no engine of that name, or it does not work here.
    pub fn choose(forced: Option<&str>, clock: impl FnMut() -> Duration) -> Result<Self, NoChoice> {
        match forced {
            Some(name) => name.parse::<Self>().map_err(NoChoice::from).and_then(Self::proven),
            None => Ok(Self::fastest(clock)),
        }
    }

    /// This engine, if it works here.
    fn proven(self) -> Result<Self, NoChoice> {
        if !self.is_available() {
            Err(NoChoice::Unavailable(self))
        } else if !self.is_right() {
            Err(NoChoice::Wrong(self))
        } else {
            Ok(self)
        }
    }

    fn fastest(mut clock: impl FnMut() -> Duration) -> Self {
        let candidates = Self::available().filter(|engine| engine.is_right());
        let timed = candidates.map(|engine| (engine.trial(&mut clock), engine));
        timed.min_by_key(|&(shortest, _)| shortest).map_or(Self::Portable, |(_, engine)| engine)
    }

    /// Whether the engine finds known answers, and reports no match where there is nothing to find.
    fn is_right(self) -> bool {
        [3_u64, 1 << 20, (9 << 32) + 77, u64::MAX - 200].into_iter().all(|start| {
            let value = start + 101;
            let targets = Targets::one(digest(value));
            let outcome = |end| scan(self, &targets, start..end, &Interrupt::new());
            outcome(value) == Outcome::Absent && outcome(value + 64) == Outcome::Found { value, target: 0 }
        })
    }

    /// The shortest time for a slice in this measurement.
    fn trial(self, clock: &mut impl FnMut() -> Duration) -> Duration {
        let targets = Targets::one(digest(u64::MAX));
        let interrupt = Interrupt::new();
        let begin = clock();
        let (mut shortest, mut before) = (Duration::MAX, begin);
        for slice in 0..SLICES as u64 {
            scan(self, &targets, slice * SLICE..(slice + 1) * SLICE, &interrupt);
            let now = clock();
            shortest = shortest.min(now.saturating_sub(before));
            before = now;
            if now.saturating_sub(begin) >= TRIAL {
                break;
            }
        }
        shortest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forced_engine_is_chosen_without_reading_the_clock() {
        for engine in Engine::available() {
            let chosen = Engine::choose(Some(engine.name()), || panic!("nothing is to be timed"));
            assert_eq!(chosen, Ok(engine));
        }
    }

    #[test]
    fn errors_name_what_can_be_chosen() {
        let unknown = Engine::choose(Some("mmx"), Duration::default).unwrap_err().to_string();
        assert!(unknown.starts_with(r#"unknown engine "mmx"; this processor can run portable"#), "{unknown}");
        for engine in Engine::ALL.into_iter().filter(|engine| !engine.is_available()) {
            let error = Engine::choose(Some(engine.name()), Duration::default).unwrap_err();
            assert_eq!(error, NoChoice::Unavailable(engine));
            assert!(error.to_string().contains("it can run portable"), "{error}");
        }
    }

    #[test]
    fn the_engine_with_the_shortest_slice_is_chosen() {
        // A clock by which every slice takes a second, except for the last engine.
        let engines = Engine::available().count();
        let mut looks = 0;
        let mut now = Duration::ZERO;
        let clock = || {
            looks += 1;
            // Each engine is done after two readings, since a second is longer than a trial.
            let is_last = looks > 2 * (engines - 1);
            now += if is_last { Duration::from_millis(2) } else { Duration::from_secs(1) };
            now
        };
        assert_eq!(Engine::choose(None, clock), Ok(Engine::available().last().unwrap()));
    }

    #[test]
    fn a_clock_that_does_not_advance_ends_every_trial() {
        assert!(Engine::choose(None, Duration::default).is_ok());
    }
}
