//! A run of an experiment, new or resumed. Its [`RunFolder`] holds everything that it consists of.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::io;
use std::path::{self, Path, PathBuf};

use kendall_agents::Fleet;
use kendall_archive::{Manifest, folder_stamp, origin, utc_now};
use kendall_experiment::{Experiment, RunError, RunFolder};
use kendall_files::replace;
use kendall_link::LinkError;
use kendall_record::RecordError;
use kendall_system::{Kind, Parameter, System, Value, secret_field};

use crate::processor::AwakeError;
use crate::trial_error::TrialError;

/// The largest body of a request.
const MOST_BODY_BYTES: u64 = 64 << 20;

/// The reason why an experiment cannot be run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum LabError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("trial {trial}: {source}\nWhat is done is kept; go on with: kendall run --resume {}", folder.display())]
    Trial { trial: String, folder: PathBuf, source: TrialError },
    #[error(
        "agents cannot send over an emulated link, whose one end is this process; leave out [link], or --agents"
    )]
    AgentsOverLink,
    #[error(
        "an emulated link cannot reach a server that runs already; set command in [system], which starts the server at the link's \
         end, or back-end = \"relay\" in [link]"
    )]
    RunningOverLink,
    #[error("keep-awake: {0}")]
    Awake(#[from] AwakeError),
    #[error("another kendall is running in {}; wait for it, or stop it", .0.display())]
    Busy(PathBuf),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Every trial is done.
    Complete,
    /// The run was stopped; finished trials are kept.
    Interrupted,
}

/// A run of an experiment, to start or to resume.
#[derive(Debug)]
pub struct Lab {
    pub(crate) run: RunFolder,
    /// The agents that send the requests of trials, if this process does not.
    pub(crate) fleet: Option<Fleet>,
}

impl Lab {
    /// Creates a new run in its own folder under `results`. Draws a seed if the experiment names none, and copies the files that
    /// the experiment reads, so that the folder alone is enough to repeat the run.
    ///
    /// # Errors
    /// Fails where the folder cannot be written.
    pub fn create(mut experiment: Experiment, results: &Path) -> Result<Self, LabError> {
        let seed = *experiment.seed.get_or_insert_with(drawn_seed);
        let folder = new_folder(&results.join(&experiment.name))?;
        copy_files(&mut experiment, &folder)?;
        let file = folder.join("experiment.toml");
        replace(&file, experiment.to_toml()).map_err(|source| RecordError::Write { path: file, source })?;
        // A run without a signature can be resumed in a terminal, but not from its page.
        let _ = origin::sign(&folder);
        Manifest::here(&experiment.name, seed).write(&folder)?;
        Ok(Self { run: RunFolder::new(experiment, folder)?, fleet: None })
    }

    /// Resumes a run that was interrupted.
    ///
    /// # Errors
    /// Fails where the folder holds no run.
    pub fn resume(folder: &Path, systems: &'static [System]) -> Result<Self, LabError> {
        Ok(Self { run: RunFolder::open(folder, systems)?, fleet: None })
    }

    /// Lets agents send the requests of the trials. Calibrations stay with this process.
    ///
    /// # Errors
    /// Fails where a trial crosses an emulated link, of which this process is the client's end.
    pub fn send_from(&mut self, fleet: Option<Fleet>) -> Result<(), LabError> {
        if fleet.is_some() && self.crosses_link() {
            return Err(LabError::AgentsOverLink);
        }
        self.fleet = fleet;
        Ok(())
    }

    /// Whether this user created the run on this machine, with the experiment that was read.
    pub fn is_ours(&self) -> bool {
        origin::has_signed(self.folder(), self.run.text().as_bytes())
    }

    /// The folder of its results.
    pub fn folder(&self) -> &Path {
        self.run.folder()
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        self.run.experiment()
    }

    /// How many trials are done.
    pub fn trials_done(&self) -> usize {
        self.run.trials_done()
    }

    /// Whether any of its trials crosses an emulated link.
    pub fn crosses_link(&self) -> bool {
        self.run.crosses_link()
    }
}

/// A separate folder for a run that starts now, even if another run starts in the same second.
fn new_folder(parent: &Path) -> Result<PathBuf, RecordError> {
    let failed = |path: &Path, source| RecordError::Write { path: path.into(), source };
    fs::create_dir_all(parent).map_err(|source| failed(parent, source))?;
    let stamp = folder_stamp();
    let names = std::iter::once(stamp.clone()).chain((2..).map(|i| format!("{stamp}-{i}")));
    for folder in names.map(|name| parent.join(name)) {
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(failed(&folder, source)),
        }
    }
    unreachable!("the names do not end")
}

/// An unpredictable seed, within the range of TOML's integers.
pub fn drawn_seed() -> u64 {
    RandomState::new().hash_one(utc_now()) >> 1
}

/// Whether a field of a body is secret; such a file is not copied.
fn has_secret(body: &Path) -> bool {
    kendall_files::read_text(body, MOST_BODY_BYTES).is_ok_and(|body| secret_field(&body).is_some())
}

/// Copies the files that an experiment reads into its folder, and makes it read the copies.
fn copy_files(experiment: &mut Experiment, folder: &Path) -> Result<(), RecordError> {
    let is_file = |parameter: &Parameter| parameter.name == "trace" || matches!(parameter.kind, Kind::File);
    let given = path::absolute(experiment.folder.join("."))
        .map_err(|source| RecordError::Read { path: experiment.folder.clone(), source })?;
    let varied = experiment.variables.iter_mut();
    let varied =
        varied.flat_map(|variable| variable.values.iter_mut().map(|value| (variable.parameter, value)));
    let of_cases = experiment.cases.iter_mut().flat_map(|case| &mut case.values);
    let of_cases = of_cases.map(|(_, parameter, value)| (*parameter, value));
    let mut i = 0;
    for (parameter, value) in varied.chain(of_cases) {
        if !is_file(parameter) {
            // A file of headers may hold secrets, so it is not copied.
            *value = parameter.rooted(value, &given);
            continue;
        }
        let Value::Word(file) = value else { continue };
        let from = experiment.folder.join(&*file);
        if parameter.name == "body-file" && has_secret(&from) {
            *value = parameter.rooted(value, &given);
            continue;
        }
        let name = from.file_name().unwrap_or_default().to_string_lossy();
        i += 1;
        let copy = format!("file-{i}-{name}");
        fs::copy(&from, folder.join(&copy)).map_err(|source| RecordError::Read { path: from, source })?;
        *file = copy;
    }
    experiment.folder = folder.into();
    Ok(())
}
