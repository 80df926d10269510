//! Iterates over the candidates of a mask: rows of those that only differ in their first bytes, vectors within rows.

use std::marker::PhantomData;

use super::formula::{Block, Formula, Marked, Order};
use super::mask::{Mask, ROW_CANDIDATES};
use crate::interrupt::Interrupt;
use crate::vector::{MOST_LANES, Task, Vector};

/// The cost of a row besides its vectors, in vectors: for the choice of the length of rows.
const ROW_COST: f64 = 1.0;
/// The most bytes of the table of vectors, which should fit the second-level cache of a core.
const TABLE_BYTES: usize = 256 << 10;

/// A kernel with the targets and the table of the first positions of a mask.
pub(super) trait Kernel: Send + Sync {
    /// The number of candidates of a row.
    fn row_length(&self) -> u64;

    /// The number of candidates of a vector.
    fn lanes(&self) -> usize;

    /// The number of vectors of a row.
    fn vectors(&self) -> usize;

    /// The number of rows that go through the vectors together.
    fn streams(&self) -> usize;

    /// The number of rows that make a sweep.
    fn rows(&self) -> usize;

    /// The blocks of the rows from this one on.
    fn blocks<'a>(&self, mask: &'a Mask, row: u64) -> Blocks<'a>;

    /// Tests the candidates in these rows, of which there is at least one and at most as many as make a sweep. A
    /// step is one vector of each row that is processed together; the rows after them follow when all vectors are
    /// done. Begins with `step`, and returns the first step that it has not tested in full without a match: it stops
    /// at one with a candidate that matches, and at any once it sees the interrupt raised. A match is not yet a
    /// find: one in 2³² other candidates matches for each target.
    fn sweep(&self, rows: &[Block], step: usize, interrupt: &Interrupt) -> usize;
}

/// The kernel of a digest on an instruction set, which takes `N` rows together.
struct Table<V: Vector, F: Formula, const N: usize> {
    formula: F,
    /// The number of positions, the first of the mask's order, that differ within a row.
    positions: usize,
    row_length: usize,
    lanes: Vec<F::Lanes<V>>,
}

/// See [`Table`].
pub(super) fn kernel<V: Vector, F: Formula, const N: usize>(
    mask: &Mask,
    targets: &[F::Digest],
) -> Box<dyn Kernel> {
    Box::new(table::<V, F, N>(mask, targets))
}

fn table<V: Vector, F: Formula, const N: usize>(mask: &Mask, targets: &[F::Digest]) -> Table<V, F, N> {
    let positions = row_positions(mask, V::LANES, size_of::<F::Lanes<V>>());
    let firsts = first_words(mask, positions, F::ORDER);
    let lanes = V::run(Build::<V, F> { firsts: &firsts, kind: PhantomData });
    Table { formula: F::new(targets), positions, row_length: firsts.len(), lanes }
}

impl<V: Vector, F: Formula, const N: usize> Kernel for Table<V, F, N> {
    fn row_length(&self) -> u64 {
        self.row_length as u64
    }

    fn lanes(&self) -> usize {
        V::LANES
    }

    fn vectors(&self) -> usize {
        self.lanes.len()
    }

    fn streams(&self) -> usize {
        N
    }

    fn rows(&self) -> usize {
        // As many as are prepared at the same time.
        N * (V::LANES / N).max(1)
    }

    fn blocks<'a>(&self, mask: &'a Mask, row: u64) -> Blocks<'a> {
        Blocks::new(mask, self.positions, row, F::ORDER)
    }

    fn sweep(&self, rows: &[Block], step: usize, interrupt: &Interrupt) -> usize {
        V::run(Sweep { table: self, rows, step, interrupt })
    }
}

/// See [`Kernel::sweep`].
struct Sweep<'a, V: Vector, F: Formula, const N: usize> {
    table: &'a Table<V, F, N>,
    rows: &'a [Block],
    step: usize,
    interrupt: &'a Interrupt,
}

impl<V: Vector, F: Formula, const N: usize> Task for Sweep<'_, V, F, N> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Self { table: Table { formula, lanes, .. }, rows, step, interrupt } = self;
        let groups = formula.rows::<V, N>(rows);
        let vectors = lanes.len();
        let [first, mut from] = [step / vectors, step % vectors];
        for (group, rows) in groups.iter().enumerate().skip(first) {
            for (vector, lanes) in lanes.iter().enumerate().skip(from) {
                if interrupt.is_raised() || formula.any_match(rows, lanes) {
                    return group * vectors + vector;
                }
            }
            from = 0;
        }
        groups.len() * vectors
    }
}

/// A kernel that computes for each candidate a word that is a function of its digest.
pub(super) trait Marking: Kernel {
    /// Appends the marks of the candidates of these rows, of which there is at least one and at most as many as make
    /// a sweep, to `marks`.
    fn mark(&self, rows: &[Block], marks: &mut Vec<u32>);
}

/// A kernel like [`kernel`], which has no targets.
pub(super) fn marking<V: Vector, F: Marked, const N: usize>(mask: &Mask) -> Box<dyn Marking> {
    Box::new(table::<V, F, N>(mask, &[]))
}

impl<V: Vector, F: Marked, const N: usize> Marking for Table<V, F, N> {
    fn mark(&self, rows: &[Block], marks: &mut Vec<u32>) {
        let start = marks.len();
        marks.resize(start + rows.len() * self.row_length, 0);
        V::run(Mark { table: self, rows, marks: &mut marks[start..] });
    }
}

/// See [`Marking::mark`].
struct Mark<'a, V: Vector, F: Formula, const N: usize> {
    table: &'a Table<V, F, N>,
    rows: &'a [Block],
    /// Capacity for the marks of all candidates.
    marks: &'a mut [u32],
}

impl<V: Vector, F: Marked, const N: usize> Task for Mark<'_, V, F, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { table: Table { formula, lanes, row_length, .. }, rows, marks } = self;
        let groups = formula.rows::<V, N>(rows);
        for (rows, marks) in groups.iter().zip(marks.chunks_mut(N * row_length)) {
            for (vector, lanes) in lanes.iter().enumerate() {
                let streams = formula.mark(rows, lanes);
                for (stream, marks) in streams.0.iter().zip(marks.chunks_mut(*row_length)) {
                    let mut words = [0; MOST_LANES];
                    stream.write(&mut words[..V::LANES]);
                    let marks = &mut marks[vector * V::LANES..];
                    let count = marks.len().min(V::LANES);
                    marks[..count].copy_from_slice(&words[..count]);
                }
            }
        }
    }
}

/// The number of fastest-varying positions that should differ within a row.
pub(super) fn row_positions(mask: &Mask, lanes: usize, bytes_per_vector: usize) -> usize {
    let efficiency = |positions: &usize| {
        let candidates = row_length(mask, *positions);
        let vectors = candidates.div_ceil(lanes);
        let fits = candidates <= ROW_CANDIDATES && vectors * bytes_per_vector <= TABLE_BYTES;
        if fits { candidates as f64 / ((vectors as f64 + ROW_COST) * lanes as f64) } else { 0.0 }
    };
    let positions = (1..=mask.fast()).max_by(|a, b| efficiency(a).total_cmp(&efficiency(b)));
    positions.expect("a mask has a position")
}

/// The number of candidates that only differ in this many of the fastest-varying positions.
fn row_length(mask: &Mask, positions: usize) -> usize {
    mask.order()[..positions].iter().map(|&position| mask.charsets()[position].len()).product()
}

/// The first words of the candidates of a row, without the bytes that are the same for all.
pub(super) fn first_words(mask: &Mask, positions: usize, order: Order) -> Vec<u32> {
    mask.order()[..positions].iter().fold(vec![0], |words, &position| {
        let shift = order.shift(position);
        let with = |&byte: &u8| words.iter().map(move |word| word | u32::from(byte) << shift);
        mask.charsets()[position].iter().flat_map(with).collect()
    })
}

/// Computes the table of a row.
struct Build<'a, V, F> {
    firsts: &'a [u32],
    kind: PhantomData<(V, F)>,
}

impl<V: Vector, F: Formula> Task for Build<'_, V, F> {
    type Output = Vec<F::Lanes<V>>;

    #[inline(always)]
    fn run(self) -> Vec<F::Lanes<V>> {
        let mut table = Vec::with_capacity(self.firsts.len().div_ceil(V::LANES));
        for firsts in self.firsts.chunks(V::LANES) {
            // In the last vector, the last candidate is tested more than once.
            let mut words = [0; MOST_LANES];
            for (i, word) in words[..V::LANES].iter_mut().enumerate() {
                *word = firsts[i.min(firsts.len() - 1)];
            }
            table.push(F::lanes(V::of(&words[..V::LANES])));
        }
        table
    }
}

/// The blocks of one row after the other, without the bytes that differ within a row.
pub(super) struct Blocks<'a> {
    charsets: &'a [Vec<u8>],
    /// The positions that differ between rows, from the one that varies fastest.
    positions: &'a [usize],
    /// The index in its charset of each byte at these positions.
    digits: Vec<usize>,
    block: Block,
    order: Order,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(mask: &'a Mask, within: usize, row: u64, order: Order) -> Self {
        let charsets = mask.charsets();
        let positions = &mask.order()[within..];
        let block = order.empty_block(charsets.len());
        let mut blocks = Self { charsets, positions, digits: Vec::new(), block, order };
        let mut rest = row;
        for &position in positions {
            let charset = &charsets[position];
            let digit = (rest % charset.len() as u64) as usize;
            rest /= charset.len() as u64;
            blocks.digits.push(digit);
            blocks.change(position, charset[digit]);
        }
        blocks
    }

    /// The block of this row; then advances to the next.
    pub(super) fn next(&mut self) -> Block {
        let block = self.block;
        for (i, &position) in self.positions.iter().enumerate() {
            let charset = &self.charsets[position];
            let before = charset[self.digits[i]];
            let last = self.digits[i] + 1 == charset.len();
            self.digits[i] = if last { 0 } else { self.digits[i] + 1 };
            self.change(position, before ^ charset[self.digits[i]]);
            if !last {
                break;
            }
        }
        block
    }

    /// Changes these bits of a byte.
    fn change(&mut self, position: usize, bits: u8) {
        self.block[position / 4] ^= u32::from(bits) << self.order.shift(position);
    }
}
