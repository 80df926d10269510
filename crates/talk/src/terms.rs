//! Terms that both transports of talks share.

use std::time::Duration;

/// The name that a peer's side of a connection has. Peers are known by their keys.
pub(crate) const NAME: &str = "peer.kendall";
/// A connection that is silent for this long is lost: a vanished peer is noticed within seconds.
pub(crate) const IDLE: Duration = Duration::from_secs(6);
/// How often an idle connection shows that it lives.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_millis(1500);
