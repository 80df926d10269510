//! PBKDF2 with HMAC-SHA1 (RFC 8018, RFC 2104), of several passwords at once.
//!
//! A derivation is a chain of digests, each of which needs the one before: a single one leaves the processor waiting
//! for its results. So several passwords are processed in parallel, in lanes of vectors or interleaved.
//!
//! ```
//! use kendall_digest::{Engine, pbkdf2};
//!
//! let blocks = pbkdf2::derive(Engine::Portable, &[b"test", b"abc"], b" ", 2);
//! assert_eq!(blocks, [b"test", b"abc".as_slice()].map(|one| pbkdf2::derive(Engine::Portable, &[one], b" ", 2)[0]));
//! ```

use crate::engine::Engine;
use crate::vector::Vector;

mod chain;
mod lanes;
#[cfg(target_arch = "x86_64")]
mod sha_ni;

use chain::{BLOCK_BYTES, Chain, State};

/// A block of a derived key.
pub type Block = [u8; BLOCK_BYTES];

/// The first block of the key that is derived from each password.
///
/// # Panics
/// Panics if `rounds` is 0.
pub fn derive(engine: Engine, passwords: &[&[u8]], salt: &[u8], rounds: u32) -> Vec<Block> {
    assert!(rounds > 0, "PBKDF2 has at least one round");
    let chains: Vec<Chain> = passwords.iter().map(|password| Chain::new(password, salt)).collect();
    let kernel = Kernel::of(engine);
    let words = chains.chunks(kernel.lanes).flat_map(|chains| (kernel.run)(chains, rounds));
    words.map(to_bytes).collect()
}

/// The number of passwords from which this engine derives keys in parallel.
pub fn lanes(engine: Engine) -> usize {
    Kernel::of(engine).lanes
}

/// The engine that derives this many keys in the shortest time on this processor, by measurements: the SHA extensions
/// are the fastest for few keys; more than they interleave fill the long vectors.
pub fn engine_for(keys: usize) -> Engine {
    let order = if keys > lanes(Engine::ShaNi) {
        [Engine::Avx512, Engine::ShaNi, Engine::Avx2, Engine::Neon]
    } else {
        [Engine::ShaNi, Engine::Avx512, Engine::Avx2, Engine::Neon]
    };
    order.into_iter().find(|engine| engine.is_available()).unwrap_or(Engine::Portable)
}

/// The most keys that this processor derives in parallel.
pub fn most_lanes() -> usize {
    lanes(engine_for(usize::MAX))
}

fn to_bytes(words: State) -> Block {
    let mut bytes = [0; BLOCK_BYTES];
    bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_be_bytes());
    bytes
}

/// A kernel that derives keys in parallel.
struct Kernel {
    /// The most keys at once.
    lanes: usize,
    /// Runs all rounds of each chain; there must be at least one chain.
    run: fn(&[Chain], u32) -> Vec<State>,
}

impl Kernel {
    fn of(engine: Engine) -> Self {
        match engine {
            _ if !engine.is_available() => Self::vectors::<u32, 1>(),
            #[cfg(target_arch = "x86_64")]
            Engine::ShaNi => Self { lanes: sha_ni::LANES, run: sha_ni::run },
            #[cfg(target_arch = "x86_64")]
            Engine::Avx2 => Self::vectors::<crate::vector::avx2::Avx2, 1>(),
            #[cfg(target_arch = "x86_64")]
            Engine::Avx512 => Self::vectors::<crate::vector::avx512::Avx512, 1>(),
            #[cfg(target_arch = "aarch64")]
            Engine::Neon | Engine::ArmSha2 => Self::vectors::<crate::vector::neon::Neon, 1>(),
            _ => Self::vectors::<u32, 1>(),
        }
    }

    fn vectors<V: Vector, const N: usize>() -> Self {
        Self { lanes: V::LANES * N, run: |chains, rounds| V::run(lanes::Chains::<V, N>::new(chains, rounds)) }
    }
}
