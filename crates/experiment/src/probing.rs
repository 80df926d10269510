//! The settings of `[probe]`, by which trials are watched.

use std::time::Duration;

use kendall_probe::DEFAULT_HZ;

/// The default interval between two readings.
const EVERY: Duration = Duration::from_millis(10);

/// The settings for watching trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// The interval between two readings; `None` for no watching.
    pub every: Option<Duration>,
    /// The sampling rate of the server's stacks per second of CPU time, if they are sampled.
    pub profile_hz: Option<u32>,
}

impl Default for Probing {
    fn default() -> Self {
        Self { every: Some(EVERY), profile_hz: None }
    }
}

impl Probing {
    /// Nothing is watched.
    pub const OFF: Self = Self { every: None, profile_hz: None };

    /// Returns the settings with sampled stacks, at the default rate where none is set.
    #[must_use]
    pub fn with_profile(self) -> Self {
        let profile_hz = Some(self.profile_hz.unwrap_or(DEFAULT_HZ));
        Self { every: Some(self.every.unwrap_or(EVERY)), profile_hz }
    }
}
