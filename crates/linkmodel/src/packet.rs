//! What goes into a link and what comes out.

/// What a packet's IP header says of explicit congestion notification (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Its ends do not understand marks: a queue that wants to warn them must drop it.
    #[default]
    NotCapable,
    /// ECT(0) or ECT(1): it may be marked instead of dropped.
    Capable,
    /// CE: marked, by this link or on the way to it.
    Marked,
}

/// A packet on its way into a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<T> {
    /// Its size as the link counts it, in bytes. Less than an IP header ([`SMALLEST_BYTES`](crate::SMALLEST_BYTES))
    /// counts as one.
    pub bytes: u32,
    /// Whose it is: a hash of protocol, addresses and ports.
    pub flow: u64,
    /// Whether it may be marked.
    pub ecn: Ecn,
    /// What it is to its owner: the bytes, or a number that stands for them.
    pub item: T,
}

/// A packet that has crossed a link, or a row of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<T> {
    /// When it arrives, in ns on the clock of the caller. Never after the instant for which it was polled.
    pub at_ns: i64,
    /// The packet; its `ecn` is what the header has to say now.
    pub packet: Packet<T>,
    /// How many of it arrive at once: 1, or more where it was duplicated.
    pub copies: u32,
    /// Whether a queue on the way marked it: its header has to be changed.
    pub marked: bool,
    /// The bit that was damaged, counted from the packet's first.
    pub wrong_bit: Option<u64>,
    /// How long it waited in queues, in ns.
    pub waited_ns: i64,
}
