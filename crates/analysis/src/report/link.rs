//! The emulated link of a trial: its requested settings, and their measurement.

use kendall_station::Estimate;
use kendall_stats::number::{percent, significant, time};
use serde::{Deserialize, Serialize};

/// The link of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialLink {
    /// The trial, as in [`TrialLine`](crate::report::trial::TrialLine).
    pub trial: String,
    /// How the link was emulated: "user-space over veth, namespaces as root".
    pub emulated: String,
    /// The difference between the emulation and a link of packets, where there is one.
    #[serde(default)]
    pub differs: Option<String>,
    /// Each of its properties, each way.
    pub properties: Vec<LinkProperty>,
    /// The lateness of packets relative to the model during the trial: of half of them, of 99 of 100, and of the
    /// latest, in s. `None` where none left.
    pub late_s: Option<[f64; 3]>,
}

/// One property of a link in one direction, requested and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkProperty {
    /// The way: "up" is from client to server, "down" back.
    pub way: String,
    /// The quantity.
    pub quantity: LinkQuantity,
    /// The requested value; `None` if none was requested, as for a rate without limit.
    pub asked: Option<f64>,
    /// The measured value; `None` if it could not be measured.
    pub measured: Option<Estimate>,
    /// Whether both agree, within the precision of the measurement.
    pub holds: Option<bool>,
}

/// A measured quantity of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkQuantity {
    /// How long a packet takes, in s.
    Delay,
    /// The standard deviation of the delay, in s.
    Jitter,
    /// Bits per second.
    Rate,
    /// The share of packets that are lost.
    Loss,
}

impl LinkQuantity {
    /// The quantity's name in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Jitter => "jitter",
            Self::Rate => "rate",
            Self::Loss => "loss",
        }
    }

    /// A value of it with its unit.
    pub fn words(self, value: f64) -> String {
        match self {
            Self::Delay | Self::Jitter => time(value),
            Self::Rate => rate(value),
            Self::Loss => percent(value),
        }
    }
}

/// A rate in the unit that fits it: "9.98 Mbit/s".
fn rate(bits_per_s: f64) -> String {
    let (unit, factor) = match bits_per_s {
        rate if rate >= 1e9 => ("Gbit/s", 1e9),
        rate if rate >= 1e6 => ("Mbit/s", 1e6),
        _ => ("kbit/s", 1e3),
    };
    format!("{} {unit}", significant(bits_per_s / factor, 3))
}
