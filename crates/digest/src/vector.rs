//! The operations of an instruction set that kernels need, and several vectors computed in parallel.

use crate::lane::Lane;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;

/// The most candidates of any vector.
pub(crate) const MOST_LANES: usize = 16;

/// A register of words, one for each of [`LANES`](Self::LANES) candidates.
pub(crate) trait Vector: Lane<Word = u32> + Send + Sync + 'static {
    /// The number of candidates of a vector.
    const LANES: usize;

    /// The vector of these words, of which there must be [`LANES`](Self::LANES).
    fn of(words: &[u32]) -> Self;

    /// Writes the words; the slice must have [`LANES`](Self::LANES) entries.
    fn write(self, words: &mut [u32]);

    /// `a ⊕ b`.
    fn xor(self, other: Self) -> Self;

    /// The difference, modulo 2³².
    fn minus(self, other: Self) -> Self;

    /// Not 0 if the words of some candidate are the same in both.
    fn equal(self, other: Self) -> u32;

    /// The same vector, but computed after all on which this was called before. Without it, the compiler separates
    /// independent streams and computes one after the other, each waiting for its own results; this keeps them
    /// interleaved.
    #[inline(always)]
    fn in_order(self) -> Self {
        self
    }

    /// Runs a task that is compiled for this instruction set.
    fn run<T: Task>(task: T) -> T::Output;
}

/// A task to compile for an instruction set. All code that handles vectors must be `#[inline(always)]`, and not a
/// closure: code that is compiled separately does not know the instructions, and each of them becomes a call.
pub(crate) trait Task {
    type Output;

    fn run(self) -> Self::Output;
}

/// One candidate at a time.
impl Vector for u32 {
    const LANES: usize = 1;

    fn of(words: &[u32]) -> Self {
        words[0]
    }

    #[inline(always)]
    fn write(self, words: &mut [u32]) {
        words[0] = self;
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    #[inline(always)]
    fn equal(self, other: Self) -> u32 {
        Self::from(self == other)
    }

    fn run<T: Task>(task: T) -> T::Output {
        task.run()
    }
}

/// Applies a function to each of `N` streams. Not a loop: kernels would have thousands of them, and the compiler would
/// spend most of its time on unrolling them.
macro_rules! each {
    ($i:ident in $n:ident $body:block) => { each!($i in $n $body 0 1 2 3 4 5) };
    ($i:ident in $n:ident $body:block $($stream:literal)*) => {
        const { assert!($n <= 6) };
        $(if $stream < $n {
            let $i = $stream;
            $body
        })*
    };
}

/// `N` vectors, up to 6, to which the same operations are applied in turn, so that none has to wait for its own last
/// result. Each has separate constants.
#[derive(Clone, Copy)]
pub(crate) struct Streams<V, const N: usize>(pub(crate) [V; N]);

impl<V: Vector, const N: usize> Streams<V, N> {
    /// The same word for all candidates of all vectors.
    #[inline(always)]
    pub(crate) fn same(word: u32) -> Self {
        Self::all(V::splat(word))
    }

    /// The same vector N times.
    #[inline(always)]
    pub(crate) fn all(vector: V) -> Self {
        Self([vector; N])
    }

    #[inline(always)]
    pub(crate) fn xor(mut self, other: Self) -> Self {
        each!(i in N {
            self.0[i] = self.0[i].xor(other.0[i]);
        });
        self
    }

    #[inline(always)]
    pub(crate) fn minus(mut self, other: Self) -> Self {
        each!(i in N {
            self.0[i] = self.0[i].minus(other.0[i]);
        });
        self
    }

    /// Whether the words of some candidate are the same in both.
    #[inline(always)]
    pub(crate) fn any_equal(self, other: Self) -> bool {
        let mut equal = 0;
        each!(i in N {
            equal |= self.0[i].equal(other.0[i]);
        });
        equal != 0
    }
}

impl<V: Vector, const N: usize> Lane for Streams<V, N> {
    type Word = [u32; N];

    #[inline(always)]
    fn splat(words: [u32; N]) -> Self {
        let mut streams = [V::splat(0); N];
        each!(i in N {
            streams[i] = V::splat(words[i]);
        });
        Self(streams)
    }

    #[inline(always)]
    fn plus(mut self, other: Self) -> Self {
        each!(i in N {
            self.0[i] = self.0[i].plus(other.0[i]).in_order();
        });
        self
    }

    #[inline(always)]
    fn rotate_right<const R: u32>(mut self) -> Self {
        each!(i in N {
            self.0[i] = self.0[i].rotate_right::<R>();
        });
        self
    }

    #[inline(always)]
    fn shift_right<const R: u32>(mut self) -> Self {
        each!(i in N {
            self.0[i] = self.0[i].shift_right::<R>();
        });
        self
    }

    #[inline(always)]
    fn xor3(mut a: Self, b: Self, c: Self) -> Self {
        each!(i in N {
            a.0[i] = V::xor3(a.0[i], b.0[i], c.0[i]);
        });
        a
    }

    #[inline(always)]
    fn choose(mut self, yes: Self, no: Self) -> Self {
        each!(i in N {
            self.0[i] = self.0[i].choose(yes.0[i], no.0[i]);
        });
        self
    }

    #[inline(always)]
    fn majority(mut a: Self, b: Self, c: Self) -> Self {
        each!(i in N {
            a.0[i] = V::majority(a.0[i], b.0[i], c.0[i]);
        });
        a
    }
}
