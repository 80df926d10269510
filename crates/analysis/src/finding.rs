//! The sentences of a report: answers, notes, and reasons to doubt it.
//!
//! A finding is a value; its sentence is its `Display` ([`kind`]). What counts as one is decided in [`judge`], and which of the
//! checks of assumptions are among them in [`assumption`].

mod agreement;
pub mod assumption;
pub mod contrast;
pub mod judge;
pub mod kind;
mod links;
pub mod loss;
pub mod reason;
pub mod severity;
pub mod tail;
