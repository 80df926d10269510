//! Packets that did not arrive, counted by cause.

/// Why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The queue had no room.
    Overflow,
    /// CoDel dropped it because packets had waited for too long.
    Aqm,
    /// The wire lost it.
    Lost,
    /// More packets were on the wire than the link has memory for.
    WireFull,
}

/// Packets that did not arrive, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// The queue had no room.
    pub overflow: u64,
    /// CoDel dropped them.
    pub aqm: u64,
    /// The wire lost them.
    pub lost: u64,
    /// The link had no memory for more packets on its wire.
    pub wire_full: u64,
}

impl Drops {
    /// All of them.
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
