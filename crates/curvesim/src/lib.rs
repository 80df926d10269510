//! CurveCP in virtual time: message layers and whole endpoints over modelled links. For tests and tables only.
//!
//! A *world* is one connection or several over one link in each direction; applications at both ends follow a [`Script`]. Packets are
//! real, time is a number, and everything follows from a seed, so a failure is replayed by its seed.
//!
//! [`LayerWorld`] connects message layers without packets around them, which is fast enough for flows of minutes; [`bulk`] and
//! [`mixed`] measure such flows, also in competition with TCP.
//! [`LayerScenario`] draws one from a seed and checks what must hold in any; [`EndpointScenario`] does the same with whole endpoints:
//! handshakes, encryption, addresses that change, an attacker.

mod application;
mod bulk;
mod draw;
mod endpoint_scenario;
mod endpoints;
mod layer_scenario;
mod layers;
mod mixed;
mod script;
mod tcp;

pub use bulk::{Measured, bulk};
pub use endpoint_scenario::EndpointScenario;
pub use layer_scenario::LayerScenario;
pub use layers::{LONGEST, LayerEnd, LayerWorld};
pub use mixed::{Kind, mixed};
pub use script::{Ending, Script};
