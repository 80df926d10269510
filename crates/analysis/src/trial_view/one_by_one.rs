//! Single requests: the whole trial thinned, and every request around two of them.

use kendall_record::RequestRow;
use kendall_stats::quantile_rank;

use crate::report::trial_view::{Stages, Window, WindowOf};
use crate::thin::evenly;
use crate::trial_view::rows::{Rows, seconds, slowest};

/// The number of requests of the whole trial at even distances, and of the slowest.
const WHOLE: (usize, usize) = (72, 18);
/// The number of requests around one: due before it, and after. What it waited for came before.
const AROUND: (usize, usize) = (16, 7);

pub(super) fn windows(rows: &Rows<'_>) -> Vec<Window> {
    if rows.by_due.is_empty() {
        return Vec::new();
    }
    let slow = slowest(rows, WHOLE.1);
    let mut places: Vec<usize> = evenly(rows.by_due.len(), WHOLE.0).chain(slow.iter().copied()).collect();
    places.sort_unstable();
    places.dedup();
    let mut windows = vec![window(rows, WindowOf::Whole { slowest: slow.len() }, places)];
    if windows[0].requests.len() == rows.by_due.len() {
        return windows;
    }
    let detail = |of, at: usize| {
        let end = (at + 1 + AROUND.1).min(rows.by_due.len());
        window(rows, of, (at.saturating_sub(AROUND.0)..end).collect())
    };
    windows.extend(slowest(rows, 1).first().map(|&at| detail(WindowOf::Slowest, at)));
    windows.extend(median(rows).map(|at| detail(WindowOf::Median, at)));
    windows
}

/// The place of a request of median response time after the warm-up.
fn median(rows: &Rows<'_>) -> Option<usize> {
    let before = rows.by_due.len() - rows.counted().len();
    let mut responses: Vec<(i64, usize)> = rows
        .counted()
        .iter()
        .enumerate()
        .filter_map(|(at, row)| Some((row.response_ns()?, before + at)))
        .collect();
    let last = responses.len().checked_sub(1)?;
    let rank = quantile_rank(responses.len() as u64, 0.5) as usize - 1;
    Some(responses.select_nth_unstable(rank.min(last)).1.1)
}

fn window(rows: &Rows<'_>, of: WindowOf, places: Vec<usize>) -> Window {
    Window { of, requests: places.into_iter().map(|at| stages(rows, rows.by_due[at])).collect() }
}

fn stages(rows: &Rows<'_>, row: &RequestRow) -> Stages {
    Stages {
        index: row.index,
        due_s: seconds(row.scheduled),
        sent_s: row.sent.map(seconds),
        queued_s: row.queued.map(seconds),
        started_s: row.started.map(seconds),
        finished_s: row.finished.map(seconds),
        ended_s: seconds(rows.end_ns(row)),
        outcome: row.outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial_view::rows::tests::{random_rows, rows};

    #[test]
    fn the_slowest_request_is_always_shown_and_details_leave_nothing_out() {
        let all = random_rows(5_000);
        let rows = rows(&all);
        let windows = windows(&rows);
        let slowest = all.iter().max_by_key(|row| row.response_ns()).expect("there are some").index;
        let [whole, around_slowest, around_median] = windows.as_slice() else { panic!("{}", windows.len()) };
        for window in [whole, around_slowest] {
            assert!(window.requests.iter().any(|one| one.index == slowest), "{:?}", window.of);
        }
        assert!(whole.requests.len() <= WHOLE.0 + WHOLE.1);
        assert!(whole.requests.windows(2).all(|pair| pair[0].due_s <= pair[1].due_s));
        for window in [around_slowest, around_median] {
            let numbers: Vec<u64> = window.requests.iter().map(|one| one.index).collect();
            assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
        }
    }

    #[test]
    fn a_short_trial_is_shown_as_it_is() {
        let all = random_rows(60);
        let windows = windows(&rows(&all));
        assert_eq!(windows.iter().map(|window| window.requests.len()).collect::<Vec<_>>(), [60]);
        assert!(super::windows(&rows(&[])).is_empty());
    }
}
