//! The vocabulary of kendall: the [`Station`], its laws and conditions, and the [`Answer`] that a method
//! gives.
//!
//! A station is written in Kendall's notation A/S/c/K/N/D: arrivals, service times, c servers, capacity K, a
//! population of N, and the discipline D. Formula, simulation and measurement all use these terms and all
//! return an [`Answer`], so that their results can be compared.
//!
//! This crate never reads a clock and does no I/O. Callers pass instants in, and everything random is drawn
//! from
//! the seeded streams of `kendall_stats::random`, so the same seed gives the same numbers on every platform.

mod answer;
mod arrivals;
mod attendance;
mod conditions;
mod discipline;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod gittins;
mod instants;
mod law;
mod network;
mod notation;
mod profile;
mod queue;
mod sessions;
mod station;

pub use answer::{Answer, By, ClassAnswer, Estimate, QUANTILES, Quantile, Summary};
pub use arrivals::{Arrivals, TraceError};
pub use attendance::{Attendance, AttendanceError};
pub use conditions::{
    Batch, Breakdown, Clock, ConditionError, Conditions, Delays, Interrupted, Retry, Setup,
};
pub use discipline::{Discipline, Formulas, Knows, UnknownDiscipline};
pub use gittins::GittinsTable;
pub use instants::Instants;
pub use law::{Law, LawError, Part, ServiceTime};
pub use network::{Network, NetworkError, Node, Population, RoutedClass, Routes, WhenFull};
pub use notation::{Kind, Notation, NotationError};
pub use profile::{Between, Profile, ProfileError, Spacing};
pub use queue::{Entry, Job, Queue, Rank, Size, Ticket};
pub use sessions::{Crowd, Sessions};
pub use station::{Class, Servers, Station, StationError};
