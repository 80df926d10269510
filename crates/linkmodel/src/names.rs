//! The names of the settings of a link, and what can be written for each.

/// The names of all settings, each with what its value is.
pub const NAMES: [(&str, &str); 11] = [
    ("delay", "time from one end to the other: 20ms"),
    ("jitter", "how much it differs between packets, and by which law: 2ms, 2ms normal, 2ms pareto-normal"),
    ("rate", "bits per second, or pieces of time that repeat: 10mbit, or 10mbit 2s, 0 500ms"),
    ("overhead", "bytes that each packet costs on the link beyond its own: 38"),
    ("queue", "bytes that may wait to be sent: 64k (64 000), 64KiB"),
    ("aqm", "how the queue is managed: drop-tail, codel, fq-codel; codel target 5ms interval 100ms no-ecn"),
    ("loss", "share of packets lost: 0.1%, 1% burst 5, or gilbert-elliott 1% 20% 100% 0%"),
    ("corrupt", "share of packets with a wrong bit: 0.01%"),
    ("duplicate", "share of packets that arrive twice: 0.1%"),
    ("reorder", "share of packets that others overtake: 1%, 1% distance 3 within 50ms"),
    ("wire", "bytes of memory for packets on their way: 64M"),
];

pub(crate) fn names() -> String {
    NAMES.map(|(name, _)| name).join(", ")
}
