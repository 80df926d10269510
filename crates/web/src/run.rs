//! The row of a run in the list, from its manifest, its experiment file and its live state.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use kendall_archive::Manifest;
use kendall_archive::live::{Head, LIVE, LiveState};
use serde::Serialize;
use toml::{Table, Value};

use crate::id::RunId;

/// A longer experiment file is not read for the list.
const LONGEST_FILE_BYTES: u64 = 1 << 18;
/// The most factors that the list names.
const MOST_SETTINGS: usize = 4;

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "why")]
pub(crate) enum State {
    /// The run is running.
    Running,
    /// Every trial is done.
    Done,
    /// The run was stopped or killed, and can be resumed.
    Interrupted,
    /// The run failed for this reason, and can be resumed.
    Failed(String),
    /// The record of a single load, which has no trials.
    Recorded,
}

impl State {
    /// The run's name, which is also its CSS class.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Interrupted => "interrupted",
            Self::Failed(_) => "failed",
            Self::Recorded => "recorded",
        }
    }

    /// Whether the run can be resumed.
    pub(crate) fn is_resumable(&self) -> bool {
        matches!(self, Self::Interrupted | Self::Failed(_))
    }

    /// The state of a run, from its live state and from whether the manifest contains its end.
    pub(crate) fn of(head: Option<&Head>, ended: bool) -> Self {
        match head {
            Some(head) if head.is_running() => Self::Running,
            Some(Head { state: LiveState::Failed(why), .. }) => Self::Failed(why.clone()),
            Some(Head { state: LiveState::Interrupted, .. }) => Self::Interrupted,
            _ if ended => Self::Done,
            _ => Self::Interrupted,
        }
    }
}

/// A row of the list.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) name: String,
    pub(crate) question: String,
    /// The system, and the factors.
    pub(crate) settings: String,
    pub(crate) started_utc: String,
    pub(crate) state: State,
    pub(crate) trials_done: u64,
    /// The number of planned trials, where that is known.
    pub(crate) trials_planned: Option<u64>,
    /// Whether the run has a report, and therefore a picture.
    pub(crate) has_report: bool,
    /// The searched text, in lower case.
    searched: String,
}

/// The modification times of the files that the list reads: the row of a run that is not running changes only with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changed([Option<SystemTime>; 4]);

impl Changed {
    pub(crate) fn of(folder: &Path) -> Self {
        Self(["manifest.json", LIVE, "trials", "report.html"].map(|name| changed(&folder.join(name))))
    }

    fn has(&self, index: usize) -> bool {
        self.0[index].is_some()
    }
}

/// The modification time of a file or folder, if it exists.
pub(crate) fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

impl Run {
    /// The row of the run in a folder, if its manifest is readable.
    pub(crate) fn read(id: RunId, folder: &Path, files: Changed) -> Option<Self> {
        let manifest = Manifest::read(folder).ok()?;
        let head = files.has(1).then(|| Head::read(folder).ok()).flatten();
        let text = experiment(folder);
        let recorded = text.is_none() && !files.has(2);
        let state =
            if recorded { State::Recorded } else { State::of(head.as_ref(), manifest.ended_utc.is_some()) };
        let trials_done = trials_done(folder);
        let trials_planned = match (&state, &head) {
            (State::Done, _) => Some(trials_done),
            (_, Some(head)) => Some(head.trials_planned.max(trials_done)),
            _ => None,
        };
        let text = text.unwrap_or_default();
        let table: Table = toml::from_str(&text).unwrap_or_default();
        let question = table.get("question").and_then(Value::as_str).unwrap_or_default().to_owned();
        let started_utc = readable(&manifest.started_utc);
        let searched = [&manifest.experiment, &question, &started_utc, &id.to_string(), &text]
            .map(|text| text.to_lowercase());
        Some(Self {
            searched: format!("{} {}", searched.join(" "), state.name()),
            id,
            name: manifest.experiment,
            question,
            settings: settings(&table),
            started_utc,
            state,
            trials_done,
            trials_planned,
            has_report: files.has(3),
        })
    }

    /// Whether the text contains each of these words, which are in lower case.
    pub(crate) fn matches(&self, words: &[&str]) -> bool {
        words.iter().all(|word| self.searched.contains(word))
    }

    /// The number of finished and of planned trials, in words.
    pub(crate) fn trials(&self) -> String {
        match (self.trials_done, self.trials_planned) {
            (_, None | Some(0)) if self.state == State::Recorded => "a single load".to_owned(),
            (1, Some(1)) => "1 trial".to_owned(),
            (done, Some(planned)) if done == planned => format!("{done} trials"),
            (done, Some(planned)) => format!("{done} of {planned} trials"),
            (done, None) => format!("{done} trials done"),
        }
    }
}

/// The experiment file of a run, if it exists and is not too long.
pub(crate) fn experiment(folder: &Path) -> Option<String> {
    let text = kendall_files::read(&folder.join("experiment.toml"), LONGEST_FILE_BYTES).ok()?;
    String::from_utf8(text).ok()
}

/// The number of finished trials: those with an answer. Repeated trials count once.
fn trials_done(folder: &Path) -> u64 {
    let trials = fs::read_dir(folder.join("trials")).into_iter().flatten().flatten();
    let first = trials.filter(|trial| !trial.file_name().to_string_lossy().contains("+again-"));
    first.filter(|trial| trial.path().join("answer.json").is_file()).count() as u64
}

/// The system and the factors, in the order of the file: `reverse · rate: 20%, 40%`.
fn settings(table: &Table) -> String {
    let system = table.get("system").and_then(|system| system.get("name")).and_then(Value::as_str);
    let sections = ["system", "workload", "load", "link"];
    let named = sections.iter().filter_map(|name| table.get(*name)?.as_table()).flatten();
    let varied = named.filter_map(|(name, value)| {
        let levels: Vec<String> = value.as_array()?.iter().map(shown).collect();
        Some(format!("{name}: {}", levels.join(", ")))
    });
    let cases = table.get("case").and_then(Value::as_array).map(|cases| format!("{} cases", cases.len()));
    let all: Vec<String> =
        system.map(str::to_owned).into_iter().chain(cases).chain(varied.take(MOST_SETTINGS)).collect();
    all.join(" · ")
}

/// A level in the form that people write.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(is) => is.to_string(),
        Value::Datetime(at) => at.to_string(),
        Value::Array(_) | Value::Table(_) => "…".to_owned(),
    }
}

/// `2026-11-21T04:10:05Z` as `2026-11-21 04:10:05`.
pub(crate) fn readable(utc: &str) -> String {
    utc.trim_end_matches('Z').replacen('T', " ", 1)
}
