//! How far a simulation is, for a caller on another thread, who may stop it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts the customers of a running simulation, and stops it on request. One for each simulation.
#[derive(Debug, Default)]
pub struct Progress {
    customers: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    /// The number of customers that have left, served or not. It advances in steps, of a thousandth of the run or so.
    pub fn customers(&self) -> u64 {
        self.customers.load(Ordering::Relaxed)
    }

    /// Asks the simulation to end with [`SimulationError::Stopped`](crate::SimulationError::Stopped) after its current step.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, customers: u64) {
        self.customers.fetch_add(customers, Ordering::Relaxed);
    }
}
