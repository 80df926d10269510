//! The name of the threads that watch.

/// The name of the thread that watches, which distinguishes it from those of the generator.
pub const THREAD: &str = "kendall-probe";
