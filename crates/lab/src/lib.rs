//! The laboratory: from an experiment file to trials, their records, and the data of a report.
//!
//! [`read`] checks an experiment file, [`Lab::run`] tries every combination of its factors in seeded, shuffled order
//! against a server in a process of its own, and [`analyse`] lays what was measured beside what the models say.
//!
//! No system is named here: systems are rows of a table ([`kendall_system::System`]) that the caller hands in.

mod analyse;
mod axis;
mod collect;
mod compare;
mod conduct;
mod cost;
mod crossing;
mod disturbance;
mod experiment;
mod fault;
mod file;
mod hopeless;
mod lab;
mod link;
mod link_run;
mod live;
mod load;
mod load_trial;
pub mod load_view;
mod loading;
mod machine;
mod peak;
mod precision;
mod probe;
mod schedule;
mod selfcheck;
mod sequence;
mod server;
mod serving;
mod stop;
mod trial;
mod trial_error;
mod trial_result;
mod unstamped;
mod view;
mod warmup;

pub use analyse::{Points, analyse, observe};
pub use compare::{CompareError, Sides, levels, sides};
pub use cost::{COSTS_ASSUME, Cost, Needs, costs};
pub use disturbance::Disturbance;
pub use experiment::{
    CASE, Calibration, Case, Combination, ExpectedAt, Experiment, Factor, Level, Model, Published,
    PublishedRow, Section, Variable,
};
pub use fault::Fault;
pub use file::{ExperimentError, parse, read};
pub use lab::{Ended, Lab, LabError, drawn_seed};
pub use link::{LINK, LinkRecord};
pub use link_run::{LinkHops, LinkRun, LinkRunRecord, RelayRecord};
pub use live::Live;
pub use load::{LOAD, Load, Schedule};
pub use load_trial::LoadTrial;
pub use machine::{Offer, inspect};
pub use peak::{Event, LightLoad, Peak, PeakError, PeakPlan, peak};
pub use precision::Precision;
pub use probe::{Probing, Seen, Watching};
pub use selfcheck::{CaseResult, KnownStation, SeedResult, Selfcheck, SelfcheckError};
pub use server::{LISTENING, ServerError, Usage, stop_when_stdin_ends};
pub use stop::TrialPrecision;
pub use trial_error::TrialError;
pub use trial_result::{Measured, PrecisionReached, TrialResult};
