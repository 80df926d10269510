//! Clusters of real processes and a real nats-server; and the coordinator's logic in virtual time.

mod conservation;
mod deploy;
mod kills;
mod roles;
mod searches;
mod security;
mod simulation;
