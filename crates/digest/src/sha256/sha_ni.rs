//! The kernel for the SHA extensions of x86-64, several candidates interleaved.
//!
//! `sha256rnds2` does two rounds, `sha256msg1` and `sha256msg2` four words of the schedule. The first round is two
//! additions, so the instructions do rounds 1 to 56: 28 times two, on the words from the second one on, of which
//! the first fifteen are constant. The unit begins one `sha256rnds2` every second cycle, and each takes four, so
//! more than one candidate must be under way; more than two hide the rest.

#![allow(unsafe_code, reason = "vector instructions")]

use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_cmpeq_epi32, _mm_movemask_epi8, _mm_or_si128,
    _mm_set1_epi32, _mm_setr_epi32, _mm_setzero_si128, _mm_sha256msg1_epu32, _mm_sha256msg2_epu32,
    _mm_sha256rnds2_epu32, _mm_shuffle_epi32, _mm_sub_epi32, _mm_unpackhi_epi32, _mm_unpackhi_epi64,
};

use super::formula::{Block, END_BIT, INITIAL, K, LENGTH};
use super::sweep::{GROUP, Sweep};
use crate::engine::Engine;

/// Candidates that are computed at the same time.
pub(crate) const STREAMS: usize = 6;

/// See [`Kernel`](super::sweep::Kernel).
///
/// # Panics
/// Panics on a processor without the SHA extensions.
pub(crate) fn sweep(sweep: &Sweep<'_>) -> u32 {
    assert!(Engine::ShaNi.is_available(), "this processor cannot run the sha-ni engine");
    // SAFETY: the processor has the instructions.
    unsafe { sweep_streams(sweep) }
}

#[target_feature(enable = "sha,sse4.1,ssse3")]
fn sweep_streams(sweep: &Sweep<'_>) -> u32 {
    let second = sweep.block.k[1].wrapping_sub(K[1]).wrapping_sub(INITIAL[6]);
    let uniform = Uniform::new(&message(second));
    let group = |at: u64| (at / u64::from(GROUP)) as u32;
    for at in (0..u64::from(sweep.groups) * u64::from(GROUP)).step_by(STREAMS) {
        if sweep.interrupt.is_raised() {
            return group(at);
        }
        let lower = |i: usize| sweep.from.wrapping_add((at as u32).wrapping_add(i as u32));
        let judged = run(&uniform, std::array::from_fn(|i| lower(i).swap_bytes()));
        if let Some(stream) = first_match(judged, sweep.wanted) {
            // The last streams may lie beyond the end.
            return group(at + stream).min(sweep.groups);
        }
    }
    sweep.groups
}

/// A vector for each stream.
pub(crate) type Streams = [__m128i; STREAMS];

/// The message of an integer, without its first word.
fn message(second: u32) -> [u32; 16] {
    let mut message = [0; 16];
    [message[1], message[2], message[15]] = [second, END_BIT, LENGTH];
    message
}

/// The values that all candidates of a block share.
pub(crate) struct Uniform {
    /// `c`, `d`, `g` and `h` after the first round.
    cdgh: __m128i,
    /// `a`, `b`, `e` and `f` after the first round, less the first message word in `a` and `e`.
    abef: __m128i,
    /// The words with their constants for rounds 1 to 12.
    constant: [__m128i; 3],
    /// Words 13 to 16, less the first message word in the last.
    w13: __m128i,
    /// The part of words 17 to 20 that comes from words 1 to 13.
    part17: __m128i,
    /// The part of words 21 to 24 that comes from words 5 to 13.
    part21: __m128i,
    /// The part of words 25 to 28 that comes from words 9 to 13.
    part25: __m128i,
}

impl Uniform {
    /// The values for messages that only differ in what is added to the first word.
    #[target_feature(enable = "sha,sse4.1,ssse3")]
    pub(crate) fn new(message: &[u32; 16]) -> Self {
        let words = |words: [u32; 4]| {
            let [a, b, c, d] = words.map(u32::cast_signed);
            _mm_setr_epi32(a, b, c, d)
        };
        let four = |from: usize| words([0, 1, 2, 3].map(|i| message[from + i]));
        let [a, b, c, _, e, f, g, _] = INITIAL;
        let block = Block::of(message);
        let [first_a, first_e] = block.first;
        let w13 = words([message[13], message[14], message[15], block.w[16]]);
        Self {
            cdgh: words([g, f, c, b]),
            abef: words([e, first_e, a, first_a]),
            constant: [1, 5, 9].map(|round| _mm_add_epi32(four(round), constants(round))),
            w13,
            part17: _mm_add_epi32(_mm_sha256msg1_epu32(four(1), four(5)), four(10)),
            part21: _mm_sha256msg1_epu32(four(5), four(9)),
            part25: _mm_sha256msg1_epu32(four(9), w13),
        }
    }
}

/// The constants of four rounds.
#[target_feature(enable = "sse2")]
fn constants(round: usize) -> __m128i {
    let [a, b, c, d] = std::array::from_fn(|i| K[round + i].cast_signed());
    _mm_setr_epi32(a, b, c, d)
}

/// `a` after 57 rounds in the uppermost word, for candidates with these first message words.
#[target_feature(enable = "sha,sse4.1,ssse3")]
pub(crate) fn run(uniform: &Uniform, first: [u32; STREAMS]) -> Streams {
    let Uniform { cdgh, abef, constant, w13, part17, part21, part25 } = uniform;
    let first = first.map(u32::cast_signed);
    let mut abef = each(|i| _mm_add_epi32(*abef, _mm_setr_epi32(0, first[i], 0, first[i])));
    let mut cdgh = [*cdgh; STREAMS];
    let mut rounds = |words: Streams| {
        cdgh = each(|i| _mm_sha256rnds2_epu32(cdgh[i], abef[i], words[i]));
        abef = each(|i| _mm_sha256rnds2_epu32(abef[i], cdgh[i], _mm_shuffle_epi32::<0b1110>(words[i])));
    };
    let with_constants = |words: &Streams, round| each(|i| _mm_add_epi32(words[i], constants(round)));
    // The words 7 positions back.
    let back7 = |before: &Streams, last: &Streams, i: usize| _mm_alignr_epi8::<4>(last[i], before[i]);

    for words in constant {
        rounds([*words; STREAMS]);
    }
    let w13 = each(|i| _mm_add_epi32(*w13, _mm_setr_epi32(0, 0, 0, first[i])));
    rounds(with_constants(&w13, 13));
    let w17 = each(|i| _mm_sha256msg2_epu32(*part17, w13[i]));
    rounds(with_constants(&w17, 17));
    let w21 = each(|i| _mm_sha256msg2_epu32(_mm_add_epi32(*part21, back7(&w13, &w17, i)), w17[i]));
    rounds(with_constants(&w21, 21));
    let w25 = each(|i| _mm_sha256msg2_epu32(_mm_add_epi32(*part25, back7(&w17, &w21, i)), w21[i]));
    rounds(with_constants(&w25, 25));
    macro_rules! expand {
        ($($round:literal $new:ident = $back16:ident $back12:ident $back8:ident $back4:ident),* $(,)?) => {$(
            let $new = each(|i| {
                let sum = _mm_add_epi32(_mm_sha256msg1_epu32($back16[i], $back12[i]), back7(&$back8, &$back4, i));
                _mm_sha256msg2_epu32(sum, $back4[i])
            });
            rounds(with_constants(&$new, $round));
        )*};
    }
    expand!(
        29 w29 = w13 w17 w21 w25, 33 w33 = w17 w21 w25 w29, 37 w37 = w21 w25 w29 w33, 41 w41 = w25 w29 w33 w37,
        45 w45 = w29 w33 w37 w41, 49 w49 = w33 w37 w41 w45, 53 w53 = w37 w41 w45 w49,
    );
    abef
}

/// A vector for each stream.
#[inline(always)]
fn each(stream: impl FnMut(usize) -> __m128i) -> Streams {
    std::array::from_fn(stream)
}

/// The first stream with a match.
#[target_feature(enable = "sse4.1")]
pub(crate) fn first_match(abef: Streams, wanted: &[u32]) -> Option<u64> {
    let a_of = |[p, q, r, s]: [usize; 4]| {
        let pairs = [[p, q], [r, s]].map(|[x, y]| _mm_unpackhi_epi32(abef[x], abef[y]));
        _mm_sub_epi32(_mm_unpackhi_epi64(pairs[0], pairs[1]), _mm_set1_epi32(K[56].cast_signed()))
    };
    let judged = [a_of([0, 1, 2, 3]), a_of([4, 5, 4, 5])];
    let none = _mm_setzero_si128();
    let equal = wanted.iter().fold([none; 2], |equal, wanted| {
        let wanted = _mm_set1_epi32(wanted.cast_signed());
        [0, 1].map(|i| _mm_or_si128(equal[i], _mm_cmpeq_epi32(judged[i], wanted)))
    });
    let [low, high] = equal.map(|equal| u64::from(_mm_movemask_epi8(equal).cast_unsigned()));
    let bytes = low | high << 16;
    (bytes != 0).then(|| u64::from(bytes.trailing_zeros() / 4))
}
