//! What a report repeats of its experiment and its run: notes, published figures, the machine.

use kendall_archive::Manifest;
use kendall_record::RecordError;

use crate::axis::Axis;
use crate::report::published::{Published, PublishedRow};
use crate::unstamped::ServerCalibration;
use kendall_experiment::RunFolder;
use kendall_experiment::{self as experiment, Combination, Level};

/// What the experiment says of itself, and where its service times come from, if not from stamps.
pub(super) fn notes(run: &RunFolder) -> Result<String, RecordError> {
    let mut notes = vec![run.experiment().notes.clone()];
    for combination in run.combinations() {
        let servers = (run.experiment().system.station)(&combination.server).servers;
        let note = ServerCalibration::found(run, combination)?.map(|known| known.note(servers));
        notes.extend(note.filter(|note| !notes.contains(note)));
    }
    notes.retain(|note| !note.is_empty());
    Ok(notes.join("\n\n"))
}

/// The published figures, with levels as the axis writes them.
pub(super) fn published(run: &RunFolder, axis: &Axis) -> Vec<Published> {
    let settings = |levels: &[Level]| with_levels(run, levels).map(|combination| axis.settings(combination));
    let row = |row: &experiment::PublishedRow| {
        Some(PublishedRow { settings: settings(&row.levels)?, value: row.value })
    };
    let baseline = |levels: &[Level]| {
        let named = |(name, _): &(String, String)| levels.iter().any(|level| level.0 == name);
        settings(levels).unwrap_or_default().into_iter().filter(named).collect()
    };
    let table = |table: &experiment::Published| Published {
        source: table.source.clone(),
        measure: table.measure.clone(),
        unit: table.unit.clone(),
        baseline: baseline(&table.baseline),
        rows: table.rows.iter().filter_map(row).collect(),
    };
    run.experiment().published.iter().map(table).collect()
}

/// The first combination with these levels. A level of what does not vary is that of all.
fn with_levels<'l>(run: &'l RunFolder, levels: &[Level]) -> Option<&'l Combination> {
    run.combinations().iter().find(|combination| {
        let varies = |name| combination.levels.iter().any(|(factor, _)| *factor == name);
        levels.iter().all(|level| combination.levels.contains(level) || !varies(level.0))
    })
}

/// The machine and the programs of the run, by name.
pub(super) fn machine(manifest: &Manifest) -> Vec<(String, String)> {
    let Manifest { kendall, build, machine, git_revision, link, .. } = manifest;
    let gib = machine.memory_bytes as f64 / f64::from(1 << 30);
    let mut lines = vec![
        ("processor", format!("{} × {}", machine.cores, machine.cpu)),
        ("memory", format!("{gib:.1} GiB")),
        ("system", format!("{}, kernel {}", machine.os, machine.kernel)),
        ("link", link.clone()),
        ("kendall", build.as_ref().map_or_else(|| kendall.clone(), |build| format!("{kendall} ({build})"))),
        ("seed", manifest.seed.to_string()),
    ];
    lines.extend(git_revision.clone().map(|revision| ("revision", revision)));
    lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
