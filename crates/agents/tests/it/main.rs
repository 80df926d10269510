//! Fleets of agents over a real NATS server.

mod bed;
mod echo;
mod fleet;
mod security;
