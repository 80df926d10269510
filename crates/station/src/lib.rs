//! The vocabulary of kendall: what a [`Station`] is, what is known of it, and what an [`Answer`] says.
//!
//! A station is written in Kendall's notation A/S/c/K/N/D: requests arrive so, are served so, by c servers,
//! with room for K, from a population of N, in the order D. Formula, simulation and measurement all speak of
//! stations in these words and all give the same [`Answer`], so that they can be laid side by side.
//!
//! This crate never reads a clock and does no I/O. Instants are passed in, and everything random is drawn from
//! the seeded streams of `kendall_stats::random`, so the same seed gives the same numbers on every platform.

mod answer;
mod arrivals;
mod attendance;
mod conditions;
mod discipline;
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
