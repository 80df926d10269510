//! What can be left off a pattern without changing which sentences match it.
//!
//! A sentence matches where it *contains* what the pattern says, so what may be empty says nothing at either end, and what may
//! come more often than it must, comes as often as it must. `(.*)X(.*)` for the whole sentence is X somewhere: forty times as
//! fast to find.

use regex_syntax::hir::ClassUnicode;

use super::class::{negated, terminators};
use super::regular::any;
use super::tree::{Node, Place};

/// A pattern that stands for the whole sentence.
pub(crate) fn whole(tree: Node) -> Node {
    Node::Concat(vec![Node::Place(Place::Start), tree, Node::Place(Place::End)])
}

pub(crate) struct Short {
    pub(crate) tree: Node,
    /// A `.*` that had to reach an end of the sentence was left off: where `.` stops somewhere, that was wrong.
    pub(crate) dot_matters: bool,
}

pub(crate) fn abridge(tree: &Node) -> Short {
    let mut nodes = std::collections::VecDeque::new();
    flatten(tree, &mut |node| nodes.push_back(node.clone()));
    let mut dot_matters = false;
    loop {
        let fixed = nodes.front() == Some(&Node::Place(Place::Start));
        match nodes.get(usize::from(fixed)).map(|node| edge(node, fixed)) {
            Some(Edge::Nothing { dot }) => {
                nodes.drain(..=usize::from(fixed));
                dot_matters |= dot && fixed;
            }
            Some(Edge::Less(less)) if nodes[0] != less => nodes[0] = less,
            _ => break,
        }
    }
    loop {
        let fixed = nodes.back() == Some(&Node::Place(Place::End));
        let Some(at) = nodes.len().checked_sub(1 + usize::from(fixed)) else { break };
        match edge(&nodes[at], fixed) {
            Edge::Nothing { dot } => {
                nodes.truncate(at);
                dot_matters |= dot && fixed;
            }
            Edge::Less(less) if nodes[at] != less => nodes[at] = less,
            _ => break,
        }
    }
    Short { tree: Node::concat(nodes.into()), dot_matters }
}

/// Hands out what stands one after the other, whatever groups it stands in.
fn flatten(node: &Node, add: &mut impl FnMut(&Node)) {
    match node {
        Node::Concat(nodes) => nodes.iter().for_each(|node| flatten(node, add)),
        Node::Capture { node, .. } => flatten(node, add),
        Node::Empty => {}
        node => add(node),
    }
}

/// What a part at an end says.
enum Edge {
    /// Nothing. If it is a `.*`, it says that there is no terminator of lines.
    Nothing { dot: bool },
    /// No more than this.
    Less(Node),
    /// All that it says.
    All,
}

/// Of a part at an end, or next to the mark of an end of the sentence.
fn edge(node: &Node, fixed: bool) -> Edge {
    match node {
        Node::Repeat { node, least: 0, most: None, .. } if fixed => match unwrapped(node) {
            Node::Class(class) if *class == negated(terminators()) => Edge::Nothing { dot: true },
            Node::Class(class) if is_any(class) => Edge::Nothing { dot: false },
            _ => Edge::All,
        },
        _ if fixed => Edge::All,
        Node::Repeat { least: 0, .. } => Edge::Nothing { dot: false },
        // What is repeated must look the same wherever it stands.
        Node::Repeat { node, least, most, greed } if *most != Some(*least) && is_free_of_places(node) => {
            Edge::Less(Node::Repeat { node: node.clone(), least: *least, most: Some(*least), greed: *greed })
        }
        _ => Edge::All,
    }
}

/// Whether a class has all that a sentence can have.
fn is_any(class: &ClassUnicode) -> bool {
    let mut of_sentences = class.clone();
    of_sentences.intersect(&any());
    of_sentences == any()
}

fn unwrapped(node: &Node) -> &Node {
    match node {
        Node::Capture { node, .. } => unwrapped(node),
        node => node,
    }
}

fn is_free_of_places(node: &Node) -> bool {
    match node {
        Node::Empty | Node::Class(_) => true,
        Node::Repeat { node, .. } | Node::Capture { node, .. } => is_free_of_places(node),
        Node::Concat(nodes) | Node::Either(nodes) => nodes.iter().all(is_free_of_places),
        Node::Place(_) | Node::Atomic(_) | Node::Look { .. } | Node::Again { .. } | Node::Grapheme => false,
    }
}
