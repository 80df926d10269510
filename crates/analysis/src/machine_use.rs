//! The use of the machine while it was watched, by program.

use kendall_probe::{Summary, Use};

/// A machine with less than a tenth of its cores idle is full: what its scheduler moves about leaves that much.
const FULL: f64 = 0.9;

/// Whether next to nothing of the machine is idle.
pub(crate) fn is_full(summary: &Summary) -> bool {
    taken_cores(summary) >= FULL * summary.machine.cores
}

/// The cores that neither the server nor the generator had.
pub(crate) fn foreign_cores(summary: &Summary) -> f64 {
    let own = |role: &Option<Use>| role.as_ref().map_or(0.0, |role| role.cpu_cores);
    (taken_cores(summary) - own(&summary.server) - own(&summary.generator)).max(0.0)
}

/// The cores that were busy, or that the host of a virtual machine took away.
pub(crate) fn taken_cores(summary: &Summary) -> f64 {
    let machine = &summary.machine;
    machine.busy_cores.unwrap_or(0.0) + machine.stolen_cores.unwrap_or(0.0)
}
