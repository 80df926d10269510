//! The capacity of a system, as the laboratory fitted it.

use serde::{Deserialize, Serialize};

/// The curve fitted to the points of a group, which differ in the first factor only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// The values of the factors after the first, as in [`crate::report::point::Point::settings`]; empty with one factor.
    pub group: Vec<(String, String)>,
    /// The load at which a model of the system is used best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knee: Option<Knee>,
    /// The universal scalability law through its points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usl: Option<UslSeen>,
}

/// The load at which a system is used best: the most throughput for its mean response time (Kleinrock 1979: power).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// The model, as in [`crate::report::point::Modelled::notation`].
    pub notation: String,
    /// Requests per second there.
    pub throughput_per_s: f64,
    /// The mean response time there, in seconds.
    pub response_s: f64,
}

/// The universal scalability law, fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UslSeen {
    /// The law with its parameters and their intervals, in words.
    pub words: String,
    /// Users and the throughput that the law predicts for them, per second.
    pub line: Vec<(f64, f64)>,
    /// Users and requests per second where it is largest; `None` where it grows on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<(f64, f64)>,
}
