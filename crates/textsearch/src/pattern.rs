//! Patterns as Java writes them, and what is run in their place.
//!
//! [`parse`] reads Java's syntax into a [`tree`]; [`rewrite`] leaves off what cannot change whether a sentence matches; [`regular`]
//! makes of the tree what automata run, and [`perl`] what PCRE2 runs where automata cannot. Flags, quotes, names and classes are
//! resolved by the first of these steps, so the others know none of Java's syntax.
//!
//! Not Java's: `$` and `\Z` are the end of the sentence only, never before a last carriage return or the like; `(?m)` changes
//! nothing, since a sentence is one line; `\b` is of ASCII words, as from JDK 19 on. No captures are given out.

mod bracket;
mod class;
mod escape;
mod parse;
mod perl;
mod reader;
mod regular;
mod rewrite;
mod tree;

use std::fmt::{self, Write as _};

use regex_syntax::hir::Hir;

pub(crate) use perl::Perl;

use crate::error::PatternError;
use crate::semantics::{Backtracking, Matching, Semantics};

/// A pattern that was read.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// What a sentence must contain. Where there is `perl`, that is necessary only.
    pub(crate) contains: Hir,
    /// The same before anything was left off: what a match takes.
    pub(crate) entire: Hir,
    /// Whether `.*` was left off. In sentences in which `.` stops somewhere, what is entire counts.
    pub(crate) dot_matters: bool,
    /// What decides in the end, where automata cannot.
    pub(crate) perl: Option<Perl>,
    /// The same text for patterns that mean the same after rewriting.
    pub(crate) canonical: std::sync::Arc<str>,
}

impl Pattern {
    pub(crate) fn parse(text: &str, semantics: &Semantics) -> Result<Self, PatternError> {
        if text.len() > semantics.pattern_bytes {
            let reason = format!("it is longer than {} bytes", semantics.pattern_bytes);
            return Err(PatternError { at: semantics.pattern_bytes + 1, reason });
        }
        let parsed = parse::parse(text, semantics.alphabet)?;
        let steps = match (&parsed.irregular, semantics.backtracking) {
            (None, _) => None,
            (Some(_), Backtracking::Within { steps }) => Some(steps),
            (Some(irregular), Backtracking::Refuse) => {
                let reason = format!(
                    "{} cannot be done in a time proportional to the text; write it without, or allow backtracking",
                    irregular.what
                );
                return Err(PatternError { at: irregular.at, reason });
            }
        };
        let tree = match semantics.matching {
            Matching::Find => parsed.tree,
            Matching::Whole => rewrite::whole(parsed.tree),
        };
        let perl = steps.map(|steps| Perl::new(&tree, semantics.alphabet, steps)).transpose()?;
        let short = rewrite::abridge(&tree);
        let contains = regular::hir(&short.tree, semantics.alphabet);
        let entire = regular::hir(&tree, semantics.alphabet);
        let dot_matters = short.dot_matters && perl.is_none();
        let mut canonical = Short(String::new());
        let mut written = write!(canonical, "{contains}");
        if dot_matters {
            written = written.and_then(|()| write!(canonical, "\n{entire}"));
        }
        if let Some(perl) = &perl {
            written = written.and_then(|()| write!(canonical, "\n{}", perl.text()));
        }
        let canonical = match written {
            Ok(()) => canonical.0,
            // Patterns have no line feeds once they were read, so this is no other's form.
            Err(_) => format!("\n{:?} {:?} {text}", semantics.matching, semantics.alphabet),
        };
        Ok(Self { contains, entire, dot_matters, perl, canonical: canonical.into() })
    }
}

/// A text that does not become long: a class of Unicode that is written out a thousand times is megabytes.
struct Short(String);

impl fmt::Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        const MOST_BYTES: usize = 16 << 10;
        if self.0.len() + more.len() > MOST_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}
