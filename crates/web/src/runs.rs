//! The list of runs, the newest first. It reads three small files of each run, and only when they have changed.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kendall_files::Folder;

use crate::id::{HERE, RunId};
use crate::run::{Changed, Run, State};

/// The least time between two scans of the results, however many browsers show the list.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The most runs in the list: the newest by the names of their folders.
const MOST_RUNS: usize = 20_000;
/// The number of runs on a page of the list.
pub(crate) const ON_A_PAGE: usize = 40;

/// The list of runs.
#[derive(Debug)]
pub(crate) struct Runs {
    /// The folder of results, as a canonical path.
    results: PathBuf,
    seen: Mutex<RunCache>,
}

/// The runs of the last scan of the results folder.
#[derive(Debug, Default)]
struct RunCache {
    at: Option<Instant>,
    /// The newest first.
    runs: Arc<[Arc<Run>]>,
    known: HashMap<RunId, (Changed, Arc<Run>)>,
}

/// A page of the list.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) runs: Vec<Arc<Run>>,
    /// The number of the page, from 1.
    pub(crate) number: usize,
    pub(crate) pages: usize,
    /// The number of runs that match the search.
    pub(crate) found: usize,
    /// The number of all runs.
    pub(crate) all: usize,
}

impl Runs {
    pub(crate) fn new(results: PathBuf) -> Self {
        Self { results, seen: Mutex::default() }
    }

    /// The folder of the results.
    pub(crate) fn results(&self) -> &Path {
        &self.results
    }

    /// All runs, the newest first, at most a second old. Reads files.
    pub(crate) fn all(&self) -> Arc<[Arc<Run>]> {
        // Locked while files are read, so that of many concurrent requests one scans and the others use its result.
        let mut seen = self.seen();
        if seen.at.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            seen.refresh(&self.results);
        }
        Arc::clone(&seen.runs)
    }

    /// A page of the runs that match every word of a search. Reads files.
    pub(crate) fn page(&self, search: &str, number: usize) -> Page {
        let search = search.to_lowercase();
        let words: Vec<&str> = search.split_whitespace().collect();
        let all = self.all();
        let found: Vec<&Arc<Run>> = all.iter().filter(|run| run.matches(&words)).collect();
        let pages = found.len().div_ceil(ON_A_PAGE).max(1);
        let number = number.clamp(1, pages);
        let runs = found.iter().skip((number - 1) * ON_A_PAGE).take(ON_A_PAGE);
        Page {
            runs: runs.map(|run| Arc::clone(run)).collect(),
            number,
            pages,
            found: found.len(),
            all: all.len(),
        }
    }

    /// Opens the folder of a run, which is a canonical path in the results: another user may replace it with a link.
    ///
    /// # Errors
    /// Fails where the folder no longer exists, or is another one by now.
    pub(crate) fn hold(&self, folder: &Path) -> io::Result<Folder> {
        let within = folder.strip_prefix(&self.results).map_err(io::Error::other)?;
        Folder::open(&self.results)?.folder(within)
    }

    fn seen(&self) -> MutexGuard<'_, RunCache> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunCache {
    fn refresh(&mut self, results: &Path) {
        let mut before = std::mem::take(&mut self.known);
        for id in ids(results) {
            let Some(folder) = id.folder(results) else { continue };
            let files = Changed::of(&folder);
            let known =
                before.remove(&id).filter(|(known, run)| *known == files && run.state != State::Running);
            let run =
                known.map(|(_, run)| run).or_else(|| Some(Arc::new(Run::read(id.clone(), &folder, files)?)));
            if let Some(run) = run {
                self.known.insert(id, (files, run));
            }
        }
        let mut runs: Vec<Arc<Run>> = self.known.values().map(|(_, run)| Arc::clone(run)).collect();
        runs.sort_by(|a, b| (&b.started_utc, &b.id).cmp(&(&a.started_utc, &a.id)));
        self.runs = runs.into();
        self.at = Some(Instant::now());
    }
}

/// The folders one and two levels below the results, which may be runs: the newest by name, up to the limit.
fn ids(results: &Path) -> Vec<RunId> {
    let mut ids = Vec::new();
    for above in names(results) {
        if results.join(&above).join("manifest.json").is_file() {
            ids.extend(RunId::new(HERE, &above));
        } else if above != HERE {
            ids.extend(names(&results.join(&above)).iter().filter_map(|stamp| RunId::new(&above, stamp)));
        }
    }
    if ids.len() > MOST_RUNS {
        ids.sort_by_key(|id| Reverse(id.stamp().to_owned()));
        ids.truncate(MOST_RUNS);
    }
    ids
}

/// The names in a folder that are valid in a URL.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders =
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink()));
    folders.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
