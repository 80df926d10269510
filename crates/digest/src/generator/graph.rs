//! A formula as a graph: recorded by running the formula over symbols instead of numbers.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::lane::Lane;

/// A value of the graph, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Value(pub(crate) usize);

/// Memory that a kernel reads but never writes while it runs the formula once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// A word that is the same for all candidates.
    Word(Address),
    /// A whole vector, a word for each candidate.
    Vector(Address),
}

/// A place in memory: bytes beyond what a general register points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) base: &'static str,
    pub(crate) offset: usize,
}

/// How a value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// Reads memory. Takes no vector slot, and is repeated rather than kept in a register.
    Read(Source),
    /// The value one turn of the loop later.
    Copy,
    Add,
    RotateRight(u32),
    ShiftRight(u32),
    Xor3,
    Choose,
    Majority,
}

impl Op {
    /// The result for one candidate.
    #[cfg(test)]
    pub(crate) fn of(self, x: &[u32]) -> u32 {
        match self {
            Self::Read(_) => unreachable!("memory is read, not computed"),
            Self::Copy => x[0],
            Self::Add => x[0].wrapping_add(x[1]),
            Self::RotateRight(n) => x[0].rotate_right(n),
            Self::ShiftRight(n) => x[0] >> n,
            Self::Xor3 => u32::xor3(x[0], x[1], x[2]),
            Self::Choose => x[0].choose(x[1], x[2]),
            Self::Majority => u32::majority(x[0], x[1], x[2]),
        }
    }

    /// Whether the operation needs one of the units that shift.
    pub(crate) fn shifts(self) -> bool {
        matches!(self, Self::RotateRight(_) | Self::ShiftRight(_))
    }

    /// Whether the result overwrites one of the operands.
    pub(crate) fn overwrites_an_operand(self) -> bool {
        matches!(self, Self::Xor3 | Self::Choose | Self::Majority)
    }

    fn commutes(self) -> bool {
        matches!(self, Self::Add | Self::Xor3 | Self::Majority)
    }
}

/// One step of the formula.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) op: Op,
    pub(crate) arguments: Vec<Value>,
}

/// The steps of a formula, each after those it needs, without duplicates. The last one is the result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    known: HashMap<Node, Value>,
}

impl Graph {
    pub(crate) fn op(&self, value: Value) -> Op {
        self.nodes[value.0].op
    }

    pub(crate) fn arguments(&self, value: Value) -> &[Value] {
        &self.nodes[value.0].arguments
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = Value> + use<> {
        (0..self.nodes.len()).map(Value)
    }

    /// Whether the value is only read from memory.
    pub(crate) fn is_read(&self, value: Value) -> bool {
        matches!(self.op(value), Op::Read(_))
    }

    /// The number of operations that take a vector slot.
    #[cfg(test)]
    pub(crate) fn operations(&self) -> usize {
        self.nodes.iter().filter(|node| !matches!(node.op, Op::Read(_) | Op::Copy)).count()
    }

    /// Adds a step, unless it exists.
    pub(crate) fn add(&mut self, op: Op, mut arguments: Vec<Value>) -> Value {
        if op.commutes() {
            arguments.sort_unstable();
        }
        let node = Node { op, arguments };
        *self.known.entry(node).or_insert_with_key(|node| {
            self.nodes.push(node.clone());
            Value(self.nodes.len() - 1)
        })
    }

    /// The same graph without the steps that the last one does not need.
    fn trimmed(&self) -> Self {
        let mut needed = vec![false; self.nodes.len()];
        *needed.last_mut().expect("a formula has a result") = true;
        for index in (0..needed.len()).rev() {
            if needed[index] {
                self.nodes[index].arguments.iter().for_each(|argument| needed[argument.0] = true);
            }
        }
        let mut graph = Self::default();
        let mut new = vec![None; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().filter(|(index, _)| needed[*index]) {
            let arguments = node.arguments.iter().map(|argument| new[argument.0].expect("it comes before"));
            new[index] = Some(graph.add(node.op, arguments.collect()));
        }
        graph
    }
}

/// A value of the graph that is being recorded on this thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol(Value);

thread_local! {
    static RECORDING: RefCell<Graph> = RefCell::default();
}

/// Records a formula as a graph.
pub(crate) fn record(formula: impl FnOnce() -> Symbol) -> Graph {
    RECORDING.take();
    let Symbol(result) = formula();
    let mut graph = RECORDING.take();
    graph.nodes.truncate(result.0 + 1);
    graph.trimmed()
}

impl Symbol {
    /// A symbol for a word that is read from memory.
    pub(crate) fn read(source: Source) -> Self {
        Self::step(Op::Read(source), &[])
    }

    fn step(op: Op, arguments: &[Self]) -> Self {
        let arguments = arguments.iter().map(|symbol| symbol.0).collect();
        Self(RECORDING.with_borrow_mut(|graph| graph.add(op, arguments)))
    }
}

impl Lane for Symbol {
    type Word = Address;

    fn splat(word: Address) -> Self {
        Self::read(Source::Word(word))
    }

    fn plus(self, other: Self) -> Self {
        Self::step(Op::Add, &[self, other])
    }

    fn rotate_right<const N: u32>(self) -> Self {
        Self::step(Op::RotateRight(N), &[self])
    }

    fn shift_right<const N: u32>(self) -> Self {
        Self::step(Op::ShiftRight(N), &[self])
    }

    fn xor3(a: Self, b: Self, c: Self) -> Self {
        Self::step(Op::Xor3, &[a, b, c])
    }

    fn choose(self, yes: Self, no: Self) -> Self {
        Self::step(Op::Choose, &[self, yes, no])
    }

    fn majority(a: Self, b: Self, c: Self) -> Self {
        Self::step(Op::Majority, &[a, b, c])
    }
}
