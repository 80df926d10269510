//! Vectors from bytes and back, and a transposition.

use std::arch::x86_64::{
    __m512i, _mm256_storeu_si256, _mm512_castsi512_si256, _mm512_loadu_si512, _mm512_mask_storeu_epi8,
    _mm512_maskz_loadu_epi8, _mm512_shuffle_i64x2, _mm512_storeu_si512, _mm512_xor_si512,
};

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the array is as long as the vector, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(vector: __m512i, bytes: &mut [u8; 64]) {
    // SAFETY: the array is as long as the vector, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), vector) };
}

/// A vector of eight numbers.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn numbers(numbers: &[u64; 8]) -> __m512i {
    // SAFETY: as for `load`.
    unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
}

/// The first half of a vector.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn first_half(vector: __m512i) -> [u8; 32] {
    let mut bytes = [0; 32];
    // SAFETY: the array is as long as half a vector, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), _mm512_castsi512_si256(vector)) };
    bytes
}

/// The eight numbers of a vector.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn to_numbers(vector: __m512i) -> [u64; 8] {
    let mut numbers = [0; 8];
    // SAFETY: the array is as long as the vector, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), vector) };
    numbers
}

/// Applies 64 bytes of key stream to the beginning of a text, or fewer where it is shorter.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn xor_into(text: &mut [u8], stream: __m512i) {
    if let Some(whole) = text.first_chunk_mut() {
        store(_mm512_xor_si512(load(whole), stream), whole);
        return;
    }
    let bytes = (1 << text.len()) - 1;
    // SAFETY: the mask has no bit for a byte beyond the text, and what it leaves out is neither read nor written.
    unsafe {
        let old = _mm512_maskz_loadu_epi8(bytes, text.as_ptr().cast());
        _mm512_mask_storeu_epi8(text.as_mut_ptr().cast(), bytes, _mm512_xor_si512(old, stream));
    }
}

/// Four vectors of four quarters become four vectors of the first, second, third and fourth quarters.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transposed([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (even_ab, even_cd) = (_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0x88>(c, d));
    let (odd_ab, odd_cd) = (_mm512_shuffle_i64x2::<0xdd>(a, b), _mm512_shuffle_i64x2::<0xdd>(c, d));
    [
        _mm512_shuffle_i64x2::<0x88>(even_ab, even_cd),
        _mm512_shuffle_i64x2::<0x88>(odd_ab, odd_cd),
        _mm512_shuffle_i64x2::<0xdd>(even_ab, even_cd),
        _mm512_shuffle_i64x2::<0xdd>(odd_ab, odd_cd),
    ]
}
