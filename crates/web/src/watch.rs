//! Watches runs under way: the live state of a run is read while a browser watches it, and only when the file has changed.
//!
//! All watchers of a run share one reader. Each gets everything known first, and then what is new.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use kendall_archive::Manifest;
use kendall_archive::live::{Head, LIVE, Live};
use serde::Serialize;
use tokio::sync::watch;

use crate::children::Children;
use crate::id::RunId;
use crate::run::{State, changed};

/// How often a running run is read: it writes its state twice a second.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often another run is read, which may be resumed.
const LOOK_AGAIN_EVERY: Duration = Duration::from_secs(1);

/// The status of a run, as its folder shows it.
#[derive(Clone, Debug)]
pub(crate) struct RunStatus {
    pub(crate) state: State,
    /// Whether the run has a report that is newer than its end.
    pub(crate) has_report: bool,
    /// The run's live state, if it ever wrote one.
    pub(crate) live: Option<Arc<Live>>,
    /// The error of a failed attempt to resume it.
    pub(crate) note: Option<String>,
    version: Option<FileVersion>,
}

/// The modification time and inode of the file that the run replaces: two changes may fall on the same instant.
type FileVersion = (SystemTime, u64);

/// The data of an event.
#[derive(Debug, Serialize)]
pub(crate) struct Event<'a> {
    #[serde(flatten)]
    state: &'a State,
    has_report: bool,
    note: Option<&'a str>,
    /// With the new samples.
    live: Option<Live>,
}

impl RunStatus {
    /// Reads the status of a run. Reads the live state only if its file has changed since `before`.
    pub(crate) fn read(folder: &Path, before: Option<&Self>, note: Option<String>) -> Self {
        let version = std::fs::metadata(folder.join(LIVE)).ok();
        let version = version.and_then(|file| Some((file.modified().ok()?, file.ino())));
        let known = before.filter(|before| before.version == version && version.is_some());
        let live = match known {
            Some(known) => known.live.clone(),
            None => Live::read(folder).ok().map(Arc::new),
        };
        let ended = || Manifest::read(folder).is_ok_and(|manifest| manifest.ended_utc.is_some());
        let head = live.as_ref().map(|live| Head {
            process: live.process.clone(),
            state: live.state.clone(),
            trials_planned: live.trials_planned,
            trials_done: live.trials_done,
        });
        let state = match &head {
            None if !folder.join("trials").is_dir() && !folder.join("experiment.toml").is_file() => {
                State::Recorded
            }
            head => State::of(head.as_ref(), ended()),
        };
        let report = changed(&folder.join("report.html"));
        let has_report =
            report.is_some() && (report >= version.map(|(at, _)| at) || state == State::Recorded);
        Self { state, has_report, live, note, version }
    }

    fn is_like(&self, other: &Self) -> bool {
        (&self.state, self.has_report, &self.note, self.version)
            == (&other.state, other.has_report, &other.note, other.version)
    }

    /// The number of the next sample, with the process, so that numbers of another process are not mistaken for it.
    pub(crate) fn mark(&self) -> String {
        self.live
            .as_ref()
            .map_or_else(String::new, |live| format!("{}.{}", lineage(live), live.samples.end()))
    }

    /// For a watcher that has received everything before this mark.
    pub(crate) fn event(&self, mark: &str) -> Event<'_> {
        let live = self.live.as_deref().map(|live| {
            let from = mark.rsplit_once('.').filter(|(of, _)| *of == lineage(live));
            let from = from.and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
            Live {
                samples: live.samples.since(from),
                process: live.process.clone(),
                state: live.state.clone(),
                doing: live.doing.clone(),
                trial: live.trial.clone(),
                trials: live.trials.clone(),
                ..*live
            }
        });
        Event { state: &self.state, has_report: self.has_report, note: self.note.as_deref(), live }
    }
}

/// Identifies the process of a sample.
fn lineage(live: &Live) -> String {
    format!("{}-{}", live.process.pid, live.process.started_ticks)
}

/// The watched runs.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<HashMap<RunId, watch::Sender<Arc<RunStatus>>>>);

impl Watchers {
    /// Watches a run in this folder from now on; `first` is its current status.
    pub(crate) fn watch(
        self: &Arc<Self>,
        id: &RunId,
        folder: PathBuf,
        first: RunStatus,
        children: &Arc<Children>,
    ) -> watch::Receiver<Arc<RunStatus>> {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = watched.get(id) {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(Arc::new(first));
        watched.insert(id.clone(), sender);
        drop(watched);
        tokio::spawn(Arc::clone(self).keep_reading(id.clone(), folder, Arc::clone(children)));
        receiver
    }

    /// Reads a run's status until it has no watcher left.
    async fn keep_reading(self: Arc<Self>, id: RunId, folder: PathBuf, children: Arc<Children>) {
        let mut wait = LOOK_EVERY;
        while let Some(before) = self.wanted(&id) {
            tokio::time::sleep(wait).await;
            let note = children.note(&id);
            let folder = folder.clone();
            let looked = tokio::task::spawn_blocking(move || {
                let seen = RunStatus::read(&folder, Some(&before), note);
                (!seen.is_like(&before)).then_some(seen).ok_or_else(|| before.state.clone())
            });
            let state = match looked.await {
                Ok(Ok(seen)) => {
                    let state = seen.state.clone();
                    let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(sender) = watched.get(&id) {
                        sender.send_replace(Arc::new(seen));
                    }
                    state
                }
                Ok(Err(state)) => state,
                Err(_) => State::Interrupted,
            };
            wait = if state == State::Running { LOOK_EVERY } else { LOOK_AGAIN_EVERY };
        }
    }

    /// The last status of a run, if a browser watches it; otherwise the run is removed from the table.
    fn wanted(&self, id: &RunId) -> Option<Arc<RunStatus>> {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = watched.get(id)?;
        if sender.receiver_count() == 0 {
            watched.remove(id);
            return None;
        }
        let seen = Arc::clone(&sender.borrow());
        Some(seen)
    }
}
