//! Reads the runs to compare from folders and files.
//!
//! A side is one or more of: the folder of a run, whose trials are its runs, combination by combination, or of an experiment, with all its
//! runs; the folder of a recorded load, which is one run; a file of numbers or a table of any tool, whose rows are runs, or the output of a
//! load generator, which is one run.

use std::path::{Path, PathBuf};

use kendall_archive::read_trial;
use kendall_evidence::Trial;
use kendall_evidence::compare::table::{self, NoRuns};
use kendall_evidence::compare::{Metric, Run, Side, SideGroup};

use kendall_experiment::{Letter, RunError, RunFolder};
use kendall_record::RecordError;
use kendall_system::{System, nearest};

use crate::trial_result::TrialResult;

/// Files larger than this hold requests and not runs.
const LARGEST_FILE_BYTES: u64 = 16 << 20;

/// The reason why there is nothing to compare.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum CompareError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    NoRuns { path: PathBuf, source: NoRuns },
    #[error("{} is {bytes} bytes long; a file for kendall compare has one row per run, not per request", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error(
        "{} is neither the folder of a run, results/EXPERIMENT/INSTANT, nor that of several, results/EXPERIMENT, nor that of a recorded load",
        .0.display()
    )]
    NoRecord(PathBuf),
    #[error("the run has no factor {factor:?}{hint}")]
    NoFactor { factor: String, hint: String },
    #[error("{first} and {other} have no combination of factors in common, so they cannot be compared")]
    NothingInCommon { first: String, other: String },
    #[error("at least two sides are needed; name another, or the levels of a factor with --by")]
    OneSide,
}

/// A comparison: places with their sides, and the measurements of each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Sides {
    /// The metrics, in the order of the runs' values.
    pub metrics: Vec<Metric>,
    /// The places, each with two sides at least.
    pub places: Vec<SideGroup>,
    /// The faults in reading or comparing, as sentences.
    pub doubts: Vec<String>,
    /// The letters that abbreviate long values in the names of sides and places.
    pub letters: Vec<Letter>,
}

/// The runs of one side in one folder or file, by their group.
#[derive(Default)]
struct SideRuns {
    metrics: Vec<Metric>,
    runs: Vec<(String, Vec<Run>)>,
    doubts: Vec<String>,
    letters: Vec<Letter>,
}

/// Reads sides from their folders and files. Runs of different folders are independent of each other.
///
/// # Errors
/// Fails where a folder or file holds no runs, and where sides have no combination in common.
pub fn sides(named: &[(String, Vec<PathBuf>)], systems: &'static [System]) -> Result<Sides, CompareError> {
    if named.len() < 2 {
        return Err(CompareError::OneSide);
    }
    let mut found = Vec::new();
    for (_, paths) in named {
        let mut side = SideRuns::default();
        for path in paths {
            side.add(read(path, systems)?);
        }
        found.push(side);
    }
    let metrics = in_common(&mut found);
    // Runs of one combination each are of one place, whatever their files call it.
    let is_single = found.iter().all(|side| side.runs.len() == 1);
    if is_single {
        found.iter_mut().for_each(|side| side.runs[0].0.clear());
    }
    let first = std::mem::take(&mut found[0].runs);
    for (side, (name, _)) in found.iter().zip(named).skip(1) {
        if !first.iter().any(|(place, _)| side.runs.iter().any(|(other, _)| other == place)) {
            return Err(CompareError::NothingInCommon { first: named[0].0.clone(), other: name.clone() });
        }
    }
    let mut doubts: Vec<String> = found.iter().flat_map(|side| side.doubts.clone()).collect();
    let mut letters: Vec<Letter> = found.iter().flat_map(|side| side.letters.clone()).collect();
    let mut places = Vec::new();
    for (place, runs) in first {
        let mut sides = vec![Side { name: named[0].0.clone(), runs }];
        for (side, (name, _)) in found.iter().zip(named).skip(1) {
            let runs = side.runs.iter().find(|(other, _)| *other == place);
            sides.extend(runs.map(|(_, runs)| Side { name: name.clone(), runs: runs.clone() }));
        }
        if sides.len() > 1 {
            places.push(SideGroup { name: place, sides });
        } else {
            doubts.push(format!("{place}: only {} has it, so it is not compared", named[0].0));
        }
    }
    letters.dedup();
    Ok(Sides { metrics, places, doubts, letters })
}

/// The levels of one factor of a run as sides. The other factors make places; trials of one block are of one block.
///
/// # Errors
/// Fails where the folder holds no run, or one without that factor.
pub fn levels(folder: &Path, factor: &str, systems: &'static [System]) -> Result<Sides, CompareError> {
    let run = RunFolder::open(folder, systems)?;
    let factors = run.experiment().factors();
    let Some(varied) = factors.iter().find(|known| known.name == factor) else {
        let names = || factors.iter().map(|factor| factor.name);
        let hint = match nearest(factor, names()) {
            Some(near) => format!("; did you mean {near:?}?"),
            None if factors.is_empty() => "; the run varies no factor".to_owned(),
            None => format!("; it has {}", names().collect::<Vec<_>>().join(", ")),
        };
        return Err(CompareError::NoFactor { factor: factor.to_owned(), hint });
    };
    let (tried, doubts) = tried(&run);
    let mut places: Vec<SideGroup> = Vec::new();
    // In the order of the file, so that its first level is what the others are compared with.
    for level in &varied.values {
        let level = level.to_string();
        for (levels, run) in &tried {
            if !levels.iter().any(|(name, value)| name == factor && *value == level) {
                continue;
            }
            let name = words(levels.iter().filter(|(name, _)| name != factor));
            let index = places.iter().position(|place| place.name == name).unwrap_or_else(|| {
                places.push(SideGroup { name, sides: Vec::new() });
                places.len() - 1
            });
            let sides = &mut places[index].sides;
            match sides.iter_mut().find(|side| side.name == level) {
                Some(side) => side.runs.push(run.clone()),
                None => sides.push(Side { name: level.clone(), runs: vec![run.clone()] }),
            }
        }
    }
    places.retain(|place| place.sides.len() > 1);
    if places.is_empty() {
        Err(CompareError::OneSide)
    } else {
        Ok(Sides { metrics: Metric::all(), places, doubts, letters: run.experiment().letters() })
    }
}

impl SideRuns {
    /// Adds what another folder or file of the same side has.
    fn add(&mut self, mut other: Self) {
        let mut both = [std::mem::take(self), std::mem::take(&mut other)];
        // Of nothing there is nothing to have in common.
        let metrics = if both[0].runs.is_empty() { both[1].metrics.clone() } else { in_common(&mut both) };
        let [mut mine, theirs] = both;
        for (place, runs) in theirs.runs {
            match mine.runs.iter_mut().find(|(known, _)| *known == place) {
                Some((_, known)) => known.extend(runs),
                None => mine.runs.push((place, runs)),
            }
        }
        mine.doubts.extend(theirs.doubts);
        mine.letters.extend(theirs.letters);
        mine.letters.dedup();
        *self = Self { metrics, ..mine };
        // Blocks of different folders are different blocks, and no file says which of them belong together.
        let single = self.runs.iter().all(|(_, runs)| {
            let mut blocks: Vec<u64> = runs.iter().filter_map(|run| run.block).collect();
            blocks.sort_unstable();
            blocks.windows(2).all(|pair| pair[0] != pair[1])
        });
        if !single {
            self.runs.iter_mut().flat_map(|(_, runs)| runs).for_each(|run| run.block = None);
        }
    }
}

/// The metrics that all have, in the order of the first; the runs' values are put in that order.
fn in_common(found: &mut [SideRuns]) -> Vec<Metric> {
    let known =
        |side: &SideRuns, metric: &Metric| side.metrics.iter().position(|one| one.name == metric.name);
    let metrics: Vec<Metric> = found[0]
        .metrics
        .iter()
        .filter(|metric| found.iter().all(|side| known(side, metric).is_some()))
        .cloned()
        .collect();
    for side in found {
        let order: Vec<usize> = metrics.iter().filter_map(|metric| known(side, metric)).collect();
        for run in side.runs.iter_mut().flat_map(|(_, runs)| runs) {
            run.values = order.iter().map(|&index| run.values[index]).collect();
        }
        side.metrics.clone_from(&metrics);
    }
    metrics
}

fn read(path: &Path, systems: &'static [System]) -> Result<SideRuns, CompareError> {
    let read_error = |source| CompareError::Read { path: path.into(), source };
    let about = path.metadata().map_err(read_error)?;
    if !about.is_dir() {
        if about.len() > LARGEST_FILE_BYTES {
            return Err(CompareError::TooLarge { path: path.into(), bytes: about.len() });
        }
        let text = match kendall_archive::points(path).map_err(RunError::from)? {
            Some(text) => text,
            None => kendall_files::read_text(path, LARGEST_FILE_BYTES).map_err(read_error)?,
        };
        let (metrics, runs) =
            table::read(&text).map_err(|source| CompareError::NoRuns { path: path.into(), source })?;
        return Ok(SideRuns { metrics, runs: vec![(String::new(), runs)], ..SideRuns::default() });
    }
    if path.join("experiment.toml").exists() {
        let run_folder = RunFolder::open(path, systems)?;
        let (tried, doubts) = tried(&run_folder);
        let mut runs: Vec<(String, Vec<Run>)> = Vec::new();
        for (levels, run) in tried {
            // Trials of one run are paired with each other only, not with those of another run.
            let (place, run) = (words(levels.iter()), Run { block: None, ..run });
            match runs.iter_mut().find(|(known, _)| *known == place) {
                Some((_, known)) => known.push(run),
                None => runs.push((place, vec![run])),
            }
        }
        return Ok(SideRuns {
            metrics: Metric::all(),
            runs,
            doubts,
            letters: run_folder.experiment().letters(),
        });
    }
    if let Some(runs) = runs_within(path).map_err(read_error)? {
        let mut found = SideRuns::default();
        for run in runs {
            found.add(read(&run, systems)?);
        }
        return Ok(found);
    }
    loaded(path)
}

/// The runs in the folder of an experiment, results/EXPERIMENT, in the order of time; `None` where it holds none.
fn runs_within(folder: &Path) -> std::io::Result<Option<Vec<PathBuf>>> {
    let entries = folder.read_dir()?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    let mut runs: Vec<PathBuf> =
        entries.into_iter().filter(|path| path.join("experiment.toml").exists()).collect();
    runs.sort();
    Ok((!runs.is_empty()).then_some(runs))
}

/// The one run of a recorded load.
fn loaded(folder: &Path) -> Result<SideRuns, CompareError> {
    let Some(result) = TrialResult::read(folder).map_err(RunError::from)? else {
        return Err(CompareError::NoRecord(folder.into()));
    };
    let rows = read_trial(folder).map_err(RunError::from)?;
    let warmup_ns = result.left_out_ns().unwrap_or_default();
    let run = Run::of(&Trial { rows: &rows, warmup_ns }, None);
    Ok(SideRuns { metrics: Metric::all(), runs: vec![(String::new(), vec![run])], ..SideRuns::default() })
}

/// The factors' values of a trial, and what was measured in it.
type Tried = (Vec<(String, String)>, Run);

/// The trials of a run that are done, in the order of running, and why others are left out.
fn tried(run: &RunFolder) -> (Vec<Tried>, Vec<String>) {
    let (mut tried, mut doubts) = (Vec::new(), Vec::new());
    for (folder, trial) in run.begun() {
        let read = || {
            let Some(result) = TrialResult::read(&folder)? else { return Ok(None) };
            Ok::<_, RecordError>(Some((result, read_trial(&folder)?)))
        };
        match read() {
            Ok(None) => {}
            Ok(Some((result, rows))) => {
                let warmup_ns = result.warmup_ns(run.load(trial.combination));
                let measured =
                    Run::of(&Trial { rows: &rows, warmup_ns }, result.server.map(|server| server.cpu_s));
                let levels = run.combinations()[trial.combination].levels.iter();
                let levels = levels.map(|(name, level)| ((*name).to_owned(), level.to_string())).collect();
                tried.push((levels, Run { block: Some(u64::from(trial.repeat)), ..measured }));
            }
            Err(error) => doubts.push(error.to_string()),
        }
    }
    (tried, doubts)
}

/// "rate=20, length=3".
fn words<'a>(levels: impl Iterator<Item = &'a (String, String)>) -> String {
    levels.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
}
