//! Laws of the coordinator under any reports, in any order: each chunk ends once, and each candidate counts once.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use kendall_cluster::{
    BeatMessage, ChunkOutcome, Coordinator, Effect, JobId, Opening, RangeSet, ReportAnswer, ReportMessage,
    SearchSpec, WorkerId,
};
use kendall_digest::sha256::digest;
use proptest::prelude::*;

const JOB: JobId = JobId::from_bytes([3; 16]);
const END: u64 = 10_000_000;
/// Behind the digest, but beyond the search.
const ANSWER: u64 = END + 5;

#[derive(Clone, Debug)]
enum Step {
    Hand,
    Report { tested: Vec<(u64, u64)>, returned: Vec<(u64, u64)>, found: Option<u64> },
    Beat { worker: u64, speed: u64, is_leaving: bool },
    Pass(u64),
    Audit(usize),
}

fn any_ranges() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0..END + 100_000, 1..2_000_000u64), 0..4)
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Hand),
        4 => (any_ranges(), any_ranges(), prop::option::weighted(0.1, any::<u64>()))
            .prop_map(|(tested, returned, found)| Step::Report { tested, returned, found }),
        2 => (0..3u64, any::<u64>(), prop::bool::weighted(0.2))
            .prop_map(|(worker, speed, is_leaving)| Step::Beat { worker, speed, is_leaving }),
        1 => (0..40u64).prop_map(Step::Pass),
        1 => (0..5usize).prop_map(Step::Audit),
    ]
}

fn ranges(pairs: &[(u64, u64)]) -> Vec<Range<u64>> {
    pairs.iter().map(|&(start, width)| start..start + width).collect()
}

/// What a source and a ledger know.
#[derive(Default)]
struct Books {
    handed: BTreeMap<u64, Range<u64>>,
    ledger: RangeSet,
    rest: RangeSet,
    reported: RangeSet,
}

impl Books {
    fn take(&mut self, effects: Vec<Effect>) {
        let mut published = RangeSet::default();
        for effect in effects {
            match effect {
                Effect::Record { tested, found, .. } => {
                    assert_eq!(found, None, "no candidate is behind the digest");
                    for range in tested {
                        self.ledger.insert(range);
                    }
                }
                Effect::Outcome(_, ChunkOutcome::Absent(range)) => {
                    assert_eq!(self.handed.remove(&range.start), Some(range.clone()), "a chunk ends once");
                    assert!(self.ledger.missing_in(range).is_empty(), "it is in the ledger");
                }
                Effect::Outcome(_, ChunkOutcome::Returned { range, missing }) => {
                    assert_eq!(self.handed.remove(&range.start), Some(range.clone()), "a chunk ends once");
                    assert!(missing.iter().all(|part| part.start >= range.start && part.end <= range.end));
                    assert!(
                        missing.missing_in(range).iter().all(|part| self.ledger.missing_in(part).is_empty())
                    );
                    for part in missing.iter() {
                        self.rest.insert(part);
                    }
                }
                Effect::Outcome(_, ChunkOutcome::Found(value)) => panic!("{value} is not an answer"),
                Effect::Publish { range, .. } => {
                    assert!(
                        self.handed
                            .values()
                            .any(|chunk| chunk.start <= range.start && range.end <= chunk.end)
                    );
                    let width = range.end - range.start;
                    assert_eq!(published.insert(range), width, "a report publishes a chunk once");
                }
                Effect::Purge(_) | Effect::Cancel(..) | Effect::RenewConsumers => {}
            }
        }
    }
}

proptest! {
    #[test]
    fn every_chunk_ends_once_and_only_what_is_tested(steps in prop::collection::vec(any_step(), 1..80)) {
        let mut coordinator = Coordinator::default();
        let mut books = Books { rest: RangeSet::of(0..END), ..Books::default() };
        let mut now = Duration::ZERO;
        let opening = Opening {
            spec: Arc::new(SearchSpec::Integer { digest: digest(ANSWER) }),
            run: 1,
            whole: 0..END,
            urgency: 1.0,
            tested: RangeSet::default(),
        };
        assert!(coordinator.open(JOB, opening.clone()) && !coordinator.open(JOB, opening));
        for step in steps {
            match step {
                Step::Hand => {
                    let Some(most) = coordinator.next_chunk(JOB, books.rest.candidates()) else { continue };
                    let Some(first) = books.rest.iter().next() else { continue };
                    let chunk = first.start..first.end.min(first.start + most);
                    books.rest.remove(&chunk);
                    books.handed.insert(chunk.start, chunk.clone());
                    coordinator.hand(JOB, chunk, now);
                }
                Step::Report { tested, returned, found } => {
                    let tested = ranges(&tested);
                    if found.is_none() {
                        for range in &tested {
                            books.reported.insert(range.clone());
                        }
                    }
                    let report =
                        ReportMessage { worker: WorkerId(1), job: JOB, found, tested, returned: ranges(&returned) };
                    prop_assert_eq!(coordinator.report(&report, now), ReportAnswer::Recorded);
                    let stranger = ReportMessage { job: JobId::from_bytes([4; 16]), ..report };
                    prop_assert_eq!(coordinator.report(&stranger, now), ReportAnswer::Closed);
                }
                Step::Beat { worker, speed, is_leaving } => {
                    let beat = BeatMessage { worker: WorkerId(worker), is_leaving, tested: 0, speeds: [speed; 4] };
                    coordinator.beat(&beat, now);
                }
                Step::Pass(seconds) => {
                    now += Duration::from_secs(seconds);
                    coordinator.tick(now);
                }
                Step::Audit(messages) => coordinator.audit(&HashMap::from([(JOB, messages)]), now),
            }
            books.take(coordinator.take_effects());
        }
        // Exactly what was reported is in the ledger, within the search.
        for part in books.ledger.iter() {
            prop_assert!(part.end <= END && books.reported.missing_in(part).is_empty());
        }
        books.reported.remove(&(END..u64::MAX));
        for part in books.reported.iter() {
            prop_assert!(books.ledger.missing_in(part).is_empty());
        }
        coordinator.close(JOB);
        prop_assert_eq!(coordinator.next_chunk(JOB, 1), None);
    }
}
