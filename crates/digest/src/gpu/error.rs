//! What can be missing or fail when a card is to search.

/// Why there is no card to search on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GpuAbsent {
    /// The driver's library cannot be loaded.
    #[error("no driver of NVIDIA is installed (its library libcuda was not found)")]
    NoDriver,
    /// The driver does not know what the kernel is written in.
    #[error("the driver of NVIDIA is too old; the kernel needs one of 2020 or later (CUDA 11.0)")]
    OldDriver,
    /// The driver knows of no card.
    #[error("the driver of NVIDIA is installed but finds no card")]
    NoCard,
    /// The card lacks instructions that the kernel uses.
    #[error("{name} is too old; the kernel needs a card of 2017 or later (compute capability 7.0)")]
    TooOld {
        /// What the card is called.
        name: String,
    },
    /// The driver did not take the kernel.
    #[error("the driver refuses the kernel: {0}")]
    Refused(String),
    /// The card missed a known answer.
    #[error("{name} misses answers; it is not used")]
    Wrong {
        /// What the card is called.
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
