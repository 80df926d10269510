//! The server's own stamps: when it queued, started and finished each request, by the client's port.
//!
//! A server writes them to a file of fixed-size little-endian records after eight bytes that name the format. A reader
//! skips a record that a kill has truncated. [`join`] matches stamps to the client's rows.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::RecordError;
use crate::row::RequestRow;

const MAGIC: &[u8; 8] = b"kstamps2";
const RECORD_BYTES: usize = 2 + 5 * 8;
/// The largest file that is read: a hundred million requests.
const MOST_BYTES: u64 = (MAGIC.len() + 100_000_000 * RECORD_BYTES) as u64;
/// The value of an absent number.
const UNTOLD: i64 = -1;

/// The server's stamps of one request, in nanoseconds of [`crate::clock::now_ns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The client's port.
    pub port: u16,
    /// When the request was read completely and queued.
    pub queued: i64,
    /// The instant at which a worker first started the request.
    pub started: i64,
    /// The instant at which the answer was ready.
    pub finished: i64,
    /// The time that it kept a worker busy: from started to finished, without interruptions, plus passing on its answer.
    /// [`TURNED_AWAY`] for a request that the server rejected because it was full.
    pub service: i64,
    /// The part of the service that all requests have in common, such as the derivation of a key; `None` if the server does
    /// not distinguish it.
    pub fixed: Option<i64>,
}

/// The service of a request that was rejected because the server was full: of its instants only `queued`, its arrival, is
/// defined.
pub const TURNED_AWAY: i64 = -1;

/// Writes stamps to a file.
#[derive(Debug)]
pub struct StampWriter {
    out: BufWriter<File>,
    path: PathBuf,
}

impl StampWriter {
    /// Creates the file.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        let mut out = BufWriter::new(kendall_files::stream(path).map_err(RecordError::write(path))?);
        out.write_all(MAGIC).map_err(RecordError::write(path))?;
        Ok(Self { out, path: path.into() })
    }

    /// Adds one stamp; buffered until [`StampWriter::flush`].
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&mut self, stamp: &Stamp) -> Result<(), RecordError> {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..2].copy_from_slice(&stamp.port.to_le_bytes());
        let fixed = stamp.fixed.unwrap_or(UNTOLD);
        let instants = [stamp.queued, stamp.started, stamp.finished, stamp.service, fixed];
        for (place, instant) in bytes[2..].chunks_exact_mut(8).zip(instants) {
            place.copy_from_slice(&instant.to_le_bytes());
        }
        self.out.write_all(&bytes).map_err(RecordError::write(&self.path))
    }

    /// Passes all stamps to the kernel.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        self.out.flush().map_err(RecordError::write(&self.path))
    }
}

/// Reads a file of stamps, in order of completion.
///
/// # Errors
/// Fails if the file cannot be read or is not a file of stamps.
pub fn read(path: &Path) -> Result<Vec<Stamp>, RecordError> {
    let wrong = |why: String| RecordError::Format { path: path.into(), what: "a file of stamps", why };
    let file = kendall_files::open(path).map_err(RecordError::read(path))?;
    let bytes = file.metadata().map_err(RecordError::read(path))?.len();
    if bytes > MOST_BYTES {
        return Err(wrong(format!("it has {bytes} bytes, and the limit is {MOST_BYTES}")));
    }
    let mut reader = BufReader::new(file.take(MOST_BYTES));
    let mut magic = [0; MAGIC.len()];
    if reader.read_exact(&mut magic).is_err() || magic != *MAGIC {
        return Err(wrong("it does not begin with kstamps2".to_owned()));
    }
    let mut stamps = Vec::with_capacity(bytes as usize / RECORD_BYTES);
    let mut record = [0; RECORD_BYTES];
    loop {
        match reader.read_exact(&mut record) {
            Ok(()) => stamps.push(decode(&record)),
            // A record that a kill has truncated is skipped.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(stamps),
            Err(source) => return Err(RecordError::Read { path: path.into(), source }),
        }
    }
}

fn decode(record: &[u8]) -> Stamp {
    let instant = |i: usize| {
        let at = 2 + 8 * i;
        i64::from_le_bytes(record[at..at + 8].try_into().expect("a record holds five numbers"))
    };
    Stamp {
        port: u16::from_le_bytes([record[0], record[1]]),
        queued: instant(0),
        started: instant(1),
        finished: instant(2),
        service: instant(3),
        fixed: Some(instant(4)).filter(|fixed| *fixed != UNTOLD),
    }
}

/// Assigns to each row the stamps of the same request: those of the same port that were queued while the request was in
/// flight, in the order in which the client sent them, as a session carries several at a time. `start_ns` is the trial's
/// start, to which the rows' instants are relative.
pub fn join(rows: &mut [RequestRow], stamps: &[Stamp], start_ns: i64) {
    // Stamps of another program may be any number.
    let since_start = |at_ns: i64| at_ns.saturating_sub(start_ns);
    let mut by_port: HashMap<u16, Vec<&Stamp>> = HashMap::new();
    for stamp in stamps {
        by_port.entry(stamp.port).or_default().push(stamp);
    }
    for stamps in by_port.values_mut() {
        stamps.sort_by_key(|stamp| stamp.queued);
    }
    let mut in_order: Vec<&mut RequestRow> = rows.iter_mut().filter(|row| row.sent.is_some()).collect();
    in_order.sort_by_key(|row| (row.sent, row.index));
    // The first stamp of each port without a row.
    let mut next_of_port: HashMap<u16, usize> = HashMap::new();
    for row in in_order {
        let (Some(sent), Some(of_port)) = (row.sent, by_port.get(&row.port)) else { continue };
        let next = next_of_port.entry(row.port).or_default();
        *next += of_port[*next..].partition_point(|stamp| since_start(stamp.queued) < sent);
        let Some(stamp) = of_port.get(*next) else { continue };
        if row.completed.is_some_and(|completed| since_start(stamp.queued) > completed) {
            continue;
        }
        *next += 1;
        row.queued = Some(since_start(stamp.queued));
        if stamp.service == TURNED_AWAY {
            continue;
        }
        row.started = Some(since_start(stamp.started));
        row.finished = Some(since_start(stamp.finished));
        row.service = Some(stamp.service);
        row.fixed = stamp.fixed;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::row::Outcome;

    fn stamp(port: u16, queued: i64) -> Stamp {
        Stamp { port, queued, started: queued + 5, finished: queued + 20, service: 15, fixed: None }
    }

    fn row(port: u16, sent: Option<i64>, completed: Option<i64>) -> RequestRow {
        RequestRow { port, sent, completed, outcome: Outcome::Answered, ..RequestRow::due(0, 0) }
    }

    #[test]
    fn stamps_are_read_back_but_for_a_cut_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stamps");
        let mut writer = StampWriter::create(&path).unwrap();
        writer.write(&stamp(5, 1)).unwrap();
        writer.write(&stamp(65535, i64::MAX - 20)).unwrap();
        writer.flush().unwrap();
        assert_eq!(read(&path).unwrap(), [stamp(5, 1), stamp(65535, i64::MAX - 20)]);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(read(&path).unwrap(), [stamp(5, 1)]);
        fs::write(&path, b"something else").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("is not a file of stamps"));
    }

    #[test]
    fn a_device_without_end_and_a_file_beyond_the_bound_are_not_read() {
        let error = read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stamps");
        // A sparse file takes no space on the disk.
        File::create(&path).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("the limit is {MOST_BYTES}")), "{error}");
    }

    #[test]
    fn rows_get_the_stamps_that_lie_within_them() {
        let start = 1_000_000;
        let stamps = [stamp(7, start + 150), stamp(7, start + 50), stamp(8, start + 60)];
        let mut rows = [
            row(7, Some(140), Some(190)),
            row(7, Some(40), Some(90)),
            row(8, Some(55), None),
            row(8, Some(70), Some(80)),
            row(9, Some(0), Some(1000)),
            row(7, None, None),
        ];
        join(&mut rows, &stamps, start);
        let queued: Vec<_> = rows.iter().map(|row| row.queued).collect();
        assert_eq!(queued, [Some(150), Some(50), Some(60), None, None, None]);
        assert_eq!((rows[0].started, rows[0].finished, rows[0].service), (Some(155), Some(170), Some(15)));
        let mut refused = [row(7, Some(140), Some(190))];
        join(&mut refused, &[Stamp { service: TURNED_AWAY, ..stamp(7, start + 150) }], start);
        assert_eq!((refused[0].queued, refused[0].started, refused[0].service), (Some(150), None, None));
    }

    /// A session carries several requests at a time; the server queues each some time after it was sent.
    #[test]
    fn requests_that_are_out_together_on_one_port_get_their_own_stamps() {
        let stamps = [stamp(7, 30), stamp(7, 50), stamp(7, 70)];
        let mut rows =
            [row(7, Some(40), Some(300)), row(7, Some(10), Some(200)), row(7, Some(20), Some(250))];
        join(&mut rows, &stamps, 0);
        let queued: Vec<_> = rows.iter().map(|row| row.queued).collect();
        assert_eq!(queued, [Some(70), Some(30), Some(50)]);
    }
}
