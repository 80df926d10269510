//! The form for automata. Where they cannot express a pattern, this is what every match must at least contain.
//!
//! No sentence has line feeds, so all classes exclude them: then no match reaches into the next sentence, and one search
//! covers millions of them.

use std::collections::HashMap;

use regex_syntax::hir::{Class, ClassUnicode, Hir, Look, Repetition};

use super::class::{negated, set};
use super::tree::{Anchor, Greed, Node};
use crate::semantics::Alphabet;

/// The most parts that replace back-references, in total.
const MOST_COPIES: usize = 1000;

/// Any character of a sentence.
pub(crate) fn any() -> ClassUnicode {
    negated(set(&[('\n', '\n')]))
}

pub(crate) fn hir(tree: &Node, alphabet: Alphabet) -> Hir {
    let mut maker = Maker { alphabet, groups: HashMap::new(), copies: 0 };
    maker.note_groups(tree);
    maker.hir(tree)
}

struct Maker<'a> {
    alphabet: Alphabet,
    groups: HashMap<u32, &'a Node>,
    copies: usize,
}

impl<'a> Maker<'a> {
    fn note_groups(&mut self, node: &'a Node) {
        match node {
            Node::Capture { node, number } => {
                self.groups.insert(*number, node);
                self.note_groups(node);
            }
            Node::Repeat { node, .. } | Node::Atomic(node) | Node::Look { node, .. } => {
                self.note_groups(node)
            }
            Node::Concat(nodes) | Node::Either(nodes) => nodes.iter().for_each(|node| self.note_groups(node)),
            Node::Empty | Node::Class(_) | Node::Anchor(_) | Node::Again { .. } | Node::Grapheme => {}
        }
    }

    fn hir(&mut self, node: &Node) -> Hir {
        self.copies += 1;
        match node {
            Node::Empty | Node::Look { .. } => Hir::empty(),
            Node::Class(class) => {
                let mut class = class.clone();
                class.intersect(&any());
                Hir::class(Class::Unicode(class))
            }
            Node::Anchor(place) => Hir::look(match (place, self.alphabet) {
                (Anchor::Start, _) => Look::StartLF,
                (Anchor::End, _) => Look::EndLF,
                (Anchor::WordBoundary, Alphabet::Ascii) => Look::WordAscii,
                (Anchor::WordBoundary, Alphabet::Unicode) => Look::WordUnicode,
                (Anchor::NoWordBoundary, Alphabet::Ascii) => Look::WordAsciiNegate,
                (Anchor::NoWordBoundary, Alphabet::Unicode) => Look::WordUnicodeNegate,
            }),
            Node::Repeat { node, least, most, greed } => {
                let sub = Box::new(self.hir(node));
                Hir::repetition(Repetition { min: *least, max: *most, greedy: *greed != Greed::Lazy, sub })
            }
            Node::Capture { node, .. } | Node::Atomic(node) => self.hir(node),
            Node::Again { group, case } => self.again(*group, *case),
            Node::Grapheme => repeated(1),
            Node::Concat(nodes) => Hir::concat(nodes.iter().map(|node| self.hir(node)).collect()),
            Node::Either(nodes) => Hir::alternation(nodes.iter().map(|node| self.hir(node)).collect()),
        }
    }

    /// A back-reference repeats something that the group can match, in any case of letters.
    fn again(&mut self, group: u32, case: super::tree::Case) -> Hir {
        match self.groups.remove(&group) {
            // Positions within the group need not hold where its text is repeated.
            Some(node) if self.copies < MOST_COPIES && case == super::tree::Case::Exact && is_text(node) => {
                let hir = self.hir(node);
                self.groups.insert(group, node);
                hir
            }
            Some(node) => {
                self.groups.insert(group, node);
                repeated(0)
            }
            // It refers to itself.
            None => repeated(0),
        }
    }
}

/// This many characters or more.
fn repeated(min: u32) -> Hir {
    let sub = Box::new(Hir::class(Class::Unicode(any())));
    Hir::repetition(Repetition { min, max: None, greedy: true, sub })
}

fn is_text(node: &Node) -> bool {
    match node {
        Node::Empty | Node::Class(_) => true,
        Node::Repeat { node, .. } | Node::Capture { node, .. } | Node::Atomic(node) => is_text(node),
        Node::Concat(nodes) | Node::Either(nodes) => nodes.iter().all(is_text),
        Node::Anchor(_) | Node::Look { .. } | Node::Again { .. } | Node::Grapheme => false,
    }
}
