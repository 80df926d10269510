//! MD5 of candidates that differ in the first word of the message (RFC 1321), using all that is constant in the
//! problem.
//!
//! The first word is only used in steps 0, 19, 41 and 48. So the steps from 63 down to 49 are run backwards once
//! for each row of candidates. For a single target that continues for every candidate, in few instructions, and
//! both directions meet after step 42 of 63; with several targets they meet after step 45.
//!
//! A `q` is the result of the step of that number.

use super::formula::{Block, Formula, Order};
use crate::lane::Lane;
use crate::vector::{Streams, Vector};

/// An MD5 digest.
pub(crate) type Digest = [u8; 16];

/// The initial state (section 3.3).
const INITIAL: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The constants of the steps (section 3.4).
#[rustfmt::skip]
const K: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];

/// The distance by which step `t` rotates left.
const fn distance(t: usize) -> u32 {
    [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]][t / 16][t % 4]
}

/// The index of the message word that step `t` uses.
const fn word(t: usize) -> usize {
    match t / 16 {
        0 => t,
        1 => (5 * t + 1) % 16,
        2 => (3 * t + 5) % 16,
        _ => 7 * t % 16,
    }
}

/// The targets: for each, the state after the last step.
pub(crate) struct Md5 {
    states: Vec<[u32; 4]>,
}

/// The values that `N` rows of candidates have in common.
pub(crate) struct Rows<const N: usize> {
    /// For each step, the known part of its sum.
    sums: [[u32; N]; 46],
    targets: Meeting<N>,
}

impl<const N: usize> Rows<N> {
    fn new(states: &[[u32; 4]], blocks: &[Block; N]) -> Self {
        let [a, b, c, d] = INITIAL;
        // The part of the initial state in the first steps.
        let early = [a.wrapping_add(b.choose(c, d)), d, c, b];
        let mut sums = [[0; N]; 46];
        for t in 0..46 {
            let known = K[t].wrapping_add(early.get(t).copied().unwrap_or(0));
            for i in 0..N {
                sums[t][i] = known.wrapping_add(blocks[i][word(t)]);
            }
        }
        let targets = if let [state] = *states {
            Meeting::One(Backward::new(state, blocks))
        } else {
            let q45 = |&state: &[u32; 4]| blocks.each_ref().map(|block| after_48(state, block)[3]);
            Meeting::Several(states.iter().map(q45).collect())
        };
        Self { sums, targets }
    }
}

/// The step where computing forwards from the start and backwards from the targets meet.
enum Meeting<const N: usize> {
    One(Backward<N>),
    /// `q45` of each target.
    Several(Vec<[u32; N]>),
}

/// The values from which the last steps are run backwards.
struct Backward<const N: usize> {
    /// The known part of the sum, for steps 46, 47 and 48.
    known: [[u32; N]; 3],
    q45: [u32; N],
    /// `q45 ⊕ q46`.
    q45_q46: [u32; N],
}

impl Formula for Md5 {
    type Digest = Digest;
    const ORDER: Order = Order::LittleEndian;
    type Lanes<V: Vector> = V;
    type Rows<const N: usize> = Rows<N>;

    fn new(targets: &[Digest]) -> Self {
        let state = |digest: &Digest| {
            let (words, _) = digest.as_chunks();
            std::array::from_fn(|i| u32::from_le_bytes(words[i]).wrapping_sub(INITIAL[i]))
        };
        Self { states: targets.iter().map(state).collect() }
    }

    #[inline(always)]
    fn lanes<V: Vector>(first: V) -> V {
        first
    }

    #[inline(always)]
    fn rows<V: Vector, const N: usize>(&self, blocks: &[Block]) -> Vec<Rows<N>> {
        let some = |blocks: &[Block]| std::array::from_fn(|i| blocks[i.min(blocks.len() - 1)]);
        blocks.chunks(N).map(|blocks| Rows::new(&self.states, &some(blocks))).collect()
    }

    #[inline(always)]
    fn any_match<V: Vector, const N: usize>(&self, rows: &Rows<N>, lanes: &V) -> bool {
        // Without this, the compiler makes a vector of each word of a row before the loop over the lanes.
        let rows = std::hint::black_box(rows);
        let first = Streams::all(*lanes);
        let state = State::after_42(&rows.sums, first);
        match &rows.targets {
            Meeting::One(backward) => state.b.any_equal(backward.q42(first)),
            Meeting::Several(targets) => {
                let q45 = state.q45(&rows.sums);
                let mut any = false;
                for target in targets {
                    any |= q45.any_equal(Streams::splat(*target));
                }
                any
            }
        }
    }
}

/// From `q` of step `t` and of the one before, the sum of `q` from four steps before and the function of those
/// between, less the part of the message word that is in the lanes.
fn unstep(t: usize, q: u32, before: u32, block: &Block) -> u32 {
    q.wrapping_sub(before).rotate_right(distance(t)).wrapping_sub(K[t]).wrapping_sub(block[word(t)])
}

/// Reverts the steps 48 to 63 without their function.
fn unstep_with_function(t: usize, [q, x, y, z]: [u32; 4], block: &Block) -> u32 {
    unstep(t, q, x, block).wrapping_sub(y ^ (x | !z))
}

/// The state after step 48, the last `q` first, from that after the last step.
fn after_48([a, b, c, d]: [u32; 4], block: &Block) -> [u32; 4] {
    let back = |q: [u32; 4], t| [q[1], q[2], q[3], unstep_with_function(t, q, block)];
    (49..64).rev().fold([b, c, d, a], back)
}

impl<const N: usize> Backward<N> {
    fn new(state: [u32; 4], blocks: &[Block; N]) -> Self {
        let mut backward = Self { known: [[0; N]; 3], q45: [0; N], q45_q46: [0; N] };
        for (i, block) in blocks.iter().enumerate() {
            let state = after_48(state, block);
            let [_, q47, q46, q45] = state;
            backward.known[0][i] = unstep(46, q46, q45, block);
            backward.known[1][i] = unstep(47, q47, q46, block);
            backward.known[2][i] = unstep_with_function(48, state, block);
            backward.q45[i] = q45;
            backward.q45_q46[i] = q45 ^ q46;
        }
        backward
    }

    /// The value of `q42` for a candidate with the digest.
    #[inline(always)]
    fn q42<V: Vector>(&self, first: Streams<V, N>) -> Streams<V, N> {
        let [known46, known47, known48] = self.known;
        let q44 = Streams::splat(known48).minus(first);
        let q43 = Streams::splat(known47).minus(q44.xor(Streams::splat(self.q45_q46)));
        Streams::splat(known46).minus(Streams::xor3(q43, q44, Streams::splat(self.q45)))
    }
}

/// The four working variables; each step recomputes `b`.
#[derive(Clone, Copy)]
struct State<L> {
    a: L,
    b: L,
    c: L,
    d: L,
}

/// The function of steps 16 to 31.
#[inline(always)]
fn choose_by_last<L: Lane>(b: L, c: L, d: L) -> L {
    d.choose(b, c)
}

/// Steps with these numbers and this function.
macro_rules! steps {
    ($state:expr, $sums:ident, $first:ident, $f:path; $($t:literal)*) => {{
        let state = $state;
        $(
            let sum = state.a.plus_word($sums[$t]);
            let sum = if matches!($t, 19 | 41) { sum.plus($first) } else { sum };
            let sum = sum.plus($f(state.b, state.c, state.d));
            let state = state.step::<{ 32 - distance($t) }>(sum);
        )*
        state
    }};
}

impl<V: Vector, const N: usize> State<Streams<V, N>> {
    /// The state with `q42` as `b`.
    #[inline(always)]
    fn after_42(sums: &[[u32; N]; 46], first: Streams<V, N>) -> Self {
        let state = Self::after_3(sums, first);
        let state = steps!(state, sums, first, Lane::choose; 4 5 6 7 8 9 10 11 12 13 14 15);
        let state = steps!(state, sums, first, choose_by_last;
            16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
        steps!(state, sums, first, Lane::xor3; 32 33 34 35 36 37 38 39 40 41 42)
    }

    #[inline(always)]
    fn q45(self, sums: &[[u32; N]; 46]) -> Streams<V, N> {
        let first = self.b;
        steps!(self, sums, first, Lane::xor3; 43 44 45).b
    }

    /// The first steps, in which much still comes from the initial state and is therefore known.
    #[inline(always)]
    fn after_3(sums: &[[u32; N]; 46], first: Streams<V, N>) -> Self {
        let [b, c] = [Streams::same(INITIAL[1]), Streams::same(INITIAL[2])];
        let start = Self { a: first, b, c: b, d: c };
        let Self { b: q0, .. } = start.step::<{ 32 - distance(0) }>(first.plus_word(sums[0]));
        let state = Self { a: b, b: q0, c: b, d: c };
        let Self { b: q1, .. } = state.step::<{ 32 - distance(1) }>(q0.choose(b, c).plus_word(sums[1]));
        let state = Self { a: b, b: q1, c: q0, d: b };
        let Self { b: q2, .. } = state.step::<{ 32 - distance(2) }>(q1.choose(q0, b).plus_word(sums[2]));
        let state = Self { a: b, b: q2, c: q1, d: q0 };
        state.step::<{ 32 - distance(3) }>(q2.choose(q1, q0).plus_word(sums[3]))
    }

    /// A step that adds `sum`.
    #[inline(always)]
    fn step<const RIGHT: u32>(self, sum: Streams<V, N>) -> Self {
        let Self { b, c, d, .. } = self;
        Self { a: d, b: sum.rotate_right::<RIGHT>().plus(b), c: b, d: c }
    }
}
