//! What PCRE2 runs: the tree written in Perl's syntax, with all flags resolved.

use std::fmt::Write as _;

use pcre2::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::ClassUnicode;

use super::class::negated;
use super::tree::{Case, Greed, Node, Place, Side, Want};
use crate::pattern::Alphabet;
use crate::{PatternError, SearchError};

/// PCRE2's code for a match that took too many steps.
const MATCH_LIMIT: i32 = -47;
const DEPTH_LIMIT: i32 = -53;
const JIT_STACK_LIMIT: i32 = -46;
const HEAP_LIMIT: i32 = -63;
/// The stack of the compiled matcher grows up to this.
const STACK_BYTES: usize = 1 << 20;

/// A pattern compiled by PCRE2.
#[derive(Debug)]
pub(crate) struct Perl {
    regex: Regex,
    text: String,
    steps: u32,
}

impl Perl {
    pub(crate) fn new(tree: &Node, alphabet: Alphabet, steps: u32) -> Result<Self, PatternError> {
        let mut text = String::new();
        write(tree, &mut text);
        // The heap is for what is not compiled to machine code; in KiB.
        let limited = format!("(*LIMIT_MATCH={steps})(*LIMIT_HEAP=4096){text}");
        let regex = RegexBuilder::new()
            .utf(true)
            .ucp(alphabet == Alphabet::Unicode)
            .jit_if_available(true)
            .max_jit_stack_size(Some(STACK_BYTES))
            .build(&limited)
            .map_err(|reason| PatternError { at: 1, reason: format!("PCRE2 does not take it: {reason}") })?;
        Ok(Self { regex, text, steps })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_match(&self, sentence: &[u8]) -> Result<bool, SearchError> {
        self.regex.is_match(sentence).map_err(|reason| self.error(&reason))
    }

    /// The first match at or behind a place.
    pub(crate) fn find_at(&self, sentence: &[u8], at: usize) -> Result<Option<(usize, usize)>, SearchError> {
        let found = self.regex.find_at(sentence, at).map_err(|reason| self.error(&reason))?;
        Ok(found.map(|found| (found.start(), found.end())))
    }

    fn error(&self, reason: &pcre2::Error) -> SearchError {
        match reason.code() {
            MATCH_LIMIT | DEPTH_LIMIT | HEAP_LIMIT | JIT_STACK_LIMIT => {
                SearchError::TooManySteps { steps: self.steps }
            }
            _ => SearchError::Backtracking { reason: reason.to_string() },
        }
    }
}

fn write(node: &Node, text: &mut String) {
    match node {
        Node::Empty => text.push_str("(?:)"),
        Node::Class(class) => write_class(class, text),
        Node::Place(place) => text.push_str(match place {
            Place::Start => "\\A",
            Place::End => "\\z",
            Place::WordBoundary => "\\b",
            Place::NoWordBoundary => "\\B",
        }),
        Node::Repeat { node, least, most, greed } => {
            enclose("(?:", node, text);
            let _ = match most {
                Some(most) => write!(text, "{{{least},{most}}}"),
                None => write!(text, "{{{least},}}"),
            };
            text.push_str(match greed {
                Greed::Greedy => "",
                Greed::Lazy => "?",
                Greed::Possessive => "+",
            });
        }
        // Groups are numbered as in Java: by their opening parentheses.
        Node::Capture { node, .. } => enclose("(", node, text),
        Node::Atomic(node) => enclose("(?>", node, text),
        Node::Look { node, to, want } => {
            let open = match (to, want) {
                (Side::Ahead, Want::There) => "(?=",
                (Side::Ahead, Want::Absent) => "(?!",
                (Side::Behind, Want::There) => "(?<=",
                (Side::Behind, Want::Absent) => "(?<!",
            };
            enclose(open, node, text);
        }
        Node::Again { group, case: Case::Exact } => {
            let _ = write!(text, "\\g{{{group}}}");
        }
        Node::Again { group, .. } => {
            let _ = write!(text, "(?i:\\g{{{group}}})");
        }
        Node::Grapheme => text.push_str("\\X"),
        Node::Concat(nodes) => nodes.iter().for_each(|node| write(node, text)),
        Node::Either(nodes) => {
            for (index, node) in nodes.iter().enumerate() {
                text.push_str(if index == 0 { "(?:" } else { "|" });
                write(node, text);
            }
            text.push(')');
        }
    }
}

fn enclose(open: &str, node: &Node, text: &mut String) {
    text.push_str(open);
    write(node, text);
    text.push(')');
}

fn write_class(class: &ClassUnicode, text: &mut String) {
    let rest = negated(class.clone());
    if rest.ranges().is_empty() {
        text.push_str("(?s:.)");
        return;
    }
    if class.ranges().is_empty() {
        text.push_str("(*FAIL)");
        return;
    }
    let (open, ranges) =
        if rest.ranges().len() < class.ranges().len() { ("[^", &rest) } else { ("[", class) };
    text.push_str(open);
    for range in ranges.iter() {
        let _ = write!(text, "\\x{{{:x}}}", u32::from(range.start()));
        if range.end() > range.start() {
            let _ = write!(text, "-\\x{{{:x}}}", u32::from(range.end()));
        }
    }
    text.push(']');
}
