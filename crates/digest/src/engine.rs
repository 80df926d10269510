//! The instruction sets for which there are kernels, and the choice among them.

use std::fmt;
use std::str::FromStr;

/// An instruction set for which there are kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Plain Rust, on any processor: the reference for the tests of the others.
    Portable,
    /// The SHA extensions of x86-64, several candidates interleaved.
    ShaNi,
    /// AVX2 of x86-64, 8 candidates a vector.
    Avx2,
    /// AVX-512 of x86-64, 16 candidates a vector.
    Avx512,
    /// NEON of 64-bit Arm, 4 candidates a vector.
    Neon,
    /// The SHA-2 extension of 64-bit Arm, several candidates interleaved.
    ArmSha2,
}

impl Engine {
    /// All engines, of any processor.
    pub const ALL: [Self; 6] =
        [Self::Portable, Self::ShaNi, Self::Avx2, Self::Avx512, Self::Neon, Self::ArmSha2];

    /// The engines that run on this machine.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|engine| engine.is_available())
    }

    /// Whether this machine has the instructions.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::ShaNi => {
                is_x86_feature_detected!("sha")
                    && is_x86_feature_detected!("sse4.1")
                    && is_x86_feature_detected!("ssse3")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
            #[cfg(target_arch = "aarch64")]
            Self::ArmSha2 => std::arch::is_aarch64_feature_detected!("sha2"),
            _ => false,
        }
    }

    /// The vectors of a processor that has this engine, for digests that its SHA extensions do not speed up.
    pub(crate) fn vectors(self) -> Self {
        match self {
            Self::ShaNi if Self::Avx2.is_available() => Self::Avx2,
            Self::ArmSha2 => Self::Neon,
            engine => engine,
        }
    }

    /// The engine's name, also in `KENDALL_DIGEST`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::ShaNi => "sha-ni",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
            Self::ArmSha2 => "arm-sha2",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for an unknown name of an engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown engine {0:?}; this processor can run {available}", available = names_of_available())]
pub struct UnknownEngine(pub String);

/// The names of the engines that run on this machine, for messages.
pub(crate) fn names_of_available() -> String {
    let names: Vec<_> = Engine::available().map(Engine::name).collect();
    names.join(", ")
}

impl FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        Self::ALL.into_iter().find(|engine| engine.name() == name).ok_or_else(|| UnknownEngine(name.into()))
    }
}
