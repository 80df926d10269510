//! The kernels for batches, and which of them this processor runs fastest.

mod avx2;
mod avx512;
mod lanes;
mod poly1305;
mod salsa20;

use self::avx2::Avx2;
use self::avx512::Avx512;
use super::Batch;
#[cfg(test)]
use crate::TAG;

/// Packets that a kernel computes side by side.
const LANES: usize = 8;

/// A cipher that computes the packets of a batch side by side. A value shows that this processor can run it.
#[derive(Clone, Copy, Debug)]
pub struct Kernel(Instructions);

#[derive(Clone, Copy, Debug)]
enum Instructions {
    Avx512(Avx512),
    Avx2(Avx2),
}

impl Kernel {
    /// The kernel that is faster than the cipher for single packets on this processor. That cipher has code for AVX-512,
    /// which is faster than the kernel for AVX2.
    pub fn fastest() -> Option<Self> {
        let kernel = match Avx512::detect() {
            Some(kernel) => Some(Instructions::Avx512(kernel)),
            None if is_x86_feature_detected!("avx512f") => None,
            None => Avx2::detect().map(Instructions::Avx2),
        };
        kernel.map(Self)
    }

    /// All kernels that this processor can run.
    pub fn all() -> impl Iterator<Item = Self> {
        let kernels = [Avx512::detect().map(Instructions::Avx512), Avx2::detect().map(Instructions::Avx2)];
        kernels.into_iter().flatten().map(Self)
    }

    /// The name of its instructions.
    pub fn name(self) -> &'static str {
        match self.0 {
            Instructions::Avx512(_) => "AVX-512",
            Instructions::Avx2(_) => "AVX2",
        }
    }

    /// How many packets of the batch the kernel computes faster than the cipher for single packets: the last lanes may be
    /// idle, but not most of them, and messages must be whole blocks of 16 bytes.
    pub(super) fn takes(self, batch: &Batch<'_>) -> usize {
        let fewest = match self.0 {
            Instructions::Avx512(_) => 5,
            Instructions::Avx2(_) => 6,
        };
        let (packets, text) = (batch.packets.len() / batch.stride, batch.text());
        match packets % LANES {
            _ if text.is_empty() || !text.len().is_multiple_of(16) => 0,
            last if last < fewest => packets - last,
            _ => packets,
        }
    }

    /// Seals packets whose messages are whole blocks of 16 bytes.
    pub(super) fn seal(self, subkey: &[u8; 32], batch: Batch<'_>) {
        for lanes in lanes(batch) {
            match self.0 {
                Instructions::Avx512(kernel) => kernel.seal(subkey, lanes),
                Instructions::Avx2(kernel) => kernel.seal(subkey, lanes),
            }
        }
    }

    /// Opens packets whose messages are whole blocks of 16 bytes. Bit `i` of the result is set where packet `i` is
    /// authentic; others stay as they were.
    pub(super) fn open(self, subkey: &[u8; 32], batch: Batch<'_>) -> u64 {
        let authentic = lanes(batch).map(|lanes| match self.0 {
            Instructions::Avx512(kernel) => kernel.open(subkey, lanes),
            Instructions::Avx2(kernel) => kernel.open(subkey, lanes),
        });
        authentic.enumerate().fold(0, |all, (i, authentic)| all | authentic << (LANES * i))
    }

    /// The Poly1305 tags of eight messages.
    #[cfg(test)]
    fn tags(self, keys: &[[u8; 32]; LANES], texts: &[&[u8]; LANES]) -> [[u8; TAG]; LANES] {
        let keys = &keys.each_ref().map(poly1305::MacKey::new);
        match self.0 {
            Instructions::Avx512(kernel) => kernel.tags(keys, texts),
            Instructions::Avx2(kernel) => kernel.tags(keys, texts),
        }
    }
}

/// The packets that are computed side by side.
fn lanes(Batch { packets, stride, header }: Batch<'_>) -> impl Iterator<Item = Batch<'_>> {
    packets.chunks_mut(LANES * stride).map(move |packets| Batch { packets, stride, header })
}
