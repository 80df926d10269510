//! What an experiment asks for: its file, the combinations of its factors, the loads and links of each, the seeded order of its
//! trials, and the folder in which a run of it stands.
//!
//! [`read`] checks an experiment file and names the line of each fault. [`RunFolder`] opens what a run left. Nothing here runs a
//! trial or computes an answer, and nothing is written: `lab` runs what stands here, and `analysis` reads what the run left.
//!
//! No system is named here: systems are rows of a table ([`kendall_system::System`]) that the caller hands in.

mod experiment;
mod fault;
mod file;
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
pub use load::{LOAD, Load, Schedule};
pub use measure::Measure;
pub use precision::Precision;
pub use probing::Probing;
pub use run_folder::{ANSWER, Capacity, MOST_ATTEMPTS, RunError, RunFolder, settings};
pub use schedule::Trial;
