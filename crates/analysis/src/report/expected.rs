//! The expectations of a system at one combination, judged.

use kendall_evidence::expect::Judged;
use serde::{Deserialize, Serialize};

/// An expectation at one combination, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectedAt {
    /// Factor and value, as in [`crate::report::point::Point::settings`].
    pub settings: Vec<(String, String)>,
    /// The expectation, the measurement, and the verdict.
    pub judged: Judged,
}
