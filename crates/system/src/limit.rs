//! What the machine itself allows a system, whatever the system does: a disk completes this many flushes a second, a kernel
//! accepts this many connections. The laboratory measures each limit alone before the trials, and a report says which one binds.

use std::fmt;
use std::time::Duration;

use crate::settings::Settings;

/// Measures a limit for about the given time, or says in words why it cannot.
pub type MeasureLimit = Box<dyn Fn(Duration) -> Result<f64, String>>;

/// Something that the machine has so much of, and that requests use up.
pub struct MachineLimit {
    /// Its name in a report, such as "fdatasync in /var/tmp". Limits of one name are the same one, which is measured once.
    pub name: String,
    /// How much of it requests use.
    pub demand: Demand,
    /// Measures it. The unit depends on the demand.
    pub measure: MeasureLimit,
}

/// How much of a limit requests use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// One for each connection that the load opens. Measured is how many connections a second the machine completes.
    Connections,
    /// As many as the server counts under this name, in the file beside its stamps. Measured is how many a second the machine
    /// completes.
    Counted(&'static str),
    /// Time on the processors. Measured are the seconds of a core that the mean request takes; the limit is the cores.
    Processors,
}

/// The limits of the machine that a system has with these settings of its server and of its workload.
pub type MachineLimits = fn(&Settings, &Settings) -> Vec<MachineLimit>;

/// The [`MachineLimits`] of a system that names none.
pub fn no_limits(_server: &Settings, _workload: &Settings) -> Vec<MachineLimit> {
    Vec::new()
}

impl fmt::Debug for MachineLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, demand, .. } = self;
        f.debug_struct("MachineLimit").field("name", name).field("demand", demand).finish_non_exhaustive()
    }
}
