//! The form for PCRE2: the tree written in Perl's syntax, with all flags resolved.

use std::fmt::Write as _;
use std::sync::OnceLock;

use pcre2::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::ClassUnicode;

use super::class::{negated, predefined, set};
use super::regular::any;
use super::tree::{Anchor, Case, Greed, Node, Side, Want};
use crate::error::{PatternError, SearchError};
use crate::semantics::Alphabet;

/// PCRE2's code for a match that took too many steps.
const MATCH_LIMIT: i32 = -47;
const DEPTH_LIMIT: i32 = -53;
const JIT_STACK_LIMIT: i32 = -46;
const HEAP_LIMIT: i32 = -63;
/// The stack of the compiled matcher grows up to this.
const STACK_BYTES: usize = 1 << 20;

/// About what a compiled pattern takes, with the stack of the compiled matcher for two threads: PCRE2's library does not say.
const COMPILED_BYTES: usize = 96 << 10;

/// A pattern compiled by PCRE2: once as it is, and, on first use, for ASCII text. That is twice as fast, since nothing is decoded
/// or checked to be UTF-8, and of such text several sentences can be searched at once.
#[derive(Debug)]
pub(crate) struct Perl {
    regex: Regex,
    text: String,
    steps: u32,
    /// For one sentence of ASCII; `None` if it names other characters.
    ascii: OnceLock<Option<Regex>>,
    lines_text: String,
    /// For several sentences, each ended by a line feed but the last.
    lines: OnceLock<Option<Regex>>,
    /// Whether it begins with the start of a word. For several sentences, the pattern then includes a character before the word
    /// instead: PCRE2 skips all others quickly, where it would otherwise begin a match at each letter to find that it is inside a
    /// word.
    begins_word: bool,
}

/// The kind of text that a pattern runs on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Sentence,
    /// Sentences with line feeds between them, which no match includes.
    Lines,
}

impl Perl {
    pub(crate) fn new(tree: &Node, alphabet: Alphabet, steps: u32) -> Result<Self, PatternError> {
        let [text, lines_text] = [Subject::Sentence, Subject::Lines].map(|subject| {
            let mut text = String::new();
            match word_behind(tree).filter(|_| subject == Subject::Lines) {
                Some(word) => {
                    text.push_str("\\W");
                    word.iter().for_each(|node| write(node, subject, &mut text));
                }
                None => write(tree, subject, &mut text),
            }
            text
        });
        let builder = |builder: &mut RegexBuilder| {
            builder.utf(true).ucp(alphabet == Alphabet::Unicode);
        };
        let regex = build(&text, steps, builder)
            .map_err(|reason| PatternError { at: 1, reason: format!("PCRE2 rejects it: {reason}") })?;
        Ok(Self {
            regex,
            text,
            steps,
            ascii: OnceLock::new(),
            lines_text,
            lines: OnceLock::new(),
            begins_word: word_behind(tree).is_some(),
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// About the memory that it takes now.
    pub(crate) fn bytes(&self) -> usize {
        let later =
            [&self.ascii, &self.lines].into_iter().filter(|regex| matches!(regex.get(), Some(Some(_))));
        (1 + later.count()) * COMPILED_BYTES + self.text.len() + self.lines_text.len()
    }

    pub(crate) fn is_match(&self, sentence: &[u8]) -> Result<bool, SearchError> {
        let ascii = || self.ascii.get_or_init(|| build(&self.text, self.steps, |_| ()).ok()).as_ref();
        let regex = if sentence.is_ascii() { ascii() } else { None };
        regex.unwrap_or(&self.regex).is_match(sentence).map_err(|reason| self.error(&reason))
    }

    /// The first match at or behind a position.
    pub(crate) fn find_at(&self, sentence: &[u8], at: usize) -> Result<Option<(usize, usize)>, SearchError> {
        let found = self.regex.find_at(sentence, at).map_err(|reason| self.error(&reason))?;
        Ok(found.map(|found| (found.start(), found.end())))
    }

    /// Searches sentences with line feeds between them, and reports the start of a match in each that matches. `skip` receives that
    /// position and returns where the next sentence starts. `None` if this is not possible for the pattern, or a limit was reached:
    /// then try sentences one by one.
    pub(crate) fn scan(&self, text: &[u8], mut skip: impl FnMut(usize) -> usize) -> Option<()> {
        // A grapheme may include a line feed, behind a carriage return.
        let make = || match self.lines_text.contains("\\X") {
            true => None,
            false => build(&self.lines_text, self.steps, |_| ()).ok(),
        };
        let regex = self.lines.get_or_init(make).as_ref().filter(|_| text.is_ascii())?;
        let (mut at, before) = (0, usize::from(self.begins_word));
        if self.begins_word {
            // Before the first sentence there is no character to include.
            let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
            if self.is_match(&text[..end]).ok()? {
                skip(0);
            }
            at = end;
        }
        while at <= text.len() {
            let Some(found) = regex.find_at(text, at).ok()? else { break };
            at = skip(found.start() + before) - before;
        }
        Some(())
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

/// The part behind the start of a word with which a pattern begins; `None` if it does not.
fn word_behind(tree: &Node) -> Option<&[Node]> {
    let Node::Concat(nodes) = tree else { return None };
    let (Node::Anchor(Anchor::WordBoundary), rest) = nodes.split_first()? else { return None };
    begins_with_word(rest.first()?).then_some(rest)
}

/// Whether every match in ASCII text begins with a word character.
fn begins_with_word(node: &Node) -> bool {
    match node {
        Node::Class(class) => predefined('w', Alphabet::Ascii).is_some_and(|word| {
            let mut others = set(&[('\0', '\x7f')]);
            others.intersect(class);
            others.difference(&word);
            others.ranges().is_empty()
        }),
        Node::Repeat { node, least, .. } => *least > 0 && begins_with_word(node),
        Node::Capture { node, .. } | Node::Atomic(node) => begins_with_word(node),
        Node::Concat(nodes) => nodes.first().is_some_and(begins_with_word),
        Node::Either(nodes) => nodes.iter().all(begins_with_word),
        Node::Empty | Node::Anchor(_) | Node::Look { .. } | Node::Again { .. } | Node::Grapheme => false,
    }
}

fn build(text: &str, steps: u32, more: impl FnOnce(&mut RegexBuilder)) -> Result<Regex, pcre2::Error> {
    let mut builder = RegexBuilder::new();
    builder.jit_if_available(true).max_jit_stack_size(Some(STACK_BYTES));
    more(&mut builder);
    // The heap is for patterns that are not compiled to machine code; in KiB.
    builder.build(&format!("(*LIMIT_MATCH={steps})(*LIMIT_HEAP=4096){text}"))
}

fn write(node: &Node, subject: Subject, text: &mut String) {
    match node {
        Node::Empty => text.push_str("(?:)"),
        Node::Class(class) if subject == Subject::Lines => {
            let mut class = class.clone();
            class.intersect(&any());
            // PCRE2 is faster at a class that it knows by name; here it is of ASCII.
            match predefined('w', Alphabet::Ascii).is_some_and(|word| word == class) {
                true => text.push_str("\\w"),
                false => write_class(&class, text),
            }
        }
        Node::Class(class) => write_class(class, text),
        Node::Anchor(place) => text.push_str(match (place, subject) {
            (Anchor::Start, Subject::Sentence) => "\\A",
            (Anchor::End, Subject::Sentence) => "\\z",
            (Anchor::Start, Subject::Lines) => "(?<![^\\n])",
            (Anchor::End, Subject::Lines) => "(?![^\\n])",
            (Anchor::WordBoundary, _) => "\\b",
            (Anchor::NoWordBoundary, _) => "\\B",
        }),
        Node::Repeat { node, least, most, greed } => {
            enclose("(?:", node, subject, text);
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
        Node::Capture { node, .. } => enclose("(", node, subject, text),
        Node::Atomic(node) => enclose("(?>", node, subject, text),
        Node::Look { node, to, want } => {
            let open = match (to, want) {
                (Side::Ahead, Want::There) => "(?=",
                (Side::Ahead, Want::Absent) => "(?!",
                (Side::Behind, Want::There) => "(?<=",
                (Side::Behind, Want::Absent) => "(?<!",
            };
            enclose(open, node, subject, text);
        }
        Node::Again { group, case: Case::Exact } => {
            let _ = write!(text, "\\g{{{group}}}");
        }
        Node::Again { group, .. } => {
            let _ = write!(text, "(?i:\\g{{{group}}})");
        }
        Node::Grapheme => text.push_str("\\X"),
        Node::Concat(nodes) => nodes.iter().for_each(|node| write(node, subject, text)),
        Node::Either(nodes) => {
            for (index, node) in nodes.iter().enumerate() {
                text.push_str(if index == 0 { "(?:" } else { "|" });
                write(node, subject, text);
            }
            text.push(')');
        }
    }
}

fn enclose(open: &str, node: &Node, subject: Subject, text: &mut String) {
    text.push_str(open);
    write(node, subject, text);
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
