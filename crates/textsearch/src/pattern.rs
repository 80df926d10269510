//! Patterns in Java's syntax, and the forms in which they run.
//!
//! [`parse`] reads Java's syntax into a [`tree`]; [`rewrite`] removes parts that cannot change whether a sentence matches;
//! [`regular`] converts the tree for automata, and [`perl`] for PCRE2 where automata are not possible. The first of these steps
//! resolves flags, quotes, names and classes, so the others know none of Java's syntax.
//!
//! Differences from Java: `$` and `\Z` are the end of the sentence only, never before a last carriage return or the like; `(?m)`
//! changes nothing, since a sentence is one line; `\b` is of ASCII words, as from JDK 19 on. There are no captures.

mod bracket;
mod class;
mod escape;
pub(crate) mod parse;
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

/// A parsed pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// What a sentence must contain. If there is `perl`, this is necessary but not sufficient.
    pub(crate) contains: Hir,
    /// The same before any rewriting: what a match consists of.
    pub(crate) entire: Hir,
    /// Whether `.*` was removed. In sentences in which `.` stops somewhere, `entire` decides.
    pub(crate) dot_matters: bool,
    /// The pattern that decides in the end, where automata cannot.
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
                    "{} does not run in time proportional to the text; remove it, or allow backtracking",
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
            // A parsed pattern has no line feed, so this equals no other canonical form.
            Err(_) => format!("\n{:?} {:?} {text}", semantics.matching, semantics.alphabet),
        };
        Ok(Self { contains, entire, dot_matters, perl, canonical: canonical.into() })
    }
}

/// A text of limited length: a Unicode class that is written out a thousand times takes megabytes.
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
