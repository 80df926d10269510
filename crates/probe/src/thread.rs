//! The name of the watching thread.

/// The name of the watching thread, which distinguishes it from those of the generator.
pub const THREAD: &str = "kendall-probe";
