//! SHA-256 of one 64-bit integer (FIPS 180-4), using all that is constant in the problem.
//!
//! The message is 8 bytes, so of the 16 words of its block only the first two are unknown, and of these the
//! second (the upper half of the integer) stays the same for 2³² candidates. Everything that follows from the
//! constant words alone is computed once for those 2³² and kept in a [`Block`]. At the other end, the digest
//! determines the last seven rounds' states backwards as far as `a` after round 57 of 64, so comparing that one
//! word rejects a candidate, and rounds 58 to 64 are never computed.

use crate::lane::Lane;

/// The initial state (section 5.3.3).
pub(crate) const INITIAL: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The round constants (section 4.2.2).
#[rustfmt::skip]
pub(crate) const K: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// The third word of the message block: the one bit that ends the message (section 5.1.1).
pub(crate) const END_BIT: u32 = 0x8000_0000;
/// The length of the message in bits, which is word 15 of the message block.
pub(crate) const LENGTH: u32 = 64;

/// The values that all candidates with the same upper 32 bits share. Kernels in machine code access the words by
/// their offset.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Block<Word> {
    /// The initial state.
    pub(crate) initial: [Word; 8],
    /// The addends from which the first round computes `a` and `e`, given the first message word.
    pub(crate) first: [Word; 2],
    /// For rounds 1 to 3 (from 0), what makes `e` where `k` makes `a`: `d` is in it. Entry 0 is unused.
    pub(crate) early: [Word; 4],
    /// For each round, the part of its sum that does not depend on the candidate. Entry 0 is unused.
    pub(crate) k: [Word; 57],
    /// For the words of the message schedule, the part that does not depend on the candidate, where there is one;
    /// otherwise unused, or 0 for short messages.
    pub(crate) w: [Word; 38],
}

impl Block<u32> {
    /// The block of candidates with these upper 32 bits.
    pub(crate) fn new(upper: u32) -> Self {
        let mut message = [0; 16];
        [message[1], message[2], message[15]] = [upper.swap_bytes(), END_BIT, LENGTH];
        Self::of(&message)
    }

    /// The block of messages that only differ in what is added to the first word.
    pub(crate) fn of(message: &[u32; 16]) -> Self {
        let [a, b, c, d, e, f, g, h] = INITIAL;
        let t1 = h.plus(big1(e)).plus(e.choose(f, g)).plus(K[0]).plus(message[0]);
        let first = [t1.plus(big0(a)).plus(u32::majority(a, b, c)), d.plus(t1)];

        let mut k: [u32; 57] = std::array::from_fn(|t| K[t].plus(*message.get(t).unwrap_or(&0)));
        // `h` and `d` of rounds 1 to 3 are words of the initial state.
        k[1] = k[1].plus(g);
        k[2] = k[2].plus(f);
        k[3] = k[3].plus(e);
        let early = [0, k[1].plus(c), k[2].plus(b), k[3].plus(a)];
        // `h` of round 4 is `e` after the first round.
        k[4] = k[4].plus(first[1]);

        // The three words of the schedule that do not depend on the first message word.
        let sum = |t: usize| message[t].plus(small0(message[t + 1]));
        let w17 = small1(message[15]).plus(message[10]).plus(sum(1));
        let w19 = small1(w17).plus(message[12]).plus(sum(3));
        let w21 = small1(w19).plus(message[14]).plus(sum(5));
        for (t, word) in [(17, w17), (19, w19), (21, w21)] {
            k[t] = k[t].plus(word);
        }
        let mut w = [0; 38];
        w[16] = small1(message[14]).plus(message[9]).plus(sum(0));
        w[18] = message[11].plus(sum(2));
        w[20] = message[13].plus(sum(4));
        w[22] = message[15].plus(sum(6));
        w[23] = small1(w21).plus(sum(7));
        w[24] = w17.plus(sum(8));
        w[25] = sum(9);
        w[26] = w19.plus(sum(10));
        w[27] = sum(11);
        w[28] = w21.plus(sum(12));
        w[29] = sum(13);
        w[30] = sum(14);
        w[31] = message[15];
        w[32] = small0(w17);
        w[33] = w17;
        w[34] = small0(w19);
        w[35] = w19;
        w[36] = small0(w21);
        w[37] = w21;
        Self { initial: INITIAL, first, early, k, w }
    }
}

/// The word that is compared with the targets: `a` after 57 rounds, less the constant of the last of them.
/// `first` is the first word of the message, the candidate's lower 32 bits in the order of the message's bytes.
#[inline(always)]
pub(crate) fn residue<L: Lane>(block: &Block<L::Word>, first: L) -> L {
    residue_of::<L, 4>(block, first)
}

/// The residue of messages of which only the first `WORDS` words, a multiple of 4, and the last are not 0.
#[inline(always)]
pub(crate) fn residue_of<L: Lane, const WORDS: usize>(block: &Block<L::Word>, first: L) -> L {
    let Block { k, w, .. } = block;
    let state = first_rounds(block, first);

    macro_rules! rounds {
        ($state:expr; $($t:literal $word:expr),* $(,)?) => {{
            let state = $state;
            $(let state = state.round(state.h.plus_word(k[$t]).plus($word));)*
            state
        }};
    }
    // The words to which other messages contribute nothing.
    macro_rules! with_rest {
        ($word:expr, $t:literal) => {
            if WORDS > 4 { $word.plus_word(w[$t]) } else { $word }
        };
    }

    let w16 = first.plus_word(w[16]);
    let state = rounds!(state; 16 w16);
    let state = state.round(state.h.plus_word(k[17]));
    let w18 = small1(w16).plus_word(w[18]);
    let state = rounds!(state; 18 w18);
    let state = state.round(state.h.plus_word(k[19]));
    let w20 = with_rest!(small1(w18), 20);
    let state = rounds!(state; 20 w20);
    let state = state.round(state.h.plus_word(k[21]));
    let w22 = small1(w20).plus_word(w[22]);
    let w23 = w16.plus_word(w[23]);
    let w24 = small1(w22).plus_word(w[24]);
    let w25 = with_rest!(small1(w23).plus(w18), 25);
    let w26 = small1(w24).plus_word(w[26]);
    let w27 = with_rest!(small1(w25).plus(w20), 27);
    let w28 = small1(w26).plus_word(w[28]);
    let w29 = with_rest!(small1(w27).plus(w22), 29);
    let w30 = small1(w28).plus(w23).plus_word(w[30]);
    let state = rounds!(state; 22 w22, 23 w23, 24 w24, 25 w25, 26 w26, 27 w27, 28 w28, 29 w29, 30 w30);
    let w31 = small1(w29).plus(w24).plus(small0(w16)).plus_word(w[31]);
    let w32 = small1(w30).plus(w25).plus(w16).plus_word(w[32]);
    let w33 = small1(w31).plus(w26).plus(small0(w18)).plus_word(w[33]);
    let w34 = small1(w32).plus(w27).plus(w18).plus_word(w[34]);
    let w35 = small1(w33).plus(w28).plus(small0(w20)).plus_word(w[35]);
    let w36 = small1(w34).plus(w29).plus(w20).plus_word(w[36]);
    let w37 = small1(w35).plus(w30).plus(small0(w22)).plus_word(w[37]);
    let state = rounds!(state; 31 w31, 32 w32, 33 w33, 34 w34, 35 w35, 36 w36, 37 w37);

    macro_rules! expand {
        ($state:ident; $($t:literal $new:ident = $w2:ident $w7:ident $w15:ident $w16:ident),* $(,)?) => {
            $(
                let $new = small1($w2).plus($w7).plus(small0($w15)).plus($w16);
                let $state = $state.round($state.h.plus_word(k[$t]).plus($new));
            )*
        };
    }
    expand!(state;
        38 w38 = w36 w31 w23 w22, 39 w39 = w37 w32 w24 w23, 40 w40 = w38 w33 w25 w24, 41 w41 = w39 w34 w26 w25,
        42 w42 = w40 w35 w27 w26, 43 w43 = w41 w36 w28 w27, 44 w44 = w42 w37 w29 w28, 45 w45 = w43 w38 w30 w29,
        46 w46 = w44 w39 w31 w30, 47 w47 = w45 w40 w32 w31, 48 w48 = w46 w41 w33 w32, 49 w49 = w47 w42 w34 w33,
        50 w50 = w48 w43 w35 w34, 51 w51 = w49 w44 w36 w35, 52 w52 = w50 w45 w37 w36, 53 w53 = w51 w46 w38 w37,
        54 w54 = w52 w47 w39 w38, 55 w55 = w53 w48 w40 w39,
    );
    let w56 = small1(w54).plus(w49).plus(small0(w41)).plus(w40);
    // The last round only needs `a`, and its constant is in the target.
    state.round(state.h.plus(w56)).a
}

/// Rounds 0 to 15, whose message words are constant except the first.
#[inline(always)]
fn first_rounds<L: Lane>(block: &Block<L::Word>, first: L) -> State<L> {
    let Block { initial, first: [make_a, make_e], early, k, .. } = block;
    let [a0, b0] = [L::splat(initial[0]), L::splat(initial[1])];
    let [e0, f0] = [L::splat(initial[4]), L::splat(initial[5])];
    let a1 = first.plus_word(*make_a);
    let e1 = first.plus_word(*make_e);

    // Not a closure: it would be compiled separately, without vectors.
    macro_rules! early_round {
        ($t:literal, $a:expr, $b:expr, $c:expr, $e:expr, $f:expr, $g:expr) => {{
            let sum = big1($e).plus($e.choose($f, $g));
            let first = sum.plus_word(k[$t]).plus(big0($a).plus(L::majority($a, $b, $c)));
            (first, sum.plus_word(early[$t]))
        }};
    }
    let (a2, e2) = early_round!(1, a1, a0, b0, e1, e0, f0);
    let (a3, e3) = early_round!(2, a2, a1, a0, e2, e1, e0);
    let (a4, e4) = early_round!(3, a3, a2, a1, e3, e2, e1);

    let state = State { a: a4, b: a3, c: a2, d: a1, e: e4, f: e3, g: e2, h: first };
    // Written out: the compiler may keep a loop, and then moves all variables in each turn.
    macro_rules! rounds {
        ($($t:literal)*) => {{
            $(let state = state.round(state.h.plus_word(k[$t]));)*
            state
        }};
    }
    rounds!(4 5 6 7 8 9 10 11 12 13 14 15)
}

/// The eight working variables (section 6.2.2).
#[derive(Clone, Copy)]
struct State<L> {
    a: L,
    b: L,
    c: L,
    d: L,
    e: L,
    f: L,
    g: L,
    h: L,
}

impl<L: Lane> State<L> {
    /// One round; `sum` is `h` with the round's constant and message word.
    #[inline(always)]
    fn round(self, sum: L) -> Self {
        let Self { a, b, c, d, e, f, g, .. } = self;
        let t1 = sum.plus(e.choose(f, g)).plus(big1(e));
        let t2 = big0(a).plus(L::majority(a, b, c));
        Self { a: t1.plus(t2), b: a, c: b, d: c, e: d.plus(t1), f: e, g: f, h: g }
    }
}

/// The value of [`residue`] for every candidate with this digest: the rounds are run backwards, which only needs
/// the message for the words that are not used here.
pub(crate) fn wanted(digest: &[u8; 32]) -> u32 {
    let (words, _) = digest.as_chunks();
    let state: [u32; 8] = std::array::from_fn(|i| u32::from_be_bytes(words[i]).wrapping_sub(INITIAL[i]));
    // After round 64; one round back, `a` is dropped at the front and an older one appears at the end.
    let [mut a, mut e] = [[state[0], state[1], state[2], state[3]], [state[4], state[5], state[6], state[7]]];
    for _ in 0..4 {
        let t1 = a[0].wrapping_sub(big0(a[1])).wrapping_sub(u32::majority(a[1], a[2], a[3]));
        let before = e[0].wrapping_sub(t1);
        a = [a[1], a[2], a[3], before];
        e = [e[1], e[2], e[3], 0];
    }
    a[3].wrapping_sub(K[56])
}

#[inline(always)]
fn big0<L: Lane>(x: L) -> L {
    L::xor3(x.rotate_right::<2>(), x.rotate_right::<13>(), x.rotate_right::<22>())
}

#[inline(always)]
fn big1<L: Lane>(x: L) -> L {
    L::xor3(x.rotate_right::<6>(), x.rotate_right::<11>(), x.rotate_right::<25>())
}

#[inline(always)]
fn small0<L: Lane>(x: L) -> L {
    L::xor3(x.rotate_right::<7>(), x.rotate_right::<18>(), x.shift_right::<3>())
}

#[inline(always)]
fn small1<L: Lane>(x: L) -> L {
    L::xor3(x.rotate_right::<17>(), x.rotate_right::<19>(), x.shift_right::<10>())
}
