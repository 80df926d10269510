//! The files of a run: writes them and reads them back.
//!
//! A results folder is `results/<experiment>/<UTC stamp>/` with the experiment as run, a [`Manifest`], and one folder for each
//! trial: `requests.parquet` (a row for each request), `latency.hlog` (HdrHistogram's interval log) and `answer.json`. While a
//! trial runs, its rows go to a journal, which is readable at any instant, so a killed run keeps its rows. [`live`] is the
//! published state of a running run.
//!
//! This crate neither measures nor computes answers.

mod bounded;
mod build;
mod folder;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod hgrm;
mod hlog;
mod journal;
pub mod live;
mod manifest;
pub mod origin;
mod points;
pub mod series;
mod table;
mod thrift;
mod trial;

pub use build::Build;
pub use folder::{folder_stamp, read_json, trial_folder, utc_now, write_json};
pub use hgrm::hgrm;
pub use manifest::{Machine, Manifest};
pub use points::points;
pub use table::MergedTable;
pub use trial::{TrialWriter, read_trial};
