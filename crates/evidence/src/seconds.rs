//! Conversion of the instants and times of records, which are in nanoseconds, to seconds.

/// Nanoseconds in seconds.
pub(crate) fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
