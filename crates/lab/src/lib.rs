//! The laboratory: from an experiment file to trials, their records, and the data of a report.
//!
//! [`read`] checks an experiment file, [`run`] tries every combination of its factors in seeded, shuffled order
//! against a server in a process of its own, and [`analyse`] lays what was measured beside what the models say.
//!
//! No system is named here: systems are rows of a table ([`System`]) that the caller hands in.

mod experiment;
mod fault;
mod file;
mod load;
mod parameter;
mod system;

pub use experiment::{Combination, Experiment, Model, Section, Variable};
pub use fault::Fault;
pub use file::{ExperimentError, parse, read};
pub use load::{LOAD, Load, Schedule};
pub use parameter::{Kind, Parameter, Value};
pub use system::{Settings, System};
