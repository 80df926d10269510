//! The names of the settings of a link, and the format of each value.

/// The names of all settings, each with a description of its value.
pub const NAMES: [(&str, &str); 11] = [
    ("delay", "time from one end to the other: 20ms"),
    ("jitter", "variation of the delay between packets, and its law: 2ms, 2ms normal, 2ms pareto-normal"),
    ("rate", "bits per second, or pieces of time that repeat: 10mbit, or 10mbit 2s, 0 500ms"),
    ("overhead", "bytes that each packet takes on the link in addition to its size: 38"),
    ("queue", "most bytes that wait to be sent: 64k (64 000), 64KiB"),
    ("aqm", "queue management: drop-tail, codel, fq-codel; codel target 5ms interval 100ms no-ecn"),
    ("loss", "share of packets lost: 0.1%, 1% burst 5, or gilbert-elliott 1% 20% 100% 0%"),
    ("corrupt", "share of packets with a wrong bit: 0.01%"),
    ("duplicate", "share of packets that arrive twice: 0.1%"),
    ("reorder", "share of packets that others overtake: 1%, 1% distance 3 within 50ms"),
    ("wire", "bytes of memory for packets in transit: 64M"),
];

pub(crate) fn names() -> String {
    NAMES.map(|(name, _)| name).join(", ")
}
