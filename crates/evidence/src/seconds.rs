//! Instants and times of records, which are in nanoseconds, as the formulas want them.

/// Nanoseconds in seconds.
pub(crate) fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}
