//! An experiment: its file, the combinations of its factors, the loads and links of each, the seeded order of its trials, and the
//! folder of a run.
//!
//! [`read`] checks an experiment file and names the line of each fault. [`RunFolder`] opens the folder of a run. This crate runs
//! no trial, computes no answer, and writes nothing: `lab` runs the trials, and `analysis` reads their records.
//!
//! This crate names no system: the caller passes a table of systems ([`kendall_system::System`]).

mod experiment;
mod fault;
mod file;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod link;
mod load;
mod measure;
mod precision;
mod probing;
mod run_folder;
mod schedule;

pub use experiment::{
    CASE, Calibration, Case, Combination, ExpectedAt, Experiment, Factor, Letter, Level, Model, Published,
    PublishedRow, Section, Variable,
};
pub use fault::Fault;
pub use file::{DISTURBED_OVER, ExperimentError, parse, read};
pub use link::{LINK, RELAY, back_end};
pub use load::{Cores, LOAD, Load, Schedule, ServerCores, Threads};
pub use measure::Measure;
pub use precision::Precision;
pub use probing::Probing;
pub use run_folder::{ANSWER, Capacity, MOST_ATTEMPTS, RunError, RunFolder, settings};
pub use schedule::Trial;
