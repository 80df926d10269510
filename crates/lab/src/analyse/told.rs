//! What a report repeats of its experiment and its run: notes, published figures, the machine.

use kendall_analysis::{Published, PublishedRow};
use kendall_archive::Manifest;
use kendall_record::RecordError;

use crate::axis::Axis;
use crate::experiment::{self, Combination, Level};
use crate::lab::Lab;

/// What the experiment says of itself, and where its service times come from, if not from stamps.
pub(super) fn notes(lab: &Lab) -> Result<String, RecordError> {
    let mut notes = vec![lab.experiment().notes.clone()];
    for combination in lab.combinations() {
        let (servers, _) = (lab.experiment().system.station)(&combination.server);
        let note = lab.unstamped(combination)?.map(|known| known.note(servers));
        notes.extend(note.filter(|note| !notes.contains(note)));
    }
    notes.retain(|note| !note.is_empty());
    Ok(notes.join("\n\n"))
}

/// The published figures, with levels as the axis writes them.
pub(super) fn published(lab: &Lab, axis: &Axis) -> Vec<Published> {
    let settings = |levels: &[Level]| with_levels(lab, levels).map(|combination| axis.settings(combination));
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
    lab.experiment().published.iter().map(table).collect()
}

/// The first combination with these levels. A level of what does not vary is that of all.
fn with_levels<'l>(lab: &'l Lab, levels: &[Level]) -> Option<&'l Combination> {
    lab.combinations().iter().find(|combination| {
        let varies = |name| combination.levels.iter().any(|(factor, _)| *factor == name);
        levels.iter().all(|level| combination.levels.contains(level) || !varies(level.0))
    })
}

/// Where and with what it ran, by name.
pub(super) fn machine(manifest: &Manifest) -> Vec<(String, String)> {
    let Manifest { kendall, machine, git_revision, link, .. } = manifest;
    let gib = machine.memory_bytes as f64 / f64::from(1 << 30);
    let mut lines = vec![
        ("processor", format!("{} × {}", machine.cores, machine.cpu)),
        ("memory", format!("{gib:.1} GiB")),
        ("system", format!("{}, kernel {}", machine.os, machine.kernel)),
        ("link", link.clone()),
        ("kendall", kendall.clone()),
        ("seed", manifest.seed.to_string()),
    ];
    lines.extend(git_revision.clone().map(|revision| ("revision", revision)));
    lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
