//! What the words and tables of a load say of runs that are not as most are.

use kendall_analysis::TrialResult;
use kendall_evidence::streamed::{Stream, Streamed, Warmup};
use kendall_record::{Outcome, RequestRow};

use super::words::{checks, held_back, times};
use super::{load_page, load_text};

/// A run of requests 10 ms apart on four connections, each with its outcome and the ms at which its answer began and ended.
fn seen(requests: u64, answer: impl Fn(u64) -> (Outcome, i64, i64)) -> Streamed {
    let mut seen = Stream::new(Warmup::Until(0));
    for index in 0..requests {
        let (due, (outcome, first_ms, last_ms)) = (index as i64 * 10_000_000, answer(index));
        let row = RequestRow::due(index, due).sent_at(due, 4000 + (index % 4) as u16);
        let first_byte = Some(due + first_ms * 1_000_000);
        seen.add(&RequestRow { first_byte, ..row.ended(outcome, due + last_ms * 1_000_000) });
    }
    seen.end(requests as i64 * 10_000_000);
    seen.seen().unwrap()
}

/// A recorded load, with this in place of what its clients saw.
fn load(seen: Streamed) -> TrialResult {
    let recorded: TrialResult =
        serde_json::from_str(include_str!("../../../analysis/testdata/answer-of-load.json")).unwrap();
    TrialResult { seen: Some(seen), ..recorded }
}

#[test]
fn pauses_of_nagles_algorithm_are_named_with_the_remedy_and_others_are_not() {
    // All but the first answers of the four connections pause for 41 ms.
    let paused = load(seen(200, |at| (Outcome::Answered, 1, if at < 4 { 1 } else { 42 })));
    let said = held_back(&paused, paused.seen.as_ref().unwrap()).unwrap();
    assert!(said.contains("Nagle") && said.contains("TCP_NODELAY"), "{said}");
    for shown in [load_text(&paused), load_page(&paused).replace('\u{a0}', " ")] {
        assert!(shown.contains("100 % of the answers paused for 41.0 ms"), "{shown}");
    }
    // A server that works for 41 ms before its answer, or within each one, has no such pause.
    for work in [|_: u64| (Outcome::Answered, 41, 42), |_: u64| (Outcome::Answered, 1, 42)] {
        let slow = load(seen(200, work));
        assert_eq!(held_back(&slow, slow.seen.as_ref().unwrap()), None);
    }
}

/// Whatever a run was like, no cell of its tables is empty, but for the corner.
#[test]
fn no_cell_of_the_tables_of_a_load_is_empty() {
    let runs = [
        seen(20, |_| (Outcome::Answered, 1, 1)),
        seen(400, |at| {
            (if at.is_multiple_of(3) { Outcome::TimedOut } else { Outcome::Answered }, 1, 2 + (at % 7) as i64)
        }),
        seen(400, |at| (Outcome::Answered, 1, 1 + 3 * at as i64)),
        seen(3000, |at| (Outcome::Answered, 1, if (1000..1100).contains(&at) { 900 } else { 2 })),
    ];
    for run in runs {
        let run = load(run);
        for table in [times(run.seen.as_ref().unwrap()), checks(&run)] {
            for row in &table.rows {
                assert!(row.iter().all(|cell| !cell.trim().is_empty()), "{row:?}");
                assert_eq!(row.len(), table.head.len());
            }
        }
    }
}

#[test]
fn a_quantile_that_ends_among_requests_that_were_given_up_says_so() {
    // Three in ten were given up after the slowest answer: p50 is known, and the upper end of p75 is not.
    let run = seen(2000, |at| {
        if at * 7 % 20 < 5 { (Outcome::TimedOut, 1, 90) } else { (Outcome::Answered, 1, 2 + (at % 9) as i64) }
    });
    let table = times(&run);
    assert!(
        table.rows.iter().any(|row| row[1].contains("≥") || row[1].contains("[?, given up]")),
        "{table:?}"
    );
    let p50 = table.rows.iter().find(|row| row[0] == "p50").unwrap();
    assert!(p50[1].contains('[') && !p50[1].contains('?'), "{p50:?}");
}
