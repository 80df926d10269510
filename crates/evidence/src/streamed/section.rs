//! Requests in contiguous sections of equal size, which double when there are too many sections.

use kendall_record::{Outcome, RequestRow};

use super::times::Times;
use crate::measured::{Tally, is_censored};
use crate::seconds::seconds;

/// No more sections than this at once. Two of them become one, so there are at least half as many in a long run; half of
/// those may be a warm-up, which leaves more than enough for batch means.
const MOST: usize = 128;

/// Requests whose numbers follow each other.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// When the first of them was due, in nanoseconds since the start.
    pub(super) first_due_ns: i64,
    pub(super) last_due_ns: i64,
    pub(super) response: Times,
    pub(super) service: Times,
    pub(super) send_lag: Times,
    pub(super) score: Tally,
    ended: [u64; Outcome::ALL.len()],
}

impl Section {
    fn new() -> Self {
        Self {
            first_due_ns: i64::MAX,
            last_due_ns: i64::MIN,
            response: Times::new(),
            service: Times::new(),
            send_lag: Times::new(),
            score: Tally::default(),
            ended: [0; Outcome::ALL.len()],
        }
    }

    /// Counts a request of a run that has lasted until `end_ns`.
    pub(super) fn add(&mut self, row: &RequestRow, end_ns: i64) {
        self.first_due_ns = self.first_due_ns.min(row.scheduled);
        self.last_due_ns = self.last_due_ns.max(row.scheduled);
        self.ended[row.outcome as usize] += 1;
        self.score.add(row, end_ns);
        let ended_ns = row.completed.unwrap_or(end_ns);
        if let Some(response_ns) = row.response_ns() {
            self.response.add(seconds(response_ns));
            self.service.add(seconds(ended_ns - row.sent.unwrap_or(row.scheduled)));
        } else if is_censored(row) {
            self.response.add_bound(seconds(ended_ns - row.scheduled));
            if let Some(sent) = row.sent {
                self.service.add_bound(seconds(ended_ns - sent));
            }
        }
        match row.send_lag_ns() {
            Some(lag_ns) => self.send_lag.add(seconds(lag_ns)),
            None if is_censored(row) => self.send_lag.add_bound(seconds(ended_ns - row.scheduled)),
            None => {}
        }
    }

    fn absorb(&mut self, other: &Self) {
        self.first_due_ns = self.first_due_ns.min(other.first_due_ns);
        self.last_due_ns = self.last_due_ns.max(other.last_due_ns);
        self.response.absorb(&other.response);
        self.service.absorb(&other.service);
        self.send_lag.absorb(&other.send_lag);
        self.score.absorb(&other.score);
        self.ended.iter_mut().zip(other.ended).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// How many requests.
    pub(super) fn rows(&self) -> u64 {
        self.ended.iter().sum()
    }

    pub(super) fn count(&self, outcome: Outcome) -> u64 {
        self.ended[outcome as usize]
    }
}

/// Sections of requests by their numbers, from the first that was counted.
#[derive(Clone, Debug)]
pub(super) struct Sections {
    size: u64,
    first: Option<u64>,
    sections: Vec<Section>,
}

impl Sections {
    pub(super) fn new() -> Self {
        Self { size: 1, first: None, sections: Vec::new() }
    }

    /// The section of the request with this number. Requests end out of order, so any section may be asked for; those few
    /// that have smaller numbers than the first one that ended count to the first section.
    pub(super) fn of(&mut self, index: u64) -> &mut Section {
        let number = index.saturating_sub(*self.first.get_or_insert(index));
        while number / self.size >= MOST as u64 {
            self.double();
        }
        let place = (number / self.size) as usize;
        if place >= self.sections.len() {
            self.sections.resize_with(place + 1, Section::new);
        }
        &mut self.sections[place]
    }

    fn double(&mut self) {
        self.size = self.size.saturating_mul(2);
        let mut pairs = std::mem::take(&mut self.sections).into_iter();
        while let Some(mut one) = pairs.next() {
            pairs.next().iter().for_each(|other| one.absorb(other));
            self.sections.push(one);
        }
    }

    /// The sections that contain no request that was due before an instant.
    pub(super) fn since(&self, from_ns: i64) -> Vec<&Section> {
        self.sections.iter().filter(|section| section.rows() > 0 && section.first_due_ns >= from_ns).collect()
    }
}
