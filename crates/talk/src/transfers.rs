//! The files of a conversation on this side's disk.

mod download;
mod upload;

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

pub use download::{DownloadError, safe_name};
pub use upload::{Upload, UploadError};

use crate::event::FileId;
use download::Download;
pub(crate) use download::Report;
pub(crate) use upload::Source;

/// How often the progress of a file is reported.
const PROGRESS: Duration = Duration::from_millis(200);

/// What is read and written. It outlives connections, as the conversation does.
pub(crate) struct Transfers {
    pub(crate) uploads: HashMap<u64, Source>,
    downloads: HashMap<u64, Download>,
    reports: (mpsc::UnboundedSender<Report>, mpsc::UnboundedReceiver<Report>),
    said: HashMap<FileId, Instant>,
}

impl Transfers {
    pub(crate) fn new() -> Self {
        // A download has as many reports as parts. These are bounded, and the reports are taken before each further part.
        let reports = mpsc::unbounded_channel();
        Self { uploads: HashMap::new(), downloads: HashMap::new(), reports, said: HashMap::new() }
    }

    /// Begins to write a file of the peer's into a folder.
    pub(crate) fn begin(
        &mut self,
        file: u64,
        folder: &Path,
        name: &str,
        size: u64,
    ) -> Result<(), DownloadError> {
        let download = Download::begin(file, folder, name, size, self.reports.0.clone())?;
        self.downloads.insert(file, download);
        Ok(())
    }

    /// Writes bytes of a file. It waits while the disk is slow.
    pub(crate) async fn write(&mut self, file: u64, bytes: Vec<u8>) {
        if let Some(download) = self.downloads.get_mut(&file) {
            download.write(bytes).await;
        }
    }

    /// Ends a file whose bytes have all come.
    pub(crate) async fn finish(&mut self, file: u64, digest: [u8; 32]) {
        if let Some(download) = self.downloads.get_mut(&file) {
            download.finish(digest).await;
        }
    }

    /// Waits for what the disk reports.
    pub(crate) async fn report(&mut self) -> Report {
        self.reports.1.recv().await.expect("this side has a sender, too")
    }

    /// What the disk has reported.
    pub(crate) fn try_report(&mut self) -> Option<Report> {
        self.reports.1.try_recv().ok()
    }

    /// Forgets a file; what was written of it is removed.
    pub(crate) fn drop_file(&mut self, file: FileId) {
        self.said.remove(&file);
        match file {
            FileId::Own(file) => drop(self.uploads.remove(&file)),
            FileId::Peer(file) => drop(self.downloads.remove(&file)),
        }
    }

    /// Whether it is time to report the progress of a file.
    pub(crate) fn is_due(&mut self, file: FileId) -> bool {
        let now = Instant::now();
        let is_due = self.said.get(&file).is_none_or(|said| now - *said >= PROGRESS);
        if is_due {
            self.said.insert(file, now);
        }
        is_due
    }
}
