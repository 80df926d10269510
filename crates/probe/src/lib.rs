//! Watches processes under load: which thread uses how much of a core and how long it waits for one; where threads sleep; the use
//! of memory, files and connections; and the state of the machine. It reads procfs, cgroups and sock_diag every 10 ms, for less
//! than 1 % of a core. A quantity that cannot be read is absent and named, never 0.
//!
//! [`Watch`] reads, and [`Summary`] is the result. `kendall_analysis` draws the conclusions.
//!
//! This crate starts no process, sends no signal, and names no system.
//!
//! ```no_run
//! use std::time::Duration;
//! use kendall_probe::{Children, Config, Role, Target, Watch};
//!
//! let server = Target { role: Role::Server, pid: 4711, children: Children::Watched };
//! let watch = Watch::start(&Config { every: Duration::from_millis(10), ..Config::default() }, &[server])?;
//! std::thread::sleep(Duration::from_secs(10));
//! let summary = watch.end(0)?.summary;
//! println!("{} cores", summary.server.map_or(0.0, |server| server.cpu_cores));
//! # Ok::<(), kendall_probe::ProbeError>(())
//! ```

mod error;
mod family;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod listener;
mod pace;
mod proc;
mod profile;
mod row;
mod sampler;
mod sockets;
mod summary;
mod tally;
mod thread;
mod timeline;
mod wait;
mod watch;

pub use error::ProbeError;
pub use family::{Children, Target};
pub use listener::{listen_overflows, listener};
pub use profile::{DEFAULT_HZ, Profile, try_profile};
pub use row::{Column, Reading, Role, ThreadState, layout};
pub use summary::{Connections, Cost, Line, Lock, MachineUse, Places, Summary, ThreadUse, Timeline, Use};
pub use thread::THREAD;
pub use timeline::MOST_BINS;
pub use wait::wait_for_end;
pub use watch::{Config, Watch, WatchResult};
