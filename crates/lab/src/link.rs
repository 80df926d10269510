//! The emulated link that the trials of a run cross.

mod bed;
mod relay;

pub(crate) use bed::{Bed, Crossing};
