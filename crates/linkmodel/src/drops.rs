//! Packets that did not arrive, counted by cause.

/// The reason why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The queue was full.
    Overflow,
    /// CoDel dropped it because packets had waited for too long.
    Aqm,
    /// The wire lost it.
    Lost,
    /// The link's memory for packets on the wire was full.
    WireFull,
}

/// Packets that did not arrive, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// The queue was full.
    pub overflow: u64,
    /// CoDel dropped them.
    pub aqm: u64,
    /// The wire lost them.
    pub lost: u64,
    /// The link's memory for packets on the wire was full.
    pub wire_full: u64,
}

impl Drops {
    /// The number of dropped packets.
    pub fn total(&self) -> u64 {
        self.overflow + self.aqm + self.lost + self.wire_full
    }

    pub(crate) fn count(&mut self, cause: Cause) {
        *match cause {
            Cause::Overflow => &mut self.overflow,
            Cause::Aqm => &mut self.aqm,
            Cause::Lost => &mut self.lost,
            Cause::WireFull => &mut self.wire_full,
        } += 1;
    }
}
