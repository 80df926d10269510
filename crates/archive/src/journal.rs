//! The journal of a running trial: rows of a fixed size, appended, so that all written rows are readable if the process is
//! killed. All numbers are little-endian. The reader skips a row that was cut off.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kendall_files::create;
use kendall_record::RecordError;
use kendall_record::{Outcome, RequestRow};

const MAGIC: &[u8; 8] = b"kjourna2";
const ROW_BYTES: usize = 16 + 11 * 8;
/// A row that arrives this long after the last flush flushes the rows before it, too.
const FLUSH_EVERY: Duration = Duration::from_millis(100);

/// Adds rows to a journal.
#[derive(Debug)]
pub(crate) struct Journal {
    out: BufWriter<File>,
    path: PathBuf,
    flushed: Instant,
}

impl Journal {
    pub(crate) fn create(path: &Path) -> Result<Self, RecordError> {
        let mut out = BufWriter::new(create(path).map_err(RecordError::write(path))?);
        out.write_all(MAGIC).and_then(|()| out.flush()).map_err(RecordError::write(path))?;
        Ok(Self { out, path: path.into(), flushed: Instant::now() })
    }

    pub(crate) fn append(&mut self, row: &RequestRow) -> Result<(), RecordError> {
        self.out.write_all(&encode(row)).map_err(RecordError::write(&self.path))?;
        if self.flushed.elapsed() >= FLUSH_EVERY { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> Result<(), RecordError> {
        self.flushed = Instant::now();
        self.out.flush().map_err(RecordError::write(&self.path))
    }
}

/// Reads the rows of a journal, in the order in which they were added.
pub(crate) fn read(path: &Path) -> Result<Vec<RequestRow>, RecordError> {
    Rows::open(path)?.collect()
}

/// Iterates over the rows of a journal without keeping them.
pub(crate) struct Rows {
    from: BufReader<File>,
    path: PathBuf,
}

impl Rows {
    pub(crate) fn open(path: &Path) -> Result<Self, RecordError> {
        let mut from = BufReader::new(File::open(path).map_err(RecordError::read(path))?);
        let mut magic = [0; MAGIC.len()];
        let read = from.read_exact(&mut magic);
        let rows = Self { from, path: path.into() };
        if read.is_err() || magic != *MAGIC {
            return Err(rows.damaged("it does not begin with kjourna2"));
        }
        Ok(rows)
    }

    fn damaged(&self, why: &str) -> RecordError {
        RecordError::Format { path: self.path.clone(), what: "a journal of requests", why: why.to_owned() }
    }
}

impl Iterator for Rows {
    type Item = Result<RequestRow, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = [0; ROW_BYTES];
        match self.from.read_exact(&mut bytes) {
            Ok(()) => Some(decode(&bytes).ok_or_else(|| self.damaged("a row has no outcome"))),
            // The last row of a killed process may be cut off.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => Some(Err(RecordError::read(&self.path)(error))),
        }
    }
}

fn encode(row: &RequestRow) -> [u8; ROW_BYTES] {
    let instants = [
        row.sent,
        row.first_byte,
        row.completed,
        row.queued,
        row.started,
        row.finished,
        row.service,
        row.fixed,
    ];
    let mut bytes = [0; ROW_BYTES];
    bytes[..8].copy_from_slice(&row.index.to_le_bytes());
    bytes[8..12].copy_from_slice(&row.class.to_le_bytes());
    bytes[12..14].copy_from_slice(&row.port.to_le_bytes());
    bytes[14] = row.outcome as u8;
    for (bit, _) in instants.iter().enumerate().filter(|(_, instant)| instant.is_some()) {
        bytes[15] |= 1 << bit;
    }
    let instants = instants.map(Option::unwrap_or_default).map(i64::to_le_bytes);
    let counts = [row.bytes_out.to_le_bytes(), row.bytes_in.to_le_bytes()];
    let words = std::iter::once(row.scheduled.to_le_bytes()).chain(instants).chain(counts);
    for (place, word) in bytes[16..].chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word);
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<RequestRow> {
    let word = |at: usize| bytes[at..at + 8].try_into().expect("a word has eight bytes");
    let instant = |i: usize| (bytes[15] >> i & 1 == 1).then(|| i64::from_le_bytes(word(24 + 8 * i)));
    Some(RequestRow {
        index: u64::from_le_bytes(word(0)),
        class: u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes")),
        port: u16::from_le_bytes([bytes[12], bytes[13]]),
        scheduled: i64::from_le_bytes(word(16)),
        sent: instant(0),
        first_byte: instant(1),
        completed: instant(2),
        queued: instant(3),
        started: instant(4),
        finished: instant(5),
        service: instant(6),
        fixed: instant(7),
        outcome: *Outcome::ALL.get(usize::from(bytes[14]))?,
        bytes_out: u64::from_le_bytes(word(88)),
        bytes_in: u64::from_le_bytes(word(96)),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use proptest::collection::vec;
    use proptest::option::of;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    /// Any instant that the format can hold.
    pub(crate) fn any_instant() -> impl Strategy<Value = i64> + Clone {
        prop_oneof![Just(i64::MIN), Just(0), Just(i64::MAX), any::<i64>()]
    }

    /// Any row with such instants.
    pub(crate) fn any_row(instant: impl Strategy<Value = i64> + Clone) -> impl Strategy<Value = RequestRow> {
        let instant = || instant.clone();
        let instants = || (of(instant()), of(instant()), of(instant()));
        let names = (any::<u64>(), any::<u32>(), any::<u16>(), instant(), 0..Outcome::ALL.len());
        (names, instants(), instants(), (of(instant()), of(instant())), any::<(u64, u64)>()).prop_map(
            |(names, client, server, worker, bytes)| RequestRow {
                index: names.0,
                class: names.1,
                port: names.2,
                scheduled: names.3,
                sent: client.0,
                first_byte: client.1,
                completed: client.2,
                queued: server.0,
                started: server.1,
                finished: server.2,
                service: worker.0,
                fixed: worker.1,
                outcome: Outcome::ALL[names.4],
                bytes_out: bytes.0,
                bytes_in: bytes.1,
            },
        )
    }

    proptest! {
        #[test]
        fn a_row_is_read_back_as_written(row in any_row(any_instant())) {
            prop_assert_eq!(decode(&encode(&row)), Some(row));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn a_journal_cut_anywhere_has_the_rows_that_are_whole(
            rows in vec(any_row(any_instant()), 1..4),
            cut in any::<Index>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("journal");
            let mut journal = Journal::create(&path).unwrap();
            for row in &rows {
                journal.append(row).unwrap();
            }
            journal.flush().unwrap();
            let bytes = fs::read(&path).unwrap();
            prop_assert_eq!(&read(&path).unwrap(), &rows);
            let length = MAGIC.len() + cut.index(bytes.len() - MAGIC.len());
            fs::write(&path, &bytes[..length]).unwrap();
            let whole = (length - MAGIC.len()) / ROW_BYTES;
            prop_assert_eq!(read(&path).unwrap(), &rows[..whole]);
        }
    }

    #[test]
    fn what_is_no_journal_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let no_outcome = [MAGIC.as_slice(), &[0xff; ROW_BYTES]].concat();
        for bytes in [b"".as_slice(), b"kjourna", b"something else", &no_outcome] {
            fs::write(&path, bytes).unwrap();
            let message = read(&path).unwrap_err().to_string();
            assert!(message.contains("journal is not a journal of requests"), "{message}");
        }
    }
}
