//! The score of a run: one number for what its requests cost their clients, each weighed by its class.

use kendall_record::{Outcome, RequestRow};
use serde::{Deserialize, Serialize};

use super::Trial;

/// The cost of the requests of one run to their clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Every request that was due after the warm-up, however it ended.
    pub requests: u64,
    /// The share of them with the right answer.
    pub right: f64,
    /// The mean over them of weight × response in whole microseconds, rounded down; the lower the better. A wrong
    /// answer counts like a right one. A request without an answer counts with the time until it was given up.
    pub weighted_response_us: u64,
    /// The number of requests without a complete answer. If any, the true score is higher: they would have waited
    /// longer.
    pub without_answer: u64,
    /// The classes in the order of their numbers, those without requests included.
    pub classes: Vec<ClassScore>,
}

/// The part of one class in a [`Score`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassScore {
    /// The name of the class.
    pub name: String,
    /// The cost of a second of delay, relative to the other classes.
    pub weight: f64,
    /// The number of requests of the class.
    pub requests: u64,
    /// The number of them with the right answer.
    pub right: u64,
    /// The mean response time of the class's requests in seconds, counted as in the score; `None` if there were none.
    pub mean_response_s: Option<f64>,
}

impl Score {
    /// Whether a second of delay costs one class more than another. Without that the score is the mean response.
    pub fn is_weighted(&self) -> bool {
        self.classes.iter().any(|class| class.weight != 1.0)
    }

    /// The score of a run that ended `end_ns` after its start. Rows of class i belong to the i-th of the classes, which
    /// are given by name and weight. `None` if no request was due after the warm-up.
    pub fn new<'a>(
        trial: &Trial<'_>,
        end_ns: i64,
        classes: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Option<Self> {
        let mut tally = Tally::default();
        let due = trial.rows.iter().filter(|row| row.scheduled >= trial.warmup_ns);
        due.for_each(|row| tally.add(row, end_ns));
        tally.score(classes)
    }
}

/// What a score is made of: for each class that came, a few sums.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    classes: Vec<Sums>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    requests: u64,
    right: u64,
    without_answer: u64,
    // Whole microseconds, and so whole sums of them, are exact in an f64 up to 2⁵³.
    total_us: f64,
}

impl Sums {
    fn absorb(&mut self, other: &Self) {
        self.requests += other.requests;
        self.right += other.right;
        self.without_answer += other.without_answer;
        self.total_us += other.total_us;
    }
}

impl Tally {
    /// Classes beyond these are counted as one, so that a damaged row cannot ask for memory without bound.
    const CLASSES_AT_MOST: usize = 10_000;

    /// Counts a request of a run that ended `end_ns` after its start.
    pub(crate) fn add(&mut self, row: &RequestRow, end_ns: i64) {
        let class = (row.class as usize).min(Self::CLASSES_AT_MOST);
        if class >= self.classes.len() {
            self.classes.resize(class + 1, Sums::default());
        }
        self.classes[class].absorb(&Sums {
            requests: 1,
            right: u64::from(row.outcome == Outcome::Answered),
            without_answer: u64::from(row.response_ns().is_none()),
            total_us: whole_us(row, end_ns),
        });
    }

    pub(crate) fn absorb(&mut self, other: &Self) {
        if self.classes.len() < other.classes.len() {
            self.classes.resize(other.classes.len(), Sums::default());
        }
        self.classes.iter_mut().zip(&other.classes).for_each(|(mine, theirs)| mine.absorb(theirs));
    }

    /// The score, of classes that are given by name and weight. `None` without a request.
    pub(crate) fn score<'a>(&self, classes: impl IntoIterator<Item = (&'a str, f64)>) -> Option<Score> {
        let mut all = Sums::default();
        self.classes.iter().for_each(|sums| all.absorb(sums));
        let mut weighted_us = 0.0;
        let mut of_class = |(class, (name, weight)): (usize, (&str, f64))| {
            let Sums { requests, right, total_us, .. } = self.classes.get(class).copied().unwrap_or_default();
            weighted_us += weight * total_us;
            let mean_response_s = (requests > 0).then(|| total_us / requests as f64 / 1e6);
            ClassScore { name: name.into(), weight, requests, right, mean_response_s }
        };
        let classes = classes.into_iter().enumerate().map(&mut of_class).collect();
        (all.requests > 0).then(|| Score {
            requests: all.requests,
            right: all.right as f64 / all.requests as f64,
            weighted_response_us: (weighted_us / all.requests as f64) as u64,
            without_answer: all.without_answer,
            classes,
        })
    }
}

/// Time from the instant a request was due until it ended, if only by being given up at the end of the run.
fn whole_us(row: &RequestRow, end_ns: i64) -> f64 {
    let ended_ns = row.completed.unwrap_or(end_ns);
    ((ended_ns - row.scheduled).max(0) / 1000) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: [(&str, f64); 3] = [("low", 1.0), ("middle", 2.0), ("high", 3.0)];

    fn row(class: u32, scheduled_us: i64, completed_us: Option<i64>, outcome: Outcome) -> RequestRow {
        RequestRow {
            class,
            port: 1, // 999 ns more, which whole microseconds leave out.
            completed: completed_us.map(|us| us * 1000 + 999),
            outcome,
            bytes_out: 49,
            bytes_in: 8,
            ..RequestRow::due(0, scheduled_us * 1000)
        }
    }

    fn score(rows: &[RequestRow], warmup_us: i64) -> Option<Score> {
        Score::new(&Trial { rows, warmup_ns: warmup_us * 1000 }, 100_000_000, CLASSES)
    }

    /// Five latencies that a client of that rule printed, and the result that it printed for them.
    #[test]
    fn it_is_the_sum_of_weight_and_microseconds_over_all_requests_rounded_down() {
        let printed = [(2, 14_146), (0, 24_563), (0, 21_984), (0, 30_035), (0, 35_962)];
        let rows = printed.map(|(class, us)| row(class, 1000, Some(1000 + us), Outcome::Answered));
        let score = score(&rows, 0).unwrap();
        assert_eq!((score.weighted_response_us, score.right, score.without_answer), (30_996, 1.0, 0));
        let counts: Vec<u64> = score.classes.iter().map(|class| class.requests).collect();
        assert_eq!(counts, [4, 0, 1]);
        assert_eq!(score.classes[1].mean_response_s, None);
        assert_eq!(score.classes[2].mean_response_s, Some(0.014_146));
    }

    #[test]
    fn a_wrong_answer_costs_its_time_and_no_answer_the_time_until_it_was_given_up() {
        let rows = [
            row(0, 0, Some(10), Outcome::Wrong),
            row(1, 0, Some(40), Outcome::TimedOut),
            row(0, 99_000, None, Outcome::Unanswered),
        ];
        let score = score(&rows, 0).unwrap();
        // (10 + 2 · 40 + 1000) / 3 = 363.3
        assert_eq!((score.weighted_response_us, score.without_answer), (363, 2));
        assert_eq!((score.right, score.classes[0].right), (0.0, 0));
    }

    #[test]
    fn the_warm_up_has_no_part_in_it() {
        let rows = [row(0, 0, Some(500), Outcome::Answered), row(0, 600, Some(607), Outcome::Answered)];
        assert_eq!(score(&rows, 600).unwrap().weighted_response_us, 7);
        assert_eq!(score(&rows, 601), None);
    }
}
