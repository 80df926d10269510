//! The limits of the machine for any system: a disk completes a number of flushes per second, a kernel accepts a number of
//! connections. The laboratory measures each limit alone before the trials, and a report shows which one binds.

use std::fmt;
use std::time::Duration;

use crate::settings::Settings;

/// Measures a limit for about the given time, or returns the reason why it cannot.
pub type MeasureLimit = Box<dyn Fn(Duration) -> Result<f64, String>>;

/// A limited resource of the machine that requests use.
pub struct MachineLimit {
    /// The limit's name in a report, such as "fdatasync in /var/tmp". Limits of the same name are one, which is measured once.
    pub name: String,
    /// The use of it by requests.
    pub demand: Demand,
    /// Measures it. The unit depends on the demand.
    pub measure: MeasureLimit,
}

/// The use of a limited resource by requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// A request uses one unit for each connection that the load opens. The measured limit is the number of connections per
    /// second that the machine completes.
    Connections,
    /// The server's counter of this name, in the file next to its stamps. The measured limit is the number per second that the
    /// machine completes.
    Counted(&'static str),
    /// Processor time. The measured demand is the core seconds of the mean request; the limit is the number of cores.
    Processors,
}

/// The limits of the machine for a system with these settings of its server and of its workload.
pub type MachineLimits = fn(&Settings, &Settings) -> Vec<MachineLimit>;

/// The [`MachineLimits`] of a system without any.
pub fn no_limits(_server: &Settings, _workload: &Settings) -> Vec<MachineLimit> {
    Vec::new()
}

impl fmt::Debug for MachineLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, demand, .. } = self;
        f.debug_struct("MachineLimit").field("name", name).field("demand", demand).finish_non_exhaustive()
    }
}
