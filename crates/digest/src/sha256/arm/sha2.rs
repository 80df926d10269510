//! The SHA-256 kernel of the SHA-2 extension.
//!
//! Its instructions do four rounds of one candidate, or compute four words of its message schedule. Round 0 is two
//! sums, so the groups of four begin at round 1, and the last of them ends with the round whose `a` is the
//! residue.

use std::arch::aarch64::{
    uint32x4_t, vaddq_u32, vdupq_n_u32, vextq_u32, vreinterpretq_u32_u64, vreinterpretq_u64_u32,
    vsetq_lane_u32, vsha256h2q_u32, vsha256hq_u32, vsha256su0q_u32, vsha256su1q_u32, vzip1q_u32, vzip1q_u64,
};
use std::arch::is_aarch64_feature_detected;
use std::array;

use super::super::formula::{Block, END_BIT, INITIAL, K, LENGTH};
use super::super::sweep::Sweep;
use super::{LANES, STEP, vector};

/// See [`Kernel`](crate::sha256::sweep::Kernel).
///
/// # Panics
/// Panics where the processor has no such extension.
pub(crate) fn sweep(sweep: &Sweep<'_>) -> u32 {
    assert!(is_aarch64_feature_detected!("sha2"), "this processor lacks the SHA-2 extension");
    // SAFETY: it has it.
    #[expect(unsafe_code, reason = "the compiler cannot know what was detected")]
    unsafe {
        sweep_detected(sweep)
    }
}

#[target_feature(enable = "sha2")]
fn sweep_detected(sweep: &Sweep<'_>) -> u32 {
    let common = Common::new(sweep.block);
    super::sweep(sweep, |first| [common.residues(first)])
}

/// The values that the candidates of a block have in common.
struct Common {
    /// The working variables after round 0, less the first message word in the first of each four.
    state: State,
    /// The constants of rounds 1 to 4, 5 to 8, and so on; words 1 to 4 of the message are in the first.
    k: [uint32x4_t; 14],
    /// Words 13 to 16 of the message schedule, less the first message word in the last.
    w13: uint32x4_t,
    /// The part of words 17 to 20 that comes from words 1 to 8.
    part17: uint32x4_t,
}

impl Common {
    #[target_feature(enable = "sha2")]
    fn new(block: &Block<u32>) -> Self {
        let [a, b, c, _, e, f, g, _] = INITIAL;
        let [first_a, first_e] = block.first;
        // The constant of round 1 has its message word and `h` in it.
        let w1 = vector([block.k[1].wrapping_sub(K[1]).wrapping_sub(g), END_BIT, 0, 0]);
        let mut k = array::from_fn(|i| vector(array::from_fn(|lane| K[1 + 4 * i + lane])));
        k[0] = vaddq_u32(k[0], w1);
        // That of the last round is in the target.
        k[13] = vsetq_lane_u32::<3>(0, k[13]);
        Self {
            state: State { abcd: vector([first_a, a, b, c]), efgh: vector([first_e, e, f, g]) },
            k,
            w13: vector([0, 0, LENGTH, block.w[16]]),
            part17: vsha256su0q_u32(w1, vdupq_n_u32(0)),
        }
    }

    /// The residues of consecutive candidates, from the first message word of the first. They are computed in
    /// parallel because the latency of each instruction is longer than its throughput.
    #[inline]
    #[target_feature(enable = "sha2")]
    fn residues(&self, first: u32) -> uint32x4_t {
        let zero = vdupq_n_u32(0);
        let mut streams: [Stream; LANES as usize] = array::from_fn(|lane| {
            let first = vsetq_lane_u32::<0>(first + lane as u32 * STEP, zero);
            let w13 = vaddq_u32(self.w13, vextq_u32::<1>(zero, first));
            Stream { state: self.state.plus(first), words: [zero, zero, zero, w13] }
        });
        for k in &self.k[..3] {
            for stream in &mut streams {
                stream.state.do_rounds(*k);
            }
        }
        for stream in &mut streams {
            stream.state.do_rounds(vaddq_u32(stream.words[3], self.k[3]));
        }
        for (part, k) in [self.part17, zero, zero].iter().zip(&self.k[4..7]) {
            for stream in &mut streams {
                stream.advance(*part, *k);
            }
        }
        for k in &self.k[7..] {
            for stream in &mut streams {
                stream.advance(vsha256su0q_u32(stream.words[0], stream.words[1]), *k);
            }
        }
        let [w, x, y, z] = streams.map(|stream| stream.state.abcd);
        let [wx, yz] = [(w, x), (y, z)].map(|(l, r)| vreinterpretq_u64_u32(vzip1q_u32(l, r)));
        vreinterpretq_u32_u64(vzip1q_u64(wx, yz))
    }
}

/// A candidate in the middle of its rounds.
struct Stream {
    state: State,
    /// The last sixteen words of its message schedule.
    words: [uint32x4_t; 4],
}

impl Stream {
    /// Computes the next four words, where `part` is the contribution of the older half of the last sixteen, and
    /// does their rounds.
    #[inline]
    #[target_feature(enable = "sha2")]
    fn advance(&mut self, part: uint32x4_t, k: uint32x4_t) {
        let [_, w4, w8, w12] = self.words;
        let w16 = vsha256su1q_u32(part, w8, w12);
        self.words = [w4, w8, w12, w16];
        self.state.do_rounds(vaddq_u32(w16, k));
    }
}

/// The working variables of a candidate.
#[derive(Clone, Copy)]
struct State {
    abcd: uint32x4_t,
    efgh: uint32x4_t,
}

impl State {
    /// The sum of both `a` and `e` with the first message word, which is all that `first` is.
    #[inline]
    #[target_feature(enable = "sha2")]
    fn plus(self, first: uint32x4_t) -> Self {
        Self { abcd: vaddq_u32(self.abcd, first), efgh: vaddq_u32(self.efgh, first) }
    }

    /// Four rounds; `sum` is their constants with their message words.
    #[inline]
    #[target_feature(enable = "sha2")]
    fn do_rounds(&mut self, sum: uint32x4_t) {
        let Self { abcd, efgh } = *self;
        self.abcd = vsha256hq_u32(abcd, efgh, sum);
        self.efgh = vsha256h2q_u32(efgh, abcd, sum);
    }
}
