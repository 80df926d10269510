//! A network link as a pure model: packets enter at one instant and leave at another, or not at all.
//!
//! ```text
//!  offer ─▶ queue ──────────────▶ sender ──────────▶ wire ─▶ poll
//!           limit in bytes;       rate, constant     loss, corruption, duplication;
//!           drop-tail, CoDel,     or a trace;        delay, jitter, reordering
//!           FQ-CoDel; marks       exact to the ns
//! ```
//!
//! It does no I/O and reads no clock: instants are arguments, and randomness comes from a seed, so the same packets at
//! the same instants always have the same outcome. It drives real packets between namespaces (`kendall-link`) as well
//! as protocols in virtual time. A [`Link`] is one direction of one link; a [`Path`] is one direction of several in a
//! row.
//!
//! ```
//! use kendall_linkmodel::{Ecn, Link, Packet, Settings};
//!
//! let settings: Settings = "delay=20ms rate=12mbit".parse()?;
//! let mut link = Link::new(&settings, 1, 0)?;
//! for item in ["first", "second"] {
//!     link.offer(0, Packet { bytes: 1500, flow: 7, ecn: Ecn::NotCapable, item });
//! }
//! let mut arrived = vec![];
//! while let Some(at_ns) = link.next_ns() {
//!     arrived.extend(link.poll(at_ns).map(|delivery| (delivery.at_ns, delivery.packet.item)));
//! }
//! // 1,500 bytes at 12 Mbit/s take a millisecond to send, and the last bit of each travels for 20 more.
//! assert_eq!(arrived, [(21_000_000, "first"), (22_000_000, "second")]);
//! # Ok::<(), kendall_linkmodel::Fault>(())
//! ```

mod codel;
mod counters;
mod drops;
mod fault;
mod fq_codel;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod jitter;
mod line;
mod link;
mod log;
mod loss;
mod names;
mod packet;
mod path;
mod quantity;
mod queue;
mod random;
mod rate;
mod real_queue;
mod settings;
mod transport;
mod wire;

pub use codel::{CoDel, Warning};
pub use counters::Counters;
pub use drops::{Cause, Drops};
pub use fault::Fault;
pub use fq_codel::{FqCoDel, LINES};
pub use jitter::{Jitter, Law, Reorder};
pub use link::{Link, SMALLEST_BYTES};
pub use log::{FlowRow, OTHERS};
pub use loss::{Channel, Loss};
pub use names::NAMES;
pub use packet::{Delivery, Ecn, Packet};
pub use path::Path;
pub use quantity::{bits_per_s, bytes, duration_ns, share};
pub use queue::Aqm;
pub use rate::{Piece, Rate};
pub use real_queue::CodelQueue;
pub use settings::Settings;
pub use transport::{Carries, Transport};
