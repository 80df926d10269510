//! What a trial leaves on disk, and how it is read back.
//!
//! A results folder is `results/<experiment>/<UTC stamp>/` with the experiment as run, a [`Manifest`], and one
//! folder a trial: `requests.parquet` (a row a request), `latency.hlog` (HdrHistogram's interval log) and
//! `answer.json`. While a trial runs its rows go to a journal, which is readable at any instant, so a run that is
//! killed leaves what it had. What a run says of itself meanwhile is [`live`].
//!
//! This crate decides nothing: it neither measures nor computes answers. Its one clock, [`clock::now_ns`], is
//! here because client and server stamp requests by it.

pub mod clock;
mod error;
mod folder;
mod hgrm;
mod hlog;
mod journal;
pub mod live;
mod manifest;
mod row;
pub mod series;
pub mod stamps;
mod table;
mod trial;

pub use error::RecordError;
pub use folder::{folder_stamp, read_json, trial_folder, utc_now, write_json};
pub use hgrm::hgrm;
pub use manifest::{Machine, Manifest};
pub use row::{Outcome, RequestRow};
pub use table::MergedTable;
pub use trial::{TrialWriter, read_trial};
