//! The cost of each single request: a table of comma-separated values, with the times of the search and of the key in
//! separate columns.
//!
//! A separate thread writes it, so that no worker waits for a disk. Rows that it cannot write in time are dropped and
//! counted.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};

use kendall_service::Counter;

use crate::search::PasswordSource;

/// The first line of the table.
pub const COLUMNS: &str = "finished_ns,id,way,search_ns,key_ns,file_bytes";
/// Rows on their way to the disk.
const CAPACITY: usize = 16_384;

/// The cost of a request whose password was found and whose file has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// The instant at which its answer was ready, in ns of the clock of stamps.
    pub(crate) finished_ns: i64,
    /// The request's number; 0 where the dialect has none.
    pub(crate) id: i32,
    /// The source of the password.
    pub(crate) way: PasswordSource,
    /// The time of the search, in ns; 0 if there was none.
    pub(crate) search_ns: u64,
    /// The time for the key, in ns; 0 if it was known.
    pub(crate) key_ns: u64,
    /// The bytes of the encrypted file.
    pub(crate) file_bytes: u64,
}

/// A trace that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the trace {path}: {error}; name another file with --trace, or none")]
pub struct TraceError {
    /// The trace's path.
    pub path: PathBuf,
    /// The operating system's message.
    pub error: io::Error,
}

/// The writing end of a trace. Dropping it waits until all is on the disk.
#[derive(Debug)]
pub(crate) struct Trace {
    sender: Option<SyncSender<Cost>>,
    thread: Option<JoinHandle<()>>,
    pub(crate) dropped: Counter,
}

impl Trace {
    /// Creates the file, if a path is given; without one, costs are discarded.
    pub(crate) fn create(path: Option<&Path>) -> Result<Self, TraceError> {
        let dropped = Counter::default();
        let Some(path) = path else { return Ok(Self { sender: None, thread: None, dropped }) };
        let cannot = |error| TraceError { path: path.into(), error };
        let mut file = BufWriter::new(kendall_files::stream(path).map_err(cannot)?);
        writeln!(file, "{COLUMNS}").and_then(|()| file.flush()).map_err(cannot)?;
        let (sender, costs) = sync_channel(CAPACITY);
        let named = path.to_owned();
        let write = move || {
            if let Err(error) = write_all(file, &costs) {
                tracing::error!(path = %named.display(), %error, "writing the trace fails; it ends here");
            }
        };
        let thread = thread::Builder::new().name("recover-trace".into()).spawn(write).map_err(cannot)?;
        Ok(Self { sender: Some(sender), thread: Some(thread), dropped })
    }

    /// Hands a row over, or drops and counts it.
    pub(crate) fn write(&self, cost: Cost) {
        if self.sender.as_ref().is_some_and(|sender| sender.try_send(cost).is_err()) {
            self.dropped.inc();
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Writes rows until all senders are gone, and flushes whenever no row waits.
fn write_all(mut file: BufWriter<File>, costs: &Receiver<Cost>) -> io::Result<()> {
    loop {
        let cost = match costs.try_recv() {
            Ok(cost) => cost,
            Err(TryRecvError::Disconnected) => return file.flush(),
            Err(TryRecvError::Empty) => {
                file.flush()?;
                let Ok(cost) = costs.recv() else { return Ok(()) };
                cost
            }
        };
        let Cost { finished_ns, id, way, search_ns, key_ns, file_bytes } = cost;
        writeln!(file, "{finished_ns},{id},{},{search_ns},{key_ns},{file_bytes}", way.name())?;
    }
}
