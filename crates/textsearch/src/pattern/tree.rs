//! A pattern without its syntax.

use regex_syntax::hir::ClassUnicode;

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// Nothing, which is everywhere.
    Empty,
    /// One character of these.
    Class(ClassUnicode),
    /// A place.
    Place(Place),
    /// A part this many times.
    Repeat { node: Box<Self>, least: u32, most: Option<u32>, greed: Greed },
    /// A group that is numbered.
    Capture { node: Box<Self>, number: u32 },
    /// A part that is not tried anew once it matched.
    Atomic(Box<Self>),
    /// What must, or must not, stand here, without being taken.
    Look { node: Box<Self>, to: Side, want: Want },
    /// The same text again that a group has taken.
    Again { group: u32, case: Case },
    /// A character as readers see it, with all marks that belong to it.
    Grapheme,
    /// One after the other.
    Concat(Vec<Self>),
    /// One of these.
    Either(Vec<Self>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Start,
    End,
    WordBoundary,
    NoWordBoundary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Greed {
    Greedy,
    Lazy,
    Possessive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Ahead,
    Behind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    There,
    Absent,
}

/// Whether letters that differ in case are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Exact,
    Ascii,
    Unicode,
}

impl Node {
    pub(crate) fn concat(mut nodes: Vec<Self>) -> Self {
        match nodes.len() {
            0 => Self::Empty,
            1 => nodes.remove(0),
            _ => Self::Concat(nodes),
        }
    }

    pub(crate) fn either(mut nodes: Vec<Self>) -> Self {
        match nodes.len() {
            1 => nodes.remove(0),
            _ => Self::Either(nodes),
        }
    }
}
