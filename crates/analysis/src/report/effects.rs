//! The effects of an experiment's factors on one measure.

use crate::factorial::Effects;
use serde::{Deserialize, Serialize};

/// The effects on one measure. Factors are counted as in [`Report::factors`](crate::report::Report::factors), levels as in [`crate::report::factor::Factor::values`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectsSeen {
    /// On what: "mean response".
    pub of: String,
    /// The effects.
    pub effects: Effects,
}
