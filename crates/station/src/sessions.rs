//! Sessions, or partly open arrivals: users arrive as an open stream, make some requests each, one at a time and with a
//! think time after each answer, and leave (Schroeder, Wierman and Harchol-Balter, NSDI 2006).
//!
//! With few requests per session such a load behaves like an open one, with many like a closed one. [`Crowd`] follows the
//! users in virtual or real time: the caller passes the time in.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::conditions::Batch;
use crate::instants::Instants;
use crate::law::Law;
use kendall_stats::random::{Purpose, Rng, stream};

/// Users that arrive, make some requests, and leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// The law of the gap between the beginnings of two sessions; Poisson if it is exponential.
    pub gap: Law,
    /// The number of requests of a session.
    pub requests: Batch,
    /// The time between an answer and the next request of the same session.
    pub think: Law,
}

impl Sessions {
    /// Requests per second in the long run: those of a session times the sessions per second.
    pub fn rate_per_s(&self) -> f64 {
        self.requests.mean() / self.gap.mean_s()
    }

    /// Returns the sessions, at a rate that gives this many requests per second.
    #[must_use]
    pub fn at_rate(&self, rate_per_s: f64) -> Self {
        Self { gap: self.gap.with_mean(self.requests.mean() / rate_per_s), ..self.clone() }
    }

    /// The mean number of sessions in their think time at an instant, whatever the response times (Little 1961): a think
    /// time follows all but the last request of each session.
    pub fn thinking(&self) -> f64 {
        (self.requests.mean() - 1.0).max(0.0) * self.think.mean_s() / self.gap.mean_s()
    }
}

/// The users of sessions that have begun, and those still to arrive. Apart from the response times, what the n-th session
/// does is a pure function of (seed, n).
#[derive(Debug)]
pub struct Crowd<'a> {
    think: &'a Law,
    requests: &'a Batch,
    seed: u64,
    starts: Instants<'a>,
    next_start_s: Option<f64>,
    /// The number of the next session, and the step to the one after it.
    next_number: u64,
    step: u32,
    /// The users in their think time, by when they will send.
    thinking: BinaryHeap<Reverse<(Instant, u32)>>,
    users: Vec<User>,
    /// Free slots of users that have left, for new users.
    vacant: Vec<u32>,
}

/// One user, by the requests that are still to come.
#[derive(Debug)]
struct User {
    left: u32,
    rng: Rng,
}

/// A number of seconds, ordered.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Instant(f64);

impl Eq for Instant {}

impl Ord for Instant {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Instant {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> Crowd<'a> {
    /// No user has arrived yet.
    pub fn new(sessions: &'a Sessions, seed: u64) -> Self {
        Self::part(sessions, seed, 0, 1)
    }

    /// Every `step`-th session, from the one with the number `first` on: one of the parts into which several senders split the
    /// sessions. No user has arrived yet.
    pub fn part(sessions: &'a Sessions, seed: u64, first: u32, step: u32) -> Self {
        let mut starts = Instants::of_gaps(&sessions.gap, seed);
        Self {
            think: &sessions.think,
            requests: &sessions.requests,
            seed,
            next_start_s: starts.nth(first as usize),
            starts,
            next_number: u64::from(first),
            step: step.max(1),
            thinking: BinaryHeap::new(),
            users: Vec::new(),
            vacant: Vec::new(),
        }
    }

    /// When the next request is due, in seconds, unless an answer brings an earlier one; `None` if no request is due.
    pub fn next_s(&self) -> Option<f64> {
        let thought_s = self.thinking.peek().map(|Reverse((at, _))| at.0);
        match (self.next_start_s, thought_s) {
            (Some(start_s), Some(thought_s)) => Some(start_s.min(thought_s)),
            (start_s, thought_s) => start_s.or(thought_s),
        }
    }

    /// Takes the next request: its due time and its user.
    pub fn take(&mut self) -> Option<(f64, u32)> {
        let at_s = self.next_s()?;
        let user = if self.next_start_s == Some(at_s) {
            self.next_start_s = self.starts.nth(self.step as usize - 1);
            self.begin()
        } else {
            self.thinking.pop()?.0.1
        };
        self.users[user as usize].left -= 1;
        Some((at_s, user))
    }

    /// Ends a request of a user by an answer or an abandonment: the user thinks, for this long at least, or leaves.
    pub fn answered(&mut self, user: u32, now_s: f64, at_least_s: f64) {
        let one = &mut self.users[user as usize];
        if one.left == 0 {
            self.vacant.push(user);
            return;
        }
        let think_s = self.think.sample(&mut one.rng).max(at_least_s);
        self.thinking.push(Reverse((Instant(now_s + think_s), user)));
    }

    /// The number of sessions under way.
    pub fn present(&self) -> usize {
        self.users.len() - self.vacant.len()
    }

    fn begin(&mut self) -> u32 {
        let mut rng = stream(self.seed, Purpose::Think, self.next_number);
        self.next_number += u64::from(self.step);
        let left = self.requests.sample(&mut rng);
        let user = User { left, rng };
        match self.vacant.pop() {
            Some(place) => {
                self.users[place as usize] = user;
                place
            }
            None => {
                self.users.push(user);
                u32::try_from(self.users.len() - 1).expect("memory holds fewer than 2³² users")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Arrivals;

    fn sessions(requests: Batch) -> Sessions {
        let gap = Law::exponential_rate(100.0);
        Sessions { gap, requests, think: Law::Exponential { mean_s: 0.2 } }
    }

    /// Answers each request after a time, and returns which user asked when.
    fn follow(sessions: &Sessions, requests: usize, answer_s: f64) -> Vec<(f64, u32)> {
        let mut crowd = Crowd::new(sessions, 5);
        let mut out: BinaryHeap<Reverse<(Instant, u32)>> = BinaryHeap::new();
        let mut asked = Vec::new();
        while asked.len() < requests {
            let due_s = crowd.next_s().unwrap();
            match out.peek() {
                Some(&Reverse((Instant(answered_s), user))) if answered_s <= due_s => {
                    out.pop();
                    crowd.answered(user, answered_s, 0.0);
                }
                _ => {
                    let (at_s, user) = crowd.take().unwrap();
                    assert_eq!(at_s, due_s);
                    out.push(Reverse((Instant(at_s + answer_s), user)));
                    asked.push((at_s, user));
                }
            }
        }
        asked
    }

    #[test]
    fn a_session_makes_its_requests_one_at_a_time_and_leaves() {
        let three = sessions(Batch::Fixed { size: 3 });
        let asked = follow(&three, 9_000, 0.05);
        assert!(asked.is_sorted_by_key(|one| one.0));
        let last: std::collections::HashMap<u32, f64> =
            asked.iter().map(|&(at_s, user)| (user, at_s)).collect();
        // A slot is only reused after its user has left.
        assert!(last.len() < 200, "{} slots for some 45 users at a time", last.len());
        let mut before = std::collections::HashMap::new();
        for &(at_s, user) in &asked {
            if let Some(earlier_s) = before.insert(user, at_s) {
                assert!(at_s >= earlier_s + 0.05, "{user} sent a request before its answer");
            }
        }
    }

    /// The number of requests in 90 s is the number of sessions, Poisson of mean 9000, times 5: five standard deviations
    /// of a compound Poisson sum, √(9000·E[k²]), are a false alarm in 1.7 million.
    #[test]
    fn the_rate_is_that_of_sessions_times_requests() {
        for requests in [Batch::Fixed { size: 5 }, Batch::Geometric { mean: 5.0 }] {
            let sessions = sessions(requests.clone());
            assert!((sessions.rate_per_s() - 500.0).abs() < 1e-9);
            let asked = follow(&sessions, 45_000, 0.0);
            let sigma = (9_000.0 * requests.second_moment()).sqrt();
            let expected = asked.last().unwrap().0 * 500.0;
            assert!((45_000.0 - expected).abs() < 5.0 * sigma + 1000.0, "{requests:?}: {expected}");
        }
    }

    #[test]
    fn what_a_session_does_does_not_depend_on_how_long_answers_take() {
        let sessions = sessions(Batch::Geometric { mean: 4.0 });
        let starts = |answer_s: f64| {
            let mut crowd = Crowd::new(&sessions, 9);
            let mut starts = Vec::new();
            while starts.len() < 100 {
                let begun = crowd.next_number;
                let (at_s, user) = crowd.take().unwrap();
                if crowd.next_number > begun {
                    starts.push((at_s, crowd.users[user as usize].left));
                }
                crowd.answered(user, at_s + answer_s, 0.0);
            }
            starts
        };
        assert_eq!(starts(0.001), starts(0.3));
    }

    /// With few requests per session, so that the start of a session can be recognised.
    #[test]
    fn the_parts_of_a_crowd_are_its_sessions() {
        let one = sessions(Batch::Fixed { size: 1 });
        let starts = |first, step, count| {
            let mut crowd = Crowd::part(&one, 9, first, step);
            (0..count).map(|_| crowd.take().unwrap().0).collect::<Vec<f64>>()
        };
        let mut merged = [starts(0, 3, 30), starts(1, 3, 30), starts(2, 3, 30)].concat();
        merged.sort_by(f64::total_cmp);
        assert_eq!(merged, starts(0, 1, 90));
    }

    #[test]
    fn sessions_of_one_request_are_the_open_stream() {
        let one = sessions(Batch::Fixed { size: 1 });
        let asked = follow(&one, 100, 0.05);
        let open: Vec<f64> = Arrivals::poisson(100.0).instants(5).unwrap().take(100).collect();
        assert_eq!(asked.iter().map(|one| one.0).collect::<Vec<_>>(), open);
    }
}
