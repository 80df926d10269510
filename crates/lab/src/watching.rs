//! Watches the server and the generator during a trial, as `[probe]` configures it.

use std::path::Path;

use kendall_analysis::{ResourceRecord, STACKS};
use kendall_archive::series::Series;
use kendall_experiment::Probing;
use kendall_probe::{Children, Config, ProbeError, Role, Target, Watch};
use kendall_record::RecordError;

/// The readings of a trial, in its folder.
const TABLE: &str = "resources.parquet";

/// Starts to watch a server, if one is known, and this process, which sends. Keeps every reading in a folder, if one is given.
///
/// # Errors
/// Fails where there is no such server process, or where the readings cannot be written.
pub(crate) fn watch(
    probing: Probing,
    server: Option<u32>,
    folder: Option<&Path>,
) -> Result<Watching, ProbeError> {
    let Some(every) = probing.every else { return Ok(Watching(None)) };
    let process = server;
    let record = folder.map(|folder| folder.join(TABLE));
    let config = Config { every, record: record.as_deref(), profile_hz: probing.profile_hz };
    let server = server.map(|pid| Target { role: Role::Server, pid, children: Children::Watched });
    let own = Target { role: Role::Generator, pid: std::process::id(), children: Children::Left };
    let targets: Vec<Target> = server.into_iter().chain([own]).collect();
    Watch::start(&config, &targets).map(|watch| Watching(Some((watch, process))))
}

/// The readings of a trial, from its folder.
pub(crate) fn readings(folder: &Path) -> Result<Series, RecordError> {
    Series::read(&folder.join(TABLE))
}

/// A watch during a load, if there is one.
#[derive(Debug)]
pub(crate) struct Watching(Option<(Watch, Option<u32>)>);

impl Watching {
    /// Ends the watch. `origin_ns` is the start of the run, from which the times of its readings count.
    ///
    /// # Errors
    /// Fails where the readings cannot be written.
    pub(crate) fn end(self, origin_ns: i64) -> Result<Option<ResourceRecord>, ProbeError> {
        let Some((watch, process)) = self.0 else { return Ok(None) };
        let watched = watch.end(origin_ns)?;
        Ok(Some(ResourceRecord {
            process,
            summary: watched.summary,
            limit: None,
            split: None,
            profile: watched.profile,
        }))
    }
}

/// Keeps the record, with the stacks in a file of its folder.
///
/// # Errors
/// Fails where that file cannot be written.
pub(crate) fn keep(mut seen: ResourceRecord, folder: &Path) -> Result<ResourceRecord, RecordError> {
    if let Some(profile) = &mut seen.profile {
        let path = folder.join(STACKS);
        kendall_files::replace(&path, profile.to_text())
            .map_err(|source| RecordError::Write { path, source })?;
        *profile = profile.without_stacks();
    }
    Ok(seen)
}
