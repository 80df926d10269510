//! `kendall solve`, and the options of a station for other commands.
//!
//! [`solve`] answers a station, several of them, a network, a named model, or a table of rows by formula and by simulation.
//! [`StationOptions`] make a station of its notation, and [`Figure`] draws what was found. [`words`] are for other programs.

mod alone;
mod approximation;
mod ask;
mod batch;
mod beside;
mod class;
mod column;
mod condition;
mod figure;
mod model;
mod run;
mod scenario;
mod several;
mod shown;
mod solve;
mod station;
mod station_keys;
mod table;
mod tandem;
mod values;
pub mod words;
mod written;

pub use ask::Solve;
pub use figure::Figure;
pub use solve::solve;
pub use station::{RecordedLaws, StationOptions};

/// Exit status where a station has no steady state.
pub const UNSTABLE: u8 = 3;
