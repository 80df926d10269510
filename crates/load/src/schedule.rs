//! When the next request is due: by arrivals fixed in advance, by the users of a closed population, or by sessions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kendall_station::{Arrivals, Attendance, Crowd, Instants, Law};
use kendall_stats::random::{Purpose, Rng, stream};

use crate::plan::Plan;

/// The least think time of a user after a request without an answer, in nanoseconds. Without it, users without a
/// think time would send requests to a port without a server as fast as the machine can, and leave it no time for
/// the server.
pub(crate) const THINK_UNANSWERED_NS: i64 = 1_000_000;

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The request's number.
    pub(crate) index: u64,
    /// The request's due time, in nanoseconds since the start.
    pub(crate) at_ns: i64,
    /// The request's user, in a closed population and in sessions.
    pub(crate) user: Option<usize>,
    /// The lag of the request although a connection was free, in nanoseconds; 0 until it was begun.
    pub(crate) lag_ns: i64,
}

/// The source of requests, in order of their due times.
pub(crate) struct Schedule<'a> {
    source: Source<'a>,
    next_index: u64,
    last_index: u64,
    last_ns: i64,
}

enum Source<'a> {
    Open { instants: Instants<'a>, next_ns: Option<i64> },
    Closed { think: &'a Law, users: Vec<Rng>, due: BinaryHeap<Reverse<(i64, usize)>> },
    Attended { attendance: &'a Attendance, users: Vec<Rng>, due: BinaryHeap<Reverse<(i64, usize)>> },
    Sessions(Crowd<'a>),
}

impl<'a> Schedule<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        let source = match (&plan.arrivals, plan.arrivals.instants(plan.seed)) {
            (_, Some(mut instants)) => {
                let next_ns = instants.next().map(nanoseconds);
                Source::Open { instants, next_ns }
            }
            (Arrivals::Closed { population, think }, None) => {
                let mut users = users(*population, plan.seed);
                let first = users.iter_mut().map(|rng| nanoseconds(think.sample(rng)));
                let due = first.enumerate().map(|(i, at_ns)| Reverse((at_ns, i))).collect();
                Source::Closed { think, users, due }
            }
            (Arrivals::Attended(attendance), None) => {
                let mut users = users(attendance.most(), plan.seed);
                let first = |(i, rng): (usize, &mut Rng)| attended(attendance, (i, rng), 0, 0);
                let due = users.iter_mut().enumerate().filter_map(first).collect();
                Source::Attended { attendance, users, due }
            }
            (Arrivals::Sessions(sessions), None) => Source::Sessions(Crowd::new(sessions, plan.seed)),
            (_, None) => unreachable!("only users and sessions have no instants"),
        };
        let last_ns = plan.duration.map_or(i64::MAX, |time| time.as_nanos().try_into().unwrap_or(i64::MAX));
        let leave_ns = match &plan.arrivals {
            Arrivals::Attended(attendance) => nanoseconds(attendance.ends_s()),
            _ => i64::MAX,
        };
        Self {
            source,
            next_index: 0,
            last_index: plan.requests.unwrap_or(u64::MAX),
            last_ns: last_ns.min(leave_ns),
        }
    }

    /// The due time of the next request, in nanoseconds since the start; `None` if no request is due or known yet.
    pub(crate) fn next_ns(&self) -> Option<i64> {
        let at_ns = match &self.source {
            Source::Open { next_ns, .. } => *next_ns,
            Source::Closed { due, .. } | Source::Attended { due, .. } => {
                due.peek().map(|Reverse((at_ns, _))| *at_ns)
            }
            Source::Sessions(crowd) => crowd.next_s().map(nanoseconds),
        };
        at_ns.filter(|&at_ns| self.next_index < self.last_index && at_ns < self.last_ns)
    }

    /// The number of the next request, due or not.
    pub(crate) fn next_index(&self) -> u64 {
        self.next_index
    }

    /// Takes the next request.
    pub(crate) fn take(&mut self) -> Option<Due> {
        let at_ns = self.next_ns()?;
        let index = self.next_index;
        self.next_index += 1;
        let user = match &mut self.source {
            Source::Open { instants, next_ns } => {
                *next_ns = instants.next().map(nanoseconds);
                None
            }
            Source::Closed { due, .. } | Source::Attended { due, .. } => {
                due.pop().map(|Reverse((_, user))| user)
            }
            Source::Sessions(crowd) => crowd.take().map(|(_, user)| user as usize),
        };
        Some(Due { index, at_ns, user, lag_ns: 0 })
    }

    /// Stops the schedule: no further requests become due.
    pub(crate) fn stop(&mut self) {
        self.last_index = self.next_index;
    }

    /// Starts the think time of a user after its answer or its abandoned request; a user of a session may leave
    /// instead.
    pub(crate) fn think(&mut self, user: usize, now_ns: i64, at_least_ns: i64) {
        match &mut self.source {
            Source::Open { .. } => {}
            Source::Closed { think, users, due } => {
                let think_ns = nanoseconds(think.sample(&mut users[user])).max(at_least_ns);
                due.push(Reverse((now_ns.saturating_add(think_ns), user)));
            }
            Source::Attended { attendance, users, due } => {
                due.extend(attended(attendance, (user, &mut users[user]), now_ns, at_least_ns));
            }
            Source::Sessions(crowd) => {
                let user = u32::try_from(user).expect("a crowd numbers its users in 32 bits");
                crowd.answered(user, now_ns as f64 / NS_PER_S, at_least_ns as f64 / NS_PER_S);
            }
        }
    }

    /// Whether no further request can become due.
    pub(crate) fn is_over(&self, now_ns: i64) -> bool {
        match &self.source {
            Source::Open { .. } => self.next_ns().is_none(),
            Source::Closed { .. } | Source::Attended { .. } | Source::Sessions(_) => {
                self.next_index >= self.last_index || now_ns >= self.last_ns
            }
        }
    }
}

/// The random numbers of this many users.
fn users(count: u32, seed: u64) -> Vec<Rng> {
    (0..count).map(|user| stream(seed, Purpose::Think, u64::from(user))).collect()
}

/// The next request of a user who begins to think, if it comes again.
fn attended(
    attendance: &Attendance,
    (user, rng): (usize, &mut Rng),
    now_ns: i64,
    at_least_ns: i64,
) -> Option<Reverse<(i64, usize)>> {
    let number = u32::try_from(user).expect("user numbers have 32 bits");
    let think_s = || attendance.think.sample(rng).max(at_least_ns as f64 / NS_PER_S);
    let due_s = attendance.due_s(number, now_ns as f64 / NS_PER_S, think_s)?;
    Some(Reverse((nanoseconds(due_s), user)))
}

const NS_PER_S: f64 = 1e9;

fn nanoseconds(seconds: f64) -> i64 {
    // Saturates: an instant beyond 292 years never comes.
    (seconds * NS_PER_S).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_station::{Batch, Between, Profile, Sessions, Spacing};
    use std::time::Duration;

    fn plan(arrivals: Arrivals) -> Plan {
        Plan::lasting(arrivals, Duration::from_secs(1), 7)
    }

    fn all(plan: &Plan) -> Vec<Due> {
        let mut schedule = Schedule::new(plan);
        std::iter::from_fn(|| schedule.take()).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_instants_and_the_same_number_of_them() {
        let poisson = plan(Arrivals::poisson(500.0));
        assert_eq!(all(&poisson), all(&poisson));
        assert_ne!(all(&poisson), all(&Plan { seed: 8, ..poisson.clone() }));
        let constant = all(&plan(Arrivals::constant(500.0)));
        // Due at 2 ms, 4 ms, …, 998 ms.
        assert_eq!(constant.len(), 499);
        assert_eq!(constant[0], Due { index: 0, at_ns: 2_000_000, user: None, lag_ns: 0 });
    }

    #[test]
    fn the_count_stops_it_too() {
        let few = Plan { requests: Some(3), ..plan(Arrivals::poisson(500.0)) };
        assert_eq!(all(&few).len(), 3);
    }

    /// The number of requests only depends on the seed and the stages, and so does each instant.
    #[test]
    fn stages_end_without_a_limit() {
        let points = vec![(0.0, 0.0), (1.0, 300.0), (1.0, 100.0), (3.0, 100.0), (3.0, 0.0)];
        let stages = Profile { points, between: Between::Lines, ..Profile::default() };
        let even = Arrivals::Varying(Profile { spacing: Spacing::Even, ..stages.clone() });
        let untimed = |arrivals| Plan { duration: None, ..plan(arrivals) };
        let due = all(&untimed(even));
        assert_eq!(due.len(), 349);
        let gap_ns = |i: usize| due[i + 1].at_ns - due[i].at_ns;
        assert!((150..348).all(|i| (gap_ns(i) - 10_000_000).abs() <= 1), "100/s evenly from 1 s on");
        let poisson = untimed(Arrivals::Varying(stages));
        assert_eq!(all(&poisson), all(&poisson));
        let mut schedule = Schedule::new(&poisson);
        while schedule.take().is_some() {}
        assert!(schedule.is_over(0));
    }

    #[test]
    fn a_session_asks_again_only_after_its_answer_and_ends() {
        let gap = Law::Constant { mean_s: 0.4 };
        let requests = Batch::Fixed { size: 2 };
        let sessions = Sessions { gap, requests, think: Law::Constant { mean_s: 0.1 } };
        let plan = plan(Arrivals::Sessions(sessions));
        let mut schedule = Schedule::new(&plan);
        let first = schedule.take().unwrap();
        assert_eq!(first, Due { index: 0, at_ns: 400_000_000, user: Some(0), lag_ns: 0 });
        assert_eq!(schedule.next_ns(), Some(800_000_000), "the next session, for no answer has come");
        schedule.think(0, 450_000_000, 0);
        assert_eq!(schedule.take(), Some(Due { index: 1, at_ns: 550_000_000, user: Some(0), lag_ns: 0 }));
        schedule.think(0, 600_000_000, THINK_UNANSWERED_NS);
        assert_eq!(
            schedule.take(),
            Some(Due { index: 2, at_ns: 800_000_000, user: Some(0), lag_ns: 0 }),
            "another's place"
        );
        assert!(!schedule.is_over(900_000_000) && schedule.is_over(1_000_000_000));
    }

    /// One user all the time, a second one in the middle third.
    #[test]
    fn users_join_and_leave_after_their_answer() {
        let points = vec![(0.0, 1.0), (0.3, 1.0), (0.3, 2.0), (0.6, 2.0), (0.6, 1.0), (0.9, 1.0)];
        let attendance = Attendance { points, think: Law::Constant { mean_s: 0.1 } };
        let plan = Plan { duration: None, ..plan(Arrivals::Attended(attendance)) };
        let mut schedule = Schedule::new(&plan);
        let due = |index, at_ms: i64, user| {
            Some(Due { index, at_ns: at_ms * 1_000_000, user: Some(user), lag_ns: 0 })
        };
        assert_eq!((schedule.take(), schedule.next_ns()), (due(0, 100, 0), Some(400_000_000)));
        schedule.think(0, 450_000_000, 0);
        assert_eq!((schedule.take(), schedule.take()), (due(1, 400, 1), due(2, 550, 0)));
        // Its answer comes while it is to be there, but its think time ends too late; the other's ends in time.
        schedule.think(1, 550_000_000, 0);
        assert_eq!(schedule.take(), None);
        schedule.think(0, 700_000_000, 0);
        assert_eq!(schedule.take(), due(3, 800, 0));
        assert!(!schedule.is_over(800_000_000));
        schedule.think(0, 850_000_000, 0);
        assert_eq!(schedule.take(), None);
        assert!(schedule.is_over(900_000_000));
    }

    #[test]
    fn a_user_has_one_request_out_at_a_time() {
        let closed = plan(Arrivals::Closed { population: 2, think: Law::Constant { mean_s: 0.1 } });
        let mut schedule = Schedule::new(&closed);
        let first = schedule.take().unwrap();
        assert!(schedule.take().is_some());
        assert_eq!(schedule.take(), None);
        assert!(!schedule.is_over(0));
        schedule.think(first.user.unwrap(), 250_000_000, 0);
        assert_eq!(schedule.take(), Some(Due { index: 2, at_ns: 350_000_000, user: first.user, lag_ns: 0 }));
        assert!(schedule.is_over(1_000_000_000));
    }
}
