//! Vectors from bytes, and back.

use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the array is as long as the vector, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store(vector: __m256i, bytes: &mut [u8; 32]) {
    // SAFETY: the array is as long as the vector, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) }
}
