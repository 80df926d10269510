//! What a run leaves on disk, and how it is read back.
//!
//! A results folder is `results/<experiment>/<UTC stamp>/` with the experiment as run, a [`Manifest`], and one
//! folder a trial: `requests.parquet` (a row a request), `latency.hlog` (HdrHistogram's interval log) and
//! `answer.json`. While a trial runs its rows go to a journal, which is readable at any instant, so a run that is
//! killed leaves what it had. What a run reports of itself meanwhile is [`live`].
//!
//! This crate decides nothing: it neither measures nor computes answers.

mod folder;
mod hgrm;
mod hlog;
mod journal;
pub mod live;
mod manifest;
pub mod origin;
mod points;
pub mod series;
mod table;
mod trial;

pub use folder::{folder_stamp, read_json, trial_folder, utc_now, write_json};
pub use hgrm::hgrm;
pub use manifest::{Machine, Manifest};
pub use points::points;
pub use table::MergedTable;
pub use trial::{TrialWriter, read_trial};
