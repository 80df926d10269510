//! The answers of a station, at one place or along a range.

use std::fmt;

use kendall_station::{Answer, Station};

/// One of the stations, and its answers at each value of the range; a single answer without a range.
pub(crate) struct Column {
    /// The column's name: its notation, and what distinguishes it from others.
    pub(crate) name: String,
    pub(crate) stations: Vec<Station>,
    pub(crate) found: Vec<StationAnswer>,
}

/// The answer for one station, or the reason why it is missing.
#[derive(Clone, Debug)]
pub(crate) enum StationAnswer {
    Answer(Box<Answer>),
    Unstable(String),
    NoAnswer(String),
}

impl StationAnswer {
    pub(crate) fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::Unstable(_) | Self::NoAnswer(_) => None,
        }
    }

    /// Makes the answer of a station that has none, for this reason.
    pub(crate) fn without(why: &impl fmt::Display, unstable: bool) -> Self {
        if unstable { Self::Unstable(why.to_string()) } else { Self::NoAnswer(why.to_string()) }
    }
}
