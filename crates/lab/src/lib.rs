//! The laboratory: trials of an experiment or of a URL, and the records that they leave.
//!
//! [`Lab::run`] measures every combination of an experiment's factors, in seeded, shuffled order, against a server in its own
//! process. [`LoadTrial`] is one trial of a server that runs already. `kendall_analysis` reads the records.
//!
//! This crate names no system: the caller passes a table of systems ([`kendall_system::System`]).

mod collect;
mod conduct;
mod contest;
mod cores;
mod cost;
mod crossing;
mod disturbance;
mod hopeless;
mod lab;
mod limits;
mod link;
mod link_run;
mod link_summary;
mod live;
mod load_trial;
pub mod load_view;
mod loading;
mod machine;
mod peak;
mod processor;
mod selfcheck;
mod sequence;
mod server;
mod serving;
mod stop;
mod surroundings;
mod trial;
mod trial_error;
mod unstamped;
mod validation;
mod view;
mod watching;

pub use contest::{Contender, Contest};
pub use cost::{COSTS_ASSUME, Cost, Needs, costs};
pub use lab::{Lab, LabError, RunEnd, drawn_seed};
pub use link_run::{LinkHops, LinkRun, LinkRunRecord, RelayRecord};
pub use link_summary::link_summary;
pub use live::Live;
pub use load_trial::LoadTrial;
pub use machine::{Offer, inspect};
pub use peak::{
    DisturbedProbes, Event, LightLoad, Peak, PeakError, PeakPlan, PeakSetting, UnfinishedBy, capacity, peak,
};
pub use processor::{Awake, AwakeError};
pub use selfcheck::{CaseResult, KnownStation, SeedResult, Selfcheck, SelfcheckError};
pub use server::{LISTENING, ServerError, stop_when_stdin_ends};
pub use stop::TrialPrecision;
pub use surroundings::{LoadedServers, Quietness, read_surroundings, wait_until_quiet};
pub use trial_error::TrialError;
pub use validation::{ExperimentServer, Validation, ValidationError, ValidationEvent, with_server};
