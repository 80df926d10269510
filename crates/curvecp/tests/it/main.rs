//! CurveCP from outside, as a pure state machine: packets, handshakes, transfers and attacks.

mod attacks;
mod fuzz;
mod fuzzing;
mod handshake;
mod net;
mod path_mtu;
mod reference;
mod transfer;
mod vectors;
