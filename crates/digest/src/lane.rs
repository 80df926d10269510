//! The data type of a kernel: words of 32 bits, one or many at a time.
//!
//! The formulas of each digest are written once, over this trait, and each instruction set implements it. A
//! lane need not hold numbers: the generators of machine code implement it by recording the instruction.

/// A vector of 32-bit words, one for each candidate that is computed at the same time.
pub(crate) trait Lane: Copy {
    /// A word that is the same for all candidates.
    type Word: Copy;

    /// The same word for all candidates.
    fn splat(word: Self::Word) -> Self;

    /// The sum, modulo 2³².
    fn plus(self, other: Self) -> Self;

    /// The sum with a word that is the same for all candidates, modulo 2³².
    #[inline(always)]
    fn plus_word(self, word: Self::Word) -> Self {
        self.plus(Self::splat(word))
    }

    /// Each word rotated right by `N` bits.
    fn rotate_right<const N: u32>(self) -> Self;

    /// Each word shifted right by `N` bits, zeros moving in.
    fn shift_right<const N: u32>(self) -> Self;

    /// `a ⊕ b ⊕ c`.
    fn xor3(a: Self, b: Self, c: Self) -> Self;

    /// The bits of `yes` where those of `self` are set, and those of `no` elsewhere.
    fn choose(self, yes: Self, no: Self) -> Self;

    /// Each bit as in the majority of the three.
    fn majority(a: Self, b: Self, c: Self) -> Self;
}

/// One candidate at a time.
impl Lane for u32 {
    type Word = Self;

    #[inline(always)]
    fn splat(word: Self) -> Self {
        word
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn rotate_right<const N: u32>(self) -> Self {
        self.rotate_right(N)
    }

    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        self >> N
    }

    #[inline(always)]
    fn xor3(a: Self, b: Self, c: Self) -> Self {
        a ^ b ^ c
    }

    #[inline(always)]
    fn choose(self, yes: Self, no: Self) -> Self {
        no ^ (self & (yes ^ no))
    }

    #[inline(always)]
    fn majority(a: Self, b: Self, c: Self) -> Self {
        (a & b) | (c & (a | b))
    }
}
