//! SHA-1 of candidates that differ in the first word of the message (FIPS 180-4), using all that is constant in the
//! problem.
//!
//! The expansion of the message is linear over GF(2): each of its words is the exclusive-or of the contribution of
//! the bytes that differ between lanes and of the contribution of the others. The first is computed once for each
//! vector of lanes, the second once for each row of candidates, so that a word costs one instruction instead of
//! four, and none where it does not depend on the first message word.
//!
//! At the other end the rounds are run backwards from the digest. The last of them need words of the expansion,
//! which are available without any rounds: so for a single target both directions meet after 72 of the 80 rounds.
//! With several targets that would be necessary for each, so there they meet after 76.

use super::formula::{Block, Formula, Marked, Order};
use crate::lane::Lane;
use crate::vector::{MOST_LANES, Streams, Vector};

/// A SHA-1 digest.
pub(crate) type Digest = [u8; 20];

/// The initial state (section 5.3.1).
pub(crate) const INITIAL: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// The constant of round `t` (section 4.2.1).
pub(crate) const fn k(t: usize) -> u32 {
    [0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc, 0xca62_c1d6][t / 20]
}

/// Whether each word of the expansion depends on the first word of the message.
const VARIES: [bool; 80] = {
    // By linearity, if and only if the expansion of a first word with one bit does.
    let mut w = [0u32; 80];
    w[0] = 1;
    let mut varies = [false; 80];
    let mut t = 0;
    while t < 80 {
        if t >= 16 {
            w[t] = (w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16]).rotate_left(1);
        }
        varies[t] = w[t] != 0;
        t += 1;
    }
    varies
};

/// The number of words before this one that vary.
const fn place(t: usize) -> usize {
    let mut place = 0;
    let mut before = 0;
    while before < t {
        place += VARIES[before] as usize;
        before += 1;
    }
    place
}

/// The number of words that vary.
const VARYING: usize = place(80);

/// For the first round and each that no lane varies, the part of its sum that is the same for all candidates.
const KNOWN: [u32; 80] = {
    const fn choose(x: u32, yes: u32, no: u32) -> u32 {
        (x & yes) | (!x & no)
    }
    let [a, b, c, d, e] = INITIAL;
    let [ra, rb] = [a.rotate_left(30), b.rotate_left(30)];
    // In the first rounds `e` comes from the initial state, and so do the other known parts.
    let early = [
        e.wrapping_add(a.rotate_left(5)).wrapping_add(choose(b, c, d)),
        d.wrapping_add(choose(a, rb, c)),
        c,
        rb,
        ra,
    ];
    let mut known = [0; 80];
    let mut t = 0;
    while t < 80 {
        if t == 0 || !VARIES[t] {
            known[t] = if t < early.len() { k(t).wrapping_add(early[t]) } else { k(t) };
        }
        t += 1;
    }
    known
};

/// The targets, each represented by a word from within the computation.
pub(crate) enum Sha1 {
    One(Backward),
    /// `a` after 76 rounds, of each target.
    Several(Vec<u32>),
}

/// The words of the expansion, for each row; where no lane varies them, together with the other known parts of
/// their round's sum.
type Rows<const N: usize> = [[u32; N]; 80];

/// The values from which the last rounds are run backwards: see [`Backward::r72`]. The number is that of the rounds
/// after which `a` has this value; `r` is `a` rotated as when it becomes `c`.
pub(crate) struct Backward {
    a76: u32,
    /// `a77 ⊕ r76`.
    a77_r76: u32,
    /// The known part of the sum, for each of the last four rounds.
    known: [u32; 4],
}

/// The next sixteen words of the expansion, from sixteen. Spelled out, they stay in registers.
macro_rules! next_16 {
    ($last:ident; $($t:literal)*) => {
        $(
            let word = V::xor3($last[($t + 13) % 16], $last[($t + 8) % 16], $last[($t + 2) % 16]);
            $last[$t] = word.xor($last[$t]).rotate_right::<31>();
        )*
    };
}

impl Formula for Sha1 {
    type Digest = Digest;
    const ORDER: Order = Order::BigEndian;
    type Lanes<V: Vector> = [V; VARYING];
    type Rows<const N: usize> = Rows<N>;

    fn new(targets: &[Digest]) -> Self {
        match targets {
            [target] => Self::One(Backward::new(state(target))),
            targets => Self::Several(targets.iter().map(mark).collect()),
        }
    }

    #[inline(always)]
    fn lanes<V: Vector>(first: V) -> [V; VARYING] {
        let mut w = [V::splat(0); 80];
        w[0] = first;
        for t in 16..80 {
            w[t] = V::xor3(w[t - 3], w[t - 8], w[t - 14]).xor(w[t - 16]).rotate_right::<31>();
        }
        let mut lanes = [first; VARYING];
        for t in 0..80 {
            if VARIES[t] {
                lanes[place(t)] = w[t];
            }
        }
        lanes
    }

    #[inline(always)]
    fn rows<V: Vector, const N: usize>(&self, blocks: &[Block]) -> Vec<Rows<N>> {
        let mut last = [V::splat(0); 16];
        for t in 0..16 {
            let mut words = [0; MOST_LANES];
            for i in 0..V::LANES {
                words[i] = blocks[i.min(blocks.len() - 1)][t];
            }
            last[t] = V::of(&words[..V::LANES]);
        }
        let mut groups = vec![[[0; N]; 80]; blocks.len().div_ceil(N)];
        // Sixteen at a time, so that the last sixteen stay in registers.
        for (from, known) in (0..80).step_by(16).zip(KNOWN.as_chunks::<16>().0) {
            for t in 0..16 {
                let mut words = [0; MOST_LANES];
                last[t].plus_word(known[t]).write(&mut words[..V::LANES]);
                for (rows, words) in groups.iter_mut().zip(words.as_chunks::<N>().0) {
                    rows[from + t] = *words;
                }
            }
            next_16!(last; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        }
        if let Self::One(backward) = self {
            let known = backward.known[77 - 76].wrapping_add(k(77));
            for rows in &mut groups {
                rows[77] = rows[77].map(|row| known.wrapping_sub(row));
            }
        }
        groups
    }

    #[inline(always)]
    fn any_match<V: Vector, const N: usize>(&self, rows: &Rows<N>, lanes: &[V; VARYING]) -> bool {
        // Without this, the compiler makes a vector of each word of a row before the loop over the lanes.
        let rows = std::hint::black_box(rows);
        let state = State::<Streams<V, N>>::after_72(rows, lanes);
        match self {
            Self::One(backward) => {
                let r72 = backward.r72::<V, N>(rows, lanes);
                state.a.rotate_right::<2>().any_equal(r72)
            }
            Self::Several(targets) => {
                let a76 = state.after_76(rows, lanes);
                let mut any = false;
                for target in targets {
                    any |= a76.any_equal(Streams::same(*target));
                }
                any
            }
        }
    }
}

impl Marked for Sha1 {
    #[inline(always)]
    fn mark<V: Vector, const N: usize>(&self, rows: &Rows<N>, lanes: &[V; VARYING]) -> Streams<V, N> {
        let rows = std::hint::black_box(rows);
        State::<Streams<V, N>>::after_72(rows, lanes).after_76(rows, lanes)
    }
}

/// The state after the last round.
fn state(digest: &Digest) -> [u32; 5] {
    let (words, _) = digest.as_chunks();
    std::array::from_fn(|i| u32::from_be_bytes(words[i]).wrapping_sub(INITIAL[i]))
}

/// `a` after 76 rounds.
pub(crate) fn mark(digest: &Digest) -> u32 {
    state(digest)[4].rotate_left(2)
}

impl Backward {
    /// From the state after the last round.
    fn new([a80, a79, r78, r77, r76]: [u32; 5]) -> Self {
        let [a78, a77, a76] = [r78, r77, r76].map(|r| r.rotate_left(2));
        let minus_k = |t, sum: u32| sum.wrapping_sub(k(t));
        let known = [
            minus_k(76, a77.wrapping_sub(a76.rotate_left(5))),
            minus_k(77, a78.wrapping_sub(a77.rotate_left(5))),
            minus_k(78, a79.wrapping_sub(a78.rotate_left(5))),
            minus_k(79, a80.wrapping_sub(a79.rotate_left(5)).wrapping_sub(u32::xor3(a78, r77, r76))),
        ];
        Self { a76, a77_r76: a77 ^ r76, known }
    }

    /// The rotated value of `a` after 72 rounds for a candidate with the digest: each of the last rounds determines
    /// `a` from five rounds before.
    #[inline(always)]
    fn r72<V: Vector, const N: usize>(&self, rows: &Rows<N>, lanes: &[V; VARYING]) -> Streams<V, N> {
        let [known76, _, known78, known79] = self.known;
        let r75 = Streams::same(known79).minus(word::<79, V, N>(rows, lanes));
        let r74 = Streams::same(known78)
            .minus(Streams::same(self.a77_r76).xor(r75))
            .minus(word::<78, V, N>(rows, lanes));
        let r73 = Streams::splat(rows[77]).minus(Streams::xor3(r75, r74, Streams::same(self.a76)));
        let a75 = r75.rotate_right::<30>();
        Streams::same(known76).minus(Streams::xor3(a75, r74, r73)).minus(word::<76, V, N>(rows, lanes))
    }
}

/// Word `T` of the expansion, which lanes vary.
#[inline(always)]
fn word<const T: usize, V: Vector, const N: usize>(rows: &Rows<N>, lanes: &[V; VARYING]) -> Streams<V, N> {
    Streams::all(lanes[const { place(T) }]).xor(Streams::splat(rows[T]))
}

/// The five working variables (section 6.1.2).
#[derive(Clone, Copy)]
struct State<L> {
    a: L,
    b: L,
    c: L,
    d: L,
    e: L,
}

/// Rounds with these numbers and this function.
macro_rules! rounds {
    ($state:expr, $rows:ident, $lanes:ident, $f:path; $($t:literal)*) => {{
        let state = $state;
        $(let state = state.round::<$t>($rows, $lanes, $f(state.b, state.c, state.d));)*
        state
    }};
}

impl<V: Vector, const N: usize> State<Streams<V, N>> {
    #[inline(always)]
    fn after_72(rows: &Rows<N>, lanes: &[V; VARYING]) -> Self {
        let state = Self::after_5(rows, lanes);
        let state = rounds!(state, rows, lanes, Lane::choose; 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);
        let state = rounds!(state, rows, lanes, Lane::xor3;
            20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39);
        let state = rounds!(state, rows, lanes, Lane::majority;
            40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59);
        rounds!(state, rows, lanes, Lane::xor3; 60 61 62 63 64 65 66 67 68 69 70 71)
    }

    /// `a` after four rounds more.
    #[inline(always)]
    fn after_76(self, rows: &Rows<N>, lanes: &[V; VARYING]) -> Streams<V, N> {
        rounds!(self, rows, lanes, Lane::xor3; 72 73 74 75).a
    }

    /// The first rounds, in which much still comes from the initial state and is therefore known.
    #[inline(always)]
    fn after_5(rows: &Rows<N>, lanes: &[V; VARYING]) -> Self {
        let r_initial = Streams::same(INITIAL[0].rotate_left(30));
        let rr_initial = Streams::same(INITIAL[1].rotate_left(30));
        let a1 = Streams::all(lanes[0]).plus_word(rows[0]);
        let a2 = a1.rotate_right::<27>().plus_word(rows[1]);
        let a3 = a2.rotate_right::<27>().plus(a1.choose(r_initial, rr_initial)).plus_word(rows[2]);
        let r1 = a1.rotate_right::<2>();
        let a4 = a3.rotate_right::<27>().plus(a2.choose(r1, r_initial)).plus_word(rows[3]);
        let r2 = a2.rotate_right::<2>();
        let a5 = a4.rotate_right::<27>().plus(a3.choose(r2, r1)).plus_word(rows[4]);
        Self { a: a5, b: a4, c: a3.rotate_right::<2>(), d: r2, e: r1 }
    }

    /// Round `T`, in which `f` is the function of `b`, `c` and `d`.
    #[inline(always)]
    fn round<const T: usize>(self, rows: &Rows<N>, lanes: &[V; VARYING], f: Streams<V, N>) -> Self {
        let Self { a, b, c, d, e } = self;
        let sum = if const { VARIES[T] } {
            e.plus_word([const { k(T) }; N]).plus(word::<T, V, N>(rows, lanes))
        } else {
            e.plus_word(rows[T])
        };
        let sum = sum.plus(f).plus(a.rotate_right::<27>());
        Self { a: sum, b: a, c: b.rotate_right::<2>(), d: c, e: d }
    }
}
