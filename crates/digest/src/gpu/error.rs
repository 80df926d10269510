//! The errors of a search on a card.

/// The reason why there is no card to search on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GpuAbsent {
    /// The driver's library cannot be loaded.
    #[error("no NVIDIA driver is installed (its library libcuda was not found)")]
    NoDriver,
    /// The driver is too old for the language of the kernel.
    #[error("the NVIDIA driver is too old; the kernel needs one of 2020 or later (CUDA 11.0)")]
    OldDriver,
    /// The driver finds no card.
    #[error("the NVIDIA driver is installed but finds no card")]
    NoCard,
    /// The card lacks instructions that the kernel uses.
    #[error("{name} is too old; the kernel needs a card of 2017 or later (compute capability 7.0)")]
    TooOld {
        /// The name of the card.
        name: String,
    },
    /// The driver rejected the kernel.
    #[error("the driver rejects the kernel: {0}")]
    Refused(String),
    /// The card missed a known answer.
    #[error("{name} misses answers; it is not used")]
    Wrong {
        /// The name of the card.
        name: String,
    },
    /// The driver failed.
    #[error(transparent)]
    Failed(#[from] GpuError),
}

/// The card or its driver failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the graphics card failed to {to}: {why}")]
pub struct GpuError {
    pub(super) to: &'static str,
    pub(super) why: String,
}
