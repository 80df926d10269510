//! The draws of a seed: a plan of some hundred requests, and the character of the peer that answers them.

use std::time::Duration;

use bytes::Bytes;
use kendall_station::{Arrivals, Attendance, Batch, Between, Law, Profile, Sessions};
use kendall_stats::random::{Rng, unit};

use crate::plan::Plan;
use crate::request::{Request, RequestClass};
use crate::workload::{Route, Workload};

const MS: f64 = 1e6;

/// A workload whose requests only differ in their numbers.
pub(super) struct Numbers;

impl Workload for Numbers {
    fn request(&self, index: u64) -> Request {
        Request::new((index % 3) as u32, Bytes::new())
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new("all", 1.0); 3]
    }

    fn route(&self) -> Route<'_> {
        unreachable!("the peer is scripted")
    }
}

/// How long an answer takes, from the instant since the start and the peer's random numbers.
pub(super) type Draw = Box<dyn Fn(i64, &mut Rng) -> Option<i64>>;

/// The character of a peer. Probabilities are from 0 to 1.
pub(super) struct Peer {
    /// How long a connection takes to open.
    pub(super) connect_ns: i64,
    /// The probability that it fails to open.
    pub(super) fails: f64,
    /// The probability that it fails because this side has no port left.
    pub(super) fails_here: f64,
    /// How long an answer takes; `None` for one that never comes.
    pub(super) answer_ns: Draw,
    /// The probability that an answer is wrong, and that it is a rejection.
    pub(super) wrong: f64,
    pub(super) refuses: f64,
    /// The probability that a connection is closed after its answer.
    pub(super) closes: f64,
    /// The probability that the peer closes a connection that has been idle for a while.
    pub(super) drops_idle: f64,
    /// The probability that the generator's thread stalls at an event.
    pub(super) stalls: f64,
    /// The instant at which the run is cancelled.
    pub(super) cancelled_ns: Option<i64>,
}

impl Peer {
    /// A peer that answers everything correctly, and keeps every connection.
    pub(super) fn good() -> Self {
        Self {
            connect_ns: 0,
            fails: 0.0,
            fails_here: 0.0,
            answer_ns: Box::new(|_, _| Some(0)),
            wrong: 0.0,
            refuses: 0.0,
            closes: 0.0,
            drops_idle: 0.0,
            stalls: 0.0,
            cancelled_ns: None,
        }
    }

    pub(super) fn drawn(rng: &mut Rng) -> Self {
        let mut sometimes = |most: f64| if unit(rng) < 0.5 { 0.0 } else { most * unit(rng) };
        let (fails, fails_here, wrong, refuses) =
            (sometimes(0.3), sometimes(0.1), sometimes(0.2), sometimes(0.2));
        let (closes, drops_idle, stalls, never) =
            (sometimes(0.5), sometimes(0.5), sometimes(0.02), sometimes(0.1));
        let (mean_ns, connect_ns) = (unit(rng) * 20.0 * MS, (unit(rng) * 3.0 * MS) as i64);
        let cancelled_ns = (unit(rng) < 0.1).then(|| (unit(rng) * 200.0 * MS) as i64);
        let answer_ns = move |_, rng: &mut Rng| {
            (unit(rng) >= never).then(|| (-unit(rng).max(1e-9).ln() * mean_ns) as i64)
        };
        let answer_ns: Draw = Box::new(answer_ns);
        Self {
            connect_ns,
            fails,
            fails_here,
            answer_ns,
            wrong,
            refuses,
            closes,
            drops_idle,
            stalls,
            cancelled_ns,
        }
    }
}

/// A plan of some hundred requests.
pub(super) fn drawn_plan(seed: u64, rng: &mut Rng) -> Plan {
    let think = Law::Exponential { mean_s: 0.01 * unit(rng) };
    let points = vec![(0.0, 20.0 + 500.0 * unit(rng)), (0.1, 1000.0 * unit(rng)), (0.2, 100.0)];
    let arrivals = match (unit(rng) * 7.0) as u32 {
        0 => Arrivals::poisson(50.0 + 2000.0 * unit(rng)),
        1 => Arrivals::constant(50.0 + 2000.0 * unit(rng)),
        2 => Arrivals::Closed { population: 1 + (unit(rng) * 20.0) as u32, think },
        3 => {
            let mut at_s = 0.0;
            // A third of the requests are due together with the one before.
            let instants = (0..200).map(|_| {
                at_s += (unit(rng) - 1.0 / 3.0).max(0.0) * 0.002;
                at_s
            });
            Arrivals::Trace { instants_s: instants.collect::<Vec<f64>>().into() }
        }
        4 => Arrivals::Varying(Profile { points, between: Between::Lines, ..Profile::default() }),
        5 => {
            let points = vec![(0.0, 2.0), (0.05, 12.0), (0.1, 12.0), (0.15, 3.0), (0.2, 1.0)];
            Arrivals::Attended(Attendance { points, think })
        }
        _ => {
            let gap = Law::Exponential { mean_s: 0.002 + 0.01 * unit(rng) };
            Arrivals::Sessions(Sessions { gap, requests: Batch::Geometric { mean: 3.0 }, think })
        }
    };
    let ms = |least: f64, most: f64, rng: &mut Rng| Duration::from_secs_f64((least + most * unit(rng)) / 1e3);
    Plan {
        connections: 1 + (unit(rng) * 30.0) as u32,
        timeout: ms(1.0, 100.0, rng),
        drain: ms(0.0, 300.0, rng),
        requests: (unit(rng) < 0.3).then(|| (unit(rng) * 100.0) as u64),
        ..Plan::lasting(arrivals, Duration::from_millis(200), seed)
    }
}
