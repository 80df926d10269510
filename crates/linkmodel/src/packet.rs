//! The packets that enter a link, and the deliveries that leave it.

/// The explicit congestion notification in a packet's IP header (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The ends of the packet's flow do not support marks: a queue must drop the packet to warn them.
    #[default]
    NotCapable,
    /// ECT(0) or ECT(1): it may be marked instead of dropped.
    Capable,
    /// CE: marked, by this link or before.
    Marked,
}

/// A packet on entry to a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<T> {
    /// The packet's size on the link, in bytes. Less than an IP header ([`SMALLEST_BYTES`](crate::SMALLEST_BYTES))
    /// counts as one.
    pub bytes: u32,
    /// The packet's flow: a hash of protocol, addresses and ports.
    pub flow: u64,
    /// Whether the packet may be marked.
    pub ecn: Ecn,
    /// The caller's item: the bytes, or a number that stands for them.
    pub item: T,
}

/// A packet that has crossed a link, or a row of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<T> {
    /// The arrival of the packet, in ns on the clock of the caller. Never after the instant for which it was
    /// polled.
    pub at_ns: i64,
    /// The packet; its `ecn` is the value for the header now.
    pub packet: Packet<T>,
    /// The number of copies that arrive at once: 1, or more if it was duplicated.
    pub copies: u32,
    /// Whether a queue on the path marked the packet: its header must be changed.
    pub marked: bool,
    /// The bit that was damaged, counted from the packet's first.
    pub wrong_bit: Option<u64>,
    /// The time that the packet waited in queues, in ns.
    pub waited_ns: i64,
}
