//! When the next request is due: by arrivals fixed in advance, by the users of a closed population, or by sessions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::{Skip, StepBy};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use kendall_station::{Arrivals, Attendance, Crowd, Instants, Law};
use kendall_stats::random::{Purpose, Rng, stream};

use crate::plan::Plan;
use crate::share::Share;

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
    /// The request's user, in a closed population and in sessions: its place among the users of the schedule.
    pub(crate) user: Option<usize>,
    /// The lag of the request although a connection was free, in nanoseconds; 0 until it was begun.
    pub(crate) lag_ns: i64,
}

/// The number of requests that users may still make. All threads of a run draw on the same budget, so that the last requests
/// are made by all users, whichever thread is the fastest.
pub(crate) struct Budget(Option<AtomicU64>);

impl Budget {
    /// The budget of a plan. The requests of an open stream are limited by their numbers instead.
    pub(crate) fn of(plan: &Plan) -> Self {
        let most = plan.requests.filter(|_| !plan.is_fixed_in_advance());
        Self(most.map(|all| AtomicU64::new(plan.share.requests(&plan.arrivals, all))))
    }

    fn is_spent(&self) -> bool {
        self.0.as_ref().is_some_and(|left| left.load(Relaxed) == 0)
    }

    /// Takes one request; `false` if another thread took the last.
    fn take(&self) -> bool {
        let take = |left: &AtomicU64| left.try_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        self.0.as_ref().is_none_or(take)
    }
}

/// The source of a thread's requests, in order of their due times.
pub(crate) struct Schedule<'a> {
    source: Source<'a>,
    share: Share,
    budget: &'a Budget,
    /// The number of requests that were taken, and the most.
    taken: u64,
    most: u64,
    last_ns: i64,
}

enum Source<'a> {
    Open { instants: StepBy<Skip<Instants<'a>>>, next_ns: Option<i64> },
    Closed { think: &'a Law, users: Vec<Rng>, due: BinaryHeap<Reverse<(i64, usize)>> },
    Attended { attendance: &'a Attendance, users: Vec<Rng>, due: BinaryHeap<Reverse<(i64, usize)>> },
    Sessions(Crowd<'a>),
}

impl<'a> Schedule<'a> {
    /// The share of a plan that one thread makes.
    pub(crate) fn new(plan: &'a Plan, share: Share, budget: &'a Budget) -> Self {
        let source = match (&plan.arrivals, plan.arrivals.instants(plan.seed)) {
            (_, Some(instants)) => {
                let mut instants = share.stream(instants);
                let next_ns = instants.next().map(nanoseconds);
                Source::Open { instants, next_ns }
            }
            (Arrivals::Closed { population, think }, None) => {
                let mut users = users(share, *population, plan.seed);
                let first = users.iter_mut().map(|rng| nanoseconds(think.sample(rng)));
                let due = first.enumerate().map(|(i, at_ns)| Reverse((at_ns, i))).collect();
                Source::Closed { think, users, due }
            }
            (Arrivals::Attended(attendance), None) => {
                let mut users = users(share, attendance.most(), plan.seed);
                let first = |user: (usize, &mut Rng)| attended(attendance, share, user, 0, 0);
                let due = users.iter_mut().enumerate().filter_map(first).collect();
                Source::Attended { attendance, users, due }
            }
            (Arrivals::Sessions(sessions), None) => {
                Source::Sessions(Crowd::part(sessions, plan.seed, share.at(), share.of()))
            }
            (_, None) => unreachable!("only users and sessions have no instants"),
        };
        let last_ns = plan.duration.map_or(i64::MAX, |time| time.as_nanos().try_into().unwrap_or(i64::MAX));
        let leave_ns = match &plan.arrivals {
            Arrivals::Attended(attendance) => nanoseconds(attendance.ends_s()),
            _ => i64::MAX,
        };
        Self {
            most: match (&source, plan.requests) {
                (Source::Open { .. }, Some(requests)) => share.count(requests),
                (Source::Closed { users, .. } | Source::Attended { users, .. }, _) if users.is_empty() => 0,
                _ => u64::MAX,
            },
            source,
            share,
            budget,
            taken: 0,
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
        at_ns.filter(|&at_ns| self.is_allowed() && at_ns < self.last_ns)
    }

    /// The number of the next request, due or not.
    pub(crate) fn next_index(&self) -> u64 {
        self.share.nth(self.taken)
    }

    fn is_allowed(&self) -> bool {
        self.taken < self.most && !self.budget.is_spent()
    }

    /// Takes the next request; `None` also if another thread took the last one that is allowed.
    pub(crate) fn take(&mut self) -> Option<Due> {
        let at_ns = self.next_ns()?;
        if !self.budget.take() {
            return None;
        }
        let index = self.next_index();
        self.taken += 1;
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
        self.most = self.taken;
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
                due.extend(attended(attendance, self.share, (user, &mut users[user]), now_ns, at_least_ns));
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
                !self.is_allowed() || now_ns >= self.last_ns
            }
        }
    }
}

/// The random numbers of the users of a share.
fn users(share: Share, population: u32, seed: u64) -> Vec<Rng> {
    let all = (0..population).map(|user| stream(seed, Purpose::Think, u64::from(user)));
    share.stream(all).collect()
}

/// The next request of a user who begins to think, if it comes again.
fn attended(
    attendance: &Attendance,
    share: Share,
    (user, rng): (usize, &mut Rng),
    now_ns: i64,
    at_least_ns: i64,
) -> Option<Reverse<(i64, usize)>> {
    let number = u32::try_from(share.nth(user as u64)).expect("user numbers have 32 bits");
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
    use proptest::prelude::*;
    use std::time::Duration;

    fn plan(arrivals: Arrivals) -> Plan {
        Plan::lasting(arrivals, Duration::from_secs(1), 7)
    }

    fn all(plan: &Plan) -> Vec<Due> {
        let budget = Budget::of(plan);
        let mut schedule = Schedule::new(plan, Share::ALL, &budget);
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
        let budget = Budget::of(&poisson);
        let mut schedule = Schedule::new(&poisson, Share::ALL, &budget);
        while schedule.take().is_some() {}
        assert!(schedule.is_over(0));
    }

    #[test]
    fn a_session_asks_again_only_after_its_answer_and_ends() {
        let gap = Law::Constant { mean_s: 0.4 };
        let requests = Batch::Fixed { size: 2 };
        let sessions = Sessions { gap, requests, think: Law::Constant { mean_s: 0.1 } };
        let plan = plan(Arrivals::Sessions(sessions));
        let budget = Budget::of(&plan);
        let mut schedule = Schedule::new(&plan, Share::ALL, &budget);
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
        let budget = Budget::of(&plan);
        let mut schedule = Schedule::new(&plan, Share::ALL, &budget);
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
        let budget = Budget::of(&closed);
        let mut schedule = Schedule::new(&closed, Share::ALL, &budget);
        let first = schedule.take().unwrap();
        assert!(schedule.take().is_some());
        assert_eq!(schedule.take(), None);
        assert!(!schedule.is_over(0));
        schedule.think(first.user.unwrap(), 250_000_000, 0);
        assert_eq!(schedule.take(), Some(Due { index: 2, at_ns: 350_000_000, user: first.user, lag_ns: 0 }));
        assert!(schedule.is_over(1_000_000_000));
    }

    fn open_arrivals() -> impl Strategy<Value = Arrivals> {
        let ties: Vec<f64> = (0..300).map(|i| f64::from(i / 3) * 0.002).collect();
        let points = vec![(0.0, 0.0), (0.5, 1500.0), (1.0, 100.0)];
        let varying = |spacing| Profile { points: points.clone(), spacing, ..Profile::default() };
        prop::sample::select(vec![
            Arrivals::poisson(900.0),
            Arrivals::constant(700.0),
            Arrivals::Open { gap: Law::Erlang { shape: 3, mean_s: 0.001 } },
            Arrivals::Trace { instants_s: ties.into() },
            Arrivals::Varying(varying(Spacing::Poisson)),
            Arrivals::Varying(varying(Spacing::Even)),
        ])
    }

    proptest! {
        /// Whatever the number of senders, request i is due when one sender would have sent it.
        #[test]
        fn the_shares_of_an_open_stream_are_the_stream(
            arrivals in open_arrivals(),
            agents in 1u32..4,
            threads in 1u32..9,
            seed: u64,
            requests in prop::option::of(0u64..1200),
        ) {
            let plan = Plan { seed, requests, ..plan(arrivals) };
            let budget = Budget::of(&plan);
            let part = |share| {
                let mut schedule = Schedule::new(&plan, share, &budget);
                std::iter::from_fn(move || schedule.take()).collect::<Vec<Due>>()
            };
            let mut merged = Vec::new();
            for share in Share::ALL.split(agents).flat_map(|agent| agent.split(threads)) {
                let part = part(share);
                prop_assert!(part.is_sorted_by_key(|due| due.index));
                merged.extend(part);
            }
            merged.sort_by_key(|due| due.index);
            prop_assert_eq!(merged, part(Share::ALL));
        }

        /// The first requests of users depend on no answer: each user has one, when it would have it with one sender.
        #[test]
        fn the_shares_of_a_population_have_its_users(
            population in 1u32..40, agents in 1u32..4, threads in 1u32..9, seed: u64,
        ) {
            let think = Law::Exponential { mean_s: 0.01 };
            let points = vec![(0.0, f64::from(population)), (9.0, f64::from(population))];
            let attendance = Attendance { points, think: think.clone() };
            for arrivals in [Arrivals::Closed { population, think }, Arrivals::Attended(attendance)] {
                let plan = Plan { seed, ..plan(arrivals) };
                let first = |share| {
                    let budget = Budget::of(&plan);
                    let mut schedule = Schedule::new(&plan, share, &budget);
                    let first = std::iter::from_fn(|| schedule.take());
                    first.map(|due| (due.at_ns, share.nth(due.user.unwrap() as u64), due.index)).collect::<Vec<_>>()
                };
                let all = first(Share::ALL);
                let shares = Share::ALL.split(agents).flat_map(|agent| agent.split(threads));
                let mut merged: Vec<_> = shares.flat_map(first).collect();
                merged.sort_unstable();
                let users = |firsts: &[(i64, u64, u64)]| firsts.iter().map(|one| (one.0, one.1)).collect::<Vec<_>>();
                prop_assert_eq!(users(&merged), users(&all));
                let mut numbers: Vec<u64> = merged.iter().map(|one| one.2).collect();
                numbers.sort_unstable();
                numbers.dedup();
                prop_assert_eq!(numbers.len(), population as usize);
            }
        }
    }
}
