//! The messages between coordinators and workers, and their subjects.
//!
//! Every message is bounded and checked here: what decodes is in range, and a longer message is rejected unread.

use std::fmt;
use std::ops::Range;

use crate::bytes::{Input, put};
use crate::spec::{JobId, SearchKind, SearchSpec};

/// The most bytes of a message: a chunk with a mask of the most positions and all bytes at each.
pub const MOST_BYTES: usize = 20_000;
/// The most ranges of a report, each for what was tested and what was returned.
pub const MOST_RANGES: usize = 512;

/// The stream of chunks.
pub(crate) const STREAM: &str = "KENDALL_SEARCH";
/// The subjects of that stream.
pub(crate) const WORK: &str = "kendall.search.work.>";
/// The subject of beats.
pub(crate) const BEATS: &str = "kendall.search.beat";
/// The subject on which jobs are cancelled.
pub(crate) const CANCELS: &str = "kendall.search.cancel";

/// The queue of a chunk: workers take from the urgent one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// Chunks of jobs that are more urgent than other jobs in the queue.
    Urgent,
    /// All other chunks.
    Usual,
}

impl Queue {
    /// Both queues, in the order in which workers take from them.
    pub const ALL: [Self; 2] = [Self::Urgent, Self::Usual];

    /// The name of the consumer, and the part of the subject.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Urgent => "hi",
            Self::Usual => "lo",
        }
    }

    pub(crate) fn filter(self) -> String {
        format!("kendall.search.work.{}.>", self.name())
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(pub u64);

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:016x}", self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    };
}

name! {
    /// The name of a coordinator, which its ledger keeps.
    CoordinatorId
}
name! {
    /// The name of a worker, drawn when it starts.
    WorkerId
}

impl CoordinatorId {
    pub(crate) fn work(self, queue: Queue, job: JobId) -> String {
        format!("kendall.search.work.{}.{self}.{job}", queue.name())
    }

    /// The subjects of all chunks of this coordinator.
    pub(crate) fn all_work(self) -> String {
        format!("kendall.search.work.*.{self}.*")
    }

    pub(crate) fn work_of(self, job: JobId) -> String {
        format!("kendall.search.work.*.{self}.{job}")
    }

    pub(crate) fn reports(self) -> String {
        format!("kendall.search.report.{self}")
    }
}

/// A range of candidates for one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkMessage {
    /// The coordinator that expects the report.
    pub coordinator: CoordinatorId,
    /// The job.
    pub job: JobId,
    /// The run of the job.
    pub run: u32,
    /// The candidates, of which there is at least one.
    pub range: Range<u64>,
    /// Candidates of a chunk that is not shortened: it determines how many chunks a worker takes at a time.
    pub unit: u64,
    /// The digest, and what candidates are.
    pub spec: SearchSpec,
}

impl ChunkMessage {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = b"kc1".to_vec();
        put(&mut out, self.coordinator.0);
        out.extend(self.job.0);
        put(&mut out, self.run);
        put_range(&mut out, &self.range);
        put(&mut out, self.unit);
        self.spec.encode(&mut out);
        out
    }

    /// Reads a message; `None` if it is not a valid chunk.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = begin(bytes, b"kc1")?;
        let coordinator = CoordinatorId(input.number()?);
        let job = JobId(input.array()?);
        let run = input.number()?;
        let range = range(&mut input)?;
        let unit = input.number()?;
        let spec = SearchSpec::decode(&mut input)?;
        input.end()?;
        (range.end <= spec.end()).then_some(Self { coordinator, job, run, range, unit, spec })
    }
}

/// What a worker did with the chunks of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportMessage {
    /// The worker.
    pub worker: WorkerId,
    /// The job.
    pub job: JobId,
    /// The candidate behind the digest, if the worker found it.
    pub found: Option<u64>,
    /// Candidates that are tested and not behind the digest.
    pub tested: Vec<Range<u64>>,
    /// Candidates that the worker was given and does not test, because it ends.
    pub returned: Vec<Range<u64>>,
}

impl ReportMessage {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = b"kr1".to_vec();
        put(&mut out, self.worker.0);
        out.extend(self.job.0);
        put(&mut out, u8::from(self.found.is_some()));
        put(&mut out, self.found.unwrap_or(0));
        for ranges in [&self.tested, &self.returned] {
            put(&mut out, ranges.len() as u16);
            ranges.iter().for_each(|range| put_range(&mut out, range));
        }
        out
    }

    /// Reads a message; `None` if it is not a valid report.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = begin(bytes, b"kr1")?;
        let worker = WorkerId(input.number()?);
        let job = JobId(input.array()?);
        let has_found = input.number::<u8>()? == 1;
        let value = input.number()?;
        let (tested, returned) = (ranges(&mut input)?, ranges(&mut input)?);
        input.end()?;
        Some(Self { worker, job, found: has_found.then_some(value), tested, returned })
    }
}

/// A worker's sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeatMessage {
    /// The worker.
    pub worker: WorkerId,
    /// Whether this is its last beat.
    pub is_leaving: bool,
    /// Candidates that it has tested since it started.
    pub tested: u64,
    /// Candidates a second, by the index of the kind.
    pub speeds: [u64; SearchKind::ALL.len()],
}

impl BeatMessage {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = b"kb1".to_vec();
        put(&mut out, self.worker.0);
        put(&mut out, u8::from(self.is_leaving));
        put(&mut out, self.tested);
        self.speeds.iter().for_each(|speed| put(&mut out, *speed));
        out
    }

    /// Reads a message; `None` if it is not a valid beat.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = begin(bytes, b"kb1")?;
        let worker = WorkerId(input.number()?);
        let is_leaving = input.number::<u8>()? == 1;
        let tested = input.number()?;
        let mut speeds = [0; SearchKind::ALL.len()];
        for speed in &mut speeds {
            *speed = input.number()?;
        }
        input.end()?;
        Some(Self { worker, is_leaving, tested, speeds })
    }
}

/// The coordinator's answer to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportAnswer {
    /// The report is in the ledger: the chunks can be acknowledged.
    Recorded,
    /// The job has ended: its chunks can be dropped.
    Closed,
}

impl ReportAnswer {
    /// The message.
    pub fn encode(self) -> Vec<u8> {
        vec![match self {
            Self::Recorded => b'r',
            Self::Closed => b'c',
        }]
    }

    /// Reads a message; `None` if it is not a valid answer.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes {
            b"r" => Some(Self::Recorded),
            b"c" => Some(Self::Closed),
            _ => None,
        }
    }
}

/// The message that cancels a run of a job.
pub(crate) fn encode_cancel(job: JobId, run: u32) -> Vec<u8> {
    let mut out = job.0.to_vec();
    put(&mut out, run);
    out
}

/// The run of a job that a message cancels.
pub(crate) fn decode_cancel(bytes: &[u8]) -> Option<(JobId, u32)> {
    let mut input = Input(bytes);
    let cancelled = (JobId(input.array()?), input.number()?);
    input.end().map(|()| cancelled)
}

fn begin<'a>(bytes: &'a [u8], mark: &[u8; 3]) -> Option<Input<'a>> {
    if bytes.len() > MOST_BYTES {
        return None;
    }
    bytes.strip_prefix(mark).map(Input)
}

fn put_range(out: &mut Vec<u8>, range: &Range<u64>) {
    put(out, range.start);
    put(out, range.end);
}

fn range(input: &mut Input<'_>) -> Option<Range<u64>> {
    let range = input.number()?..input.number()?;
    (!range.is_empty()).then_some(range)
}

fn ranges(input: &mut Input<'_>) -> Option<Vec<Range<u64>>> {
    let count = usize::from(input.number::<u16>()?);
    if count > MOST_RANGES {
        return None;
    }
    (0..count).map(|_| range(input)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_digest::password::Mask;
    use proptest::prelude::*;

    fn any_range() -> impl Strategy<Value = Range<u64>> {
        (0..u64::MAX, 1..u64::MAX).prop_map(|(start, width)| start..start.saturating_add(width))
    }

    fn any_spec() -> impl Strategy<Value = SearchSpec> {
        let mask = || {
            prop::collection::vec(prop::collection::btree_set(any::<u8>(), 1..5), 1..12)
                .prop_map(|sets| Mask::new(sets.into_iter().map(Vec::from_iter)).unwrap())
        };
        prop_oneof![
            any::<[u8; 32]>().prop_map(|digest| SearchSpec::Integer { digest }),
            (any::<[u8; 20]>(), mask()).prop_map(|(digest, mask)| SearchSpec::Sha1 { digest, mask }),
            (any::<[u8; 32]>(), mask()).prop_map(|(digest, mask)| SearchSpec::Sha256 { digest, mask }),
            (any::<[u8; 16]>(), mask()).prop_map(|(digest, mask)| SearchSpec::Md5 { digest, mask }),
        ]
    }

    fn any_chunk() -> impl Strategy<Value = ChunkMessage> {
        (any::<u64>(), any::<[u8; 16]>(), any_spec(), any::<(u64, u64)>()).prop_map(
            |(name, job, spec, (a, b))| {
                let start = a % spec.end();
                let range = start..start + 1 + b % (spec.end() - start);
                ChunkMessage {
                    coordinator: CoordinatorId(name),
                    job: JobId(job),
                    run: name as u32,
                    range,
                    unit: name / 3,
                    spec,
                }
            },
        )
    }

    fn any_report() -> impl Strategy<Value = ReportMessage> {
        let ranges = || prop::collection::vec(any_range(), 0..5);
        (any::<u64>(), any::<[u8; 16]>(), any::<Option<u64>>(), ranges(), ranges()).prop_map(
            |(worker, job, found, tested, returned)| ReportMessage {
                worker: WorkerId(worker),
                job: JobId(job),
                found,
                tested,
                returned,
            },
        )
    }

    /// No bytes make a reader panic.
    fn read_all(bytes: &[u8]) {
        let _ = ChunkMessage::decode(bytes).map(|chunk| chunk.spec.is_answer(chunk.range.start));
        let _ = ReportMessage::decode(bytes);
        let _ = BeatMessage::decode(bytes);
        let _ = ReportAnswer::decode(bytes);
        let _ = decode_cancel(bytes);
    }

    proptest! {
        #[test]
        fn messages_are_read_as_they_were_written(
            chunk in any_chunk(),
            report in any_report(),
            (worker, is_leaving, tested) in any::<(u64, bool, u64)>(),
            speeds in any::<[u64; 4]>(),
        ) {
            prop_assert_eq!(ChunkMessage::decode(&chunk.encode()), Some(chunk));
            prop_assert_eq!(ReportMessage::decode(&report.encode()), Some(report));
            let beat = BeatMessage { worker: WorkerId(worker), is_leaving, tested, speeds };
            prop_assert_eq!(BeatMessage::decode(&beat.encode()), Some(beat));
            let job = JobId([tested as u8; 16]);
            prop_assert_eq!(decode_cancel(&encode_cancel(job, worker as u32)), Some((job, worker as u32)));
        }

        #[test]
        fn no_bytes_are_harmful(bytes in prop::collection::vec(any::<u8>(), 0..200), mark in 0usize..4) {
            let marked = [[&b"kc1"[..], b"kr1", b"kb1", b""][mark], &bytes].concat();
            read_all(&marked);
        }

        #[test]
        fn damaged_messages_are_harmless(
            chunk in any_chunk(),
            report in any_report(),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cut in any::<prop::sample::Index>(),
        ) {
            for mut bytes in [chunk.encode(), report.encode()] {
                for (at, byte) in &damage {
                    let at = at.index(bytes.len());
                    bytes[at] = *byte;
                }
                read_all(&bytes);
                read_all(&bytes[..cut.index(bytes.len())]);
            }
        }
    }

    #[test]
    fn empty_ranges_and_candidates_beyond_the_mask_are_rejected() {
        let mask = Mask::uniform(b"abc", 2).unwrap();
        let spec = SearchSpec::Md5 { digest: [1; 16], mask };
        let chunk = |range| ChunkMessage {
            coordinator: CoordinatorId(1),
            job: JobId([2; 16]),
            run: 3,
            range,
            unit: 9,
            spec: spec.clone(),
        };
        assert!(ChunkMessage::decode(&chunk(0..9).encode()).is_some());
        assert_eq!(ChunkMessage::decode(&chunk(0..10).encode()), None);
        assert_eq!(ChunkMessage::decode(&chunk(3..3).encode()), None);
        let long = [chunk(0..9).encode(), vec![0; MOST_BYTES]].concat();
        assert_eq!(ChunkMessage::decode(&long), None);
    }

    #[test]
    fn the_largest_chunk_fits_a_message() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        // 256⁷ passwords, and positions with one byte only up to the longest.
        let charsets = (0..Mask::LONGEST).map(|at| if at < 7 { all.clone() } else { vec![b'x'] });
        let spec = SearchSpec::Sha256 { digest: [0; 32], mask: Mask::new(charsets).unwrap() };
        let chunk = ChunkMessage {
            coordinator: CoordinatorId(1),
            job: JobId([2; 16]),
            run: 3,
            range: 0..9,
            unit: 9,
            spec,
        };
        assert!(chunk.encode().len() < MOST_BYTES);
        let ranges = vec![0..1; MOST_RANGES];
        let report = ReportMessage {
            worker: WorkerId(1),
            job: JobId([0; 16]),
            found: None,
            tested: ranges.clone(),
            returned: ranges,
        };
        assert!(report.encode().len() < MOST_BYTES);
        assert_eq!(ReportMessage::decode(&report.encode()), Some(report));
    }
}
