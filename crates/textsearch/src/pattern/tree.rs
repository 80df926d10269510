//! A pattern without its syntax.

use regex_syntax::hir::ClassUnicode;

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// The empty match, which is everywhere.
    Empty,
    /// One character of this class.
    Class(ClassUnicode),
    /// A position.
    Anchor(Anchor),
    /// A part this many times.
    Repeat { node: Box<Self>, least: u32, most: Option<u32>, greed: Greed },
    /// A group that is numbered.
    Capture { node: Box<Self>, number: u32 },
    /// A part that is not retried once it has matched.
    Atomic(Box<Self>),
    /// A part that must, or must not, match here, without being consumed.
    Look { node: Box<Self>, to: Side, want: Want },
    /// The text that a group has matched, again.
    Again { group: u32, case: Case },
    /// A grapheme: a character with all its combining marks.
    Grapheme,
    /// A sequence.
    Concat(Vec<Self>),
    /// Alternatives.
    Either(Vec<Self>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
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
