//! Removes parts of a pattern that do not change which sentences match it.
//!
//! A sentence matches where it *contains* the pattern, so a part at either end that may be empty can go, and a part at an end
//! that may repeat more often than it must, repeats as often as it must. `(.*)X(.*)` for the whole sentence becomes X
//! anywhere: forty times as fast to find.

use regex_syntax::hir::ClassUnicode;

use super::class::{negated, terminators};
use super::regular::any;
use super::tree::{Anchor, Node};

/// A pattern that stands for the whole sentence.
pub(crate) fn whole(tree: Node) -> Node {
    Node::Concat(vec![Node::Anchor(Anchor::Start), tree, Node::Anchor(Anchor::End)])
}

pub(crate) struct Short {
    pub(crate) tree: Node,
    /// Whether a `.*` that had to reach an end of the sentence was removed: where `.` stops somewhere, that was wrong.
    pub(crate) dot_matters: bool,
}

pub(crate) fn abridge(tree: &Node) -> Short {
    let mut nodes = std::collections::VecDeque::new();
    flatten(tree, &mut |node| nodes.push_back(node.clone()));
    let mut dot_matters = false;
    loop {
        let fixed = nodes.front() == Some(&Node::Anchor(Anchor::Start));
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
        let fixed = nodes.back() == Some(&Node::Anchor(Anchor::End));
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

/// Yields the parts of a sequence, through nested groups.
fn flatten(node: &Node, add: &mut impl FnMut(&Node)) {
    match node {
        Node::Concat(nodes) => nodes.iter().for_each(|node| flatten(node, add)),
        Node::Capture { node, .. } => flatten(node, add),
        Node::Empty => {}
        node => add(node),
    }
}

/// The effect of a part at an end.
enum Edge {
    /// None. If it is a `.*`, it requires that there is no line terminator.
    Nothing { dot: bool },
    /// Only this part of the node.
    Less(Node),
    /// The whole part.
    All,
}

/// For a part at an end, or next to the mark of an end of the sentence.
fn edge(node: &Node, fixed: bool) -> Edge {
    match node {
        Node::Repeat { node, least: 0, most: None, .. } if fixed => match unwrapped(node) {
            Node::Class(class) if *class == negated(terminators()) => Edge::Nothing { dot: true },
            Node::Class(class) if is_any(class) => Edge::Nothing { dot: false },
            _ => Edge::All,
        },
        _ if fixed => Edge::All,
        Node::Repeat { least: 0, .. } => Edge::Nothing { dot: false },
        // A part that is repeated must mean the same at every position.
        Node::Repeat { node, least, most, greed } if *most != Some(*least) && is_free_of_places(node) => {
            Edge::Less(Node::Repeat { node: node.clone(), least: *least, most: Some(*least), greed: *greed })
        }
        _ => Edge::All,
    }
}

/// Whether a class contains every character of sentences.
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
        Node::Anchor(_) | Node::Atomic(_) | Node::Look { .. } | Node::Again { .. } | Node::Grapheme => false,
    }
}
