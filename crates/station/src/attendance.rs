//! Users whose number changes over time: they join as it rises and leave as it falls, each after the answer that it waits for.
//!
//! Users are numbered from 0, and user i attends while the target number is i + 1 or more. So the user that joined last leaves
//! first, and the users that attend all the time are always the same ones.

use serde::{Deserialize, Serialize};

use crate::law::{Law, LawError};

/// The target number of users over time, and their think time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attendance {
    /// Instants in seconds since the start, the first of them 0, and the number of users there. The number changes linearly
    /// between two points; two points at the same instant are a step. It is 0 after the last point.
    pub points: Vec<(f64, f64)>,
    /// The time between an answer, or joining, and the next request.
    pub think: Law,
}

/// The reason why an attendance is not valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum AttendanceError {
    #[error("the instants of the numbers of users must begin at 0 and ascend")]
    Order,
    #[error("the number of users is {users}; it must lie between 0 and {MOST_USERS}")]
    Number { users: f64 },
    #[error("the number of users is 0 all the time; let it reach at least 1")]
    Nobody,
    #[error("the think time is not valid: {0}")]
    Think(#[from] LawError),
}

/// The most users.
const MOST_USERS: u32 = 100_000;

impl Attendance {
    /// Checks that the attendance is valid.
    ///
    /// # Errors
    /// Fails on instants that do not ascend, on numbers beyond 100,000, on a number that never reaches 1, and on an invalid
    /// law.
    pub fn validate(&self) -> Result<(), AttendanceError> {
        let ascend = self.points.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        let ends = self.points.last().is_some_and(|last| last.0.is_finite() && last.0 > 0.0);
        if !ascend || !ends || self.points[0].0 != 0.0 {
            return Err(AttendanceError::Order);
        }
        let possible = |users: f64| (0.0..=f64::from(MOST_USERS)).contains(&users);
        if let Some((_, users)) = self.points.iter().find(|point| !possible(point.1)) {
            return Err(AttendanceError::Number { users: *users });
        }
        if self.most() == 0 || self.attends(0, 0.0).is_none() {
            return Err(AttendanceError::Nobody);
        }
        Ok(self.think.validate()?)
    }

    /// The largest number of users at any time.
    pub fn most(&self) -> u32 {
        self.points.iter().map(|point| point.1).fold(0.0, f64::max) as u32
    }

    /// The latest instant at which the last user leaves, in seconds, not counting the answer that it waits for.
    pub fn ends_s(&self) -> f64 {
        self.points.last().map_or(0.0, |last| last.0)
    }

    /// Returns the attendance, ended at this instant if it does not end earlier.
    #[must_use]
    pub fn until(&self, end_s: f64) -> Self {
        let before = self.points.iter().copied().take_while(|point| point.0 < end_s);
        let mut points: Vec<(f64, f64)> = before.collect();
        if let (Some(&(t0, a)), Some(&(t1, b))) = (points.last(), self.points.get(points.len())) {
            points.push((end_s, a + (b - a) * (end_s - t0) / (t1 - t0)));
        }
        Self { points, think: self.think.clone() }
    }

    /// The mean number of users until the end.
    pub fn mean(&self) -> f64 {
        let area = |pair: &[(f64, f64)]| (pair[1].0 - pair[0].0) * f64::midpoint(pair[0].1, pair[1].1);
        self.points.windows(2).map(area).sum::<f64>() / self.ends_s()
    }

    /// When the next request of a user is due that begins to think at an instant, in seconds; `None` if there is no further
    /// request. A user that leaves while it thinks starts a new think time when it joins again.
    pub fn due_s(&self, user: u32, now_s: f64, mut think_s: impl FnMut() -> f64) -> Option<f64> {
        let mut ready_s = now_s;
        loop {
            let (from_s, until_s) = self.attends(user, ready_s)?;
            let due_s = from_s + think_s();
            if due_s < until_s {
                return Some(due_s);
            }
            // Each interval of attendance ends once, so this loop terminates.
            ready_s = until_s;
        }
    }

    /// The first interval, at or after this instant, in which a user attends.
    fn attends(&self, user: u32, now_s: f64) -> Option<(f64, f64)> {
        let mut found: Option<(f64, f64)> = None;
        for pair in self.points.windows(2) {
            let Some((from_s, until_s)) = attends_between(pair[0], pair[1], f64::from(user) + 1.0) else {
                continue;
            };
            if until_s <= now_s {
                continue;
            }
            match &mut found {
                None => found = Some((from_s.max(now_s), until_s)),
                Some(found) if from_s <= found.1 => found.1 = until_s,
                Some(_) => break,
            }
        }
        found
    }
}

/// The part of the time between two points in which the number of users is at least this.
fn attends_between((t0, a): (f64, f64), (t1, b): (f64, f64), users: f64) -> Option<(f64, f64)> {
    let crossing_s = || t0 + (users - a) / (b - a) * (t1 - t0);
    match (a >= users, b >= users) {
        _ if t0 >= t1 => None,
        (true, true) => Some((t0, t1)),
        (false, true) => Some((crossing_s(), t1)),
        (true, false) => Some((t0, crossing_s())),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn attendance(points: &[(f64, f64)]) -> Attendance {
        Attendance { points: points.to_vec(), think: Law::Constant { mean_s: 1.0 } }
    }

    /// Two users for ten seconds, then up to four in ten more, then one for ten.
    fn three_stages() -> Attendance {
        attendance(&[(0.0, 2.0), (10.0, 2.0), (20.0, 4.0), (20.0, 1.0), (30.0, 1.0)])
    }

    #[test]
    fn the_user_that_joined_last_leaves_first() {
        let users = three_stages();
        users.validate().unwrap();
        assert_eq!((users.most(), users.ends_s(), users.mean()), (4, 30.0, (20.0 + 30.0 + 10.0) / 30.0));
        let attends = |user| users.attends(user, 0.0);
        assert_eq!((attends(0), attends(1)), (Some((0.0, 30.0)), Some((0.0, 20.0))));
        assert_eq!((attends(2), users.attends(4, 0.0)), (Some((15.0, 20.0)), None));
        assert_eq!((users.attends(0, 29.0), users.attends(0, 30.0)), (Some((29.0, 30.0)), None));
    }

    #[test]
    fn it_can_be_cut_short() {
        let users = three_stages();
        assert_eq!(users.until(15.0).points, [(0.0, 2.0), (10.0, 2.0), (15.0, 3.0)]);
        assert_eq!(users.until(20.0).points, [(0.0, 2.0), (10.0, 2.0), (20.0, 4.0)]);
        assert_eq!(users.until(99.0), users);
    }

    #[test]
    fn a_user_that_leaves_while_it_thinks_sends_nothing_and_can_rejoin() {
        let users =
            attendance(&[(0.0, 1.0), (10.0, 1.0), (10.0, 0.0), (20.0, 0.0), (20.0, 1.0), (30.0, 1.0)]);
        let due = |now_s| users.due_s(0, now_s, || 3.0);
        assert_eq!((due(0.0), due(6.9), due(7.0), due(12.0)), (Some(3.0), Some(9.9), Some(23.0), Some(23.0)));
        assert_eq!((due(26.0), due(27.5), due(99.0)), (Some(29.0), None, None));
    }

    #[test]
    fn an_invalid_attendance_is_rejected() {
        let why = |points: &[(f64, f64)]| attendance(points).validate().unwrap_err();
        assert_eq!(why(&[]), AttendanceError::Order);
        assert_eq!(why(&[(0.0, 1.0)]), AttendanceError::Order);
        assert_eq!(why(&[(0.0, 1.0), (5.0, 1.0), (4.0, 1.0)]), AttendanceError::Order);
        assert_eq!(why(&[(0.0, 0.5), (5.0, 0.5)]), AttendanceError::Nobody);
        assert_eq!(why(&[(0.0, 1e6), (5.0, 1e6)]), AttendanceError::Number { users: 1e6 });
    }

    proptest! {
        /// At every instant the number of attending users is the target number, rounded down.
        #[test]
        fn as_many_attend_as_there_are_to_be(
            levels in proptest::collection::vec((0.1f64..5.0, 0.0f64..9.0), 2..8), at in 0.01f64..0.99
        ) {
            let mut now_s = 0.0;
            let mut points = Vec::new();
            for (length_s, level) in levels {
                points.push((now_s, level));
                now_s += length_s;
            }
            let users = attendance(&points);
            let at_s = at * users.ends_s();
            let pair = users.points.windows(2).find(|pair| pair[0].0 <= at_s && at_s < pair[1].0).unwrap();
            let share = (at_s - pair[0].0) / (pair[1].0 - pair[0].0);
            let level = pair[0].1 + share * (pair[1].1 - pair[0].1);
            prop_assume!((level - level.round()).abs() > 1e-6);
            let attending = (0..9).filter(|user| users.attends(*user, at_s).is_some_and(|found| found.0 <= at_s)).count();
            prop_assert_eq!(attending, level as usize);
        }
    }
}
