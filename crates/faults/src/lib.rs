//! The fault campaign: starts each system under load, injects faults from a seed, and checks that no acknowledged work is lost, no
//! answer is wrong, other clients are served, and the system recovers.
//!
//! The [`soak`] loads each system for an hour without faults, and checks that nothing grows.
//!
//! For developers: it is not part of a release.

pub mod campaign;
pub mod case;
pub mod faults;
pub mod page;
pub mod soak;
pub mod subjects;
