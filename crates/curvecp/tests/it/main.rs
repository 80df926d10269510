//! CurveCP from outside, as a pure state machine: packets, handshakes, transfers, attacks and links in virtual time.

mod attacks;
mod fairness;
mod fuzz;
mod fuzzing;
mod handshake;
mod net;
mod path_mtu;
mod reference;
mod scenario;
mod sim;
mod simulation;
mod throughput;
mod transfer;
mod vectors;
