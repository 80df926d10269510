//! The pieces of a search.

use kendall_digest::password::Mask;

use super::learned::Part;
use crate::words::rules::Rule;

/// The candidates of a part.
#[derive(Clone, Debug)]
pub(super) enum Candidates {
    /// The candidates that a rule makes of the words of these lengths.
    Words { rule: Rule, shortest: usize, longest: usize },
    /// All passwords of a mask.
    Mask(Mask),
}

/// A part of a search: its name, its number of candidates, and these.
pub(super) type Piece = (Part, u64, Candidates);
