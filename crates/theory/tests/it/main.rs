//! Formulas against published and computed references, against each other, and against the simulator.

mod batch_closed;
mod closed;
mod conditions;
mod intervals;
mod laws;
mod networks;
mod open;
mod reference;
mod scalability;
mod sessions;
mod simulated;
mod simulation;
mod table;
