//! Watches processes while they are loaded: which thread uses how much of a core and how long it waits for one, where
//! threads sleep, what memory, files and connections do, and what the machine does besides; every 10 ms, from procfs,
//! cgroups and sock_diag, for less than 1 % of a core. What cannot be read is absent and named, and never 0.
//!
//! [`Watch`] reads, and [`Summary`] is what it saw. What that says of the server is judged elsewhere.
//!
//! It starts no process, sends no signal and knows no system.
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
pub use listener::listener;
pub use profile::{DEFAULT_HZ, Profile, try_profile};
pub use row::{Column, Reading, Role, ThreadState, layout};
pub use sampler::{Children, Target};
pub use summary::{Connections, Cost, Line, Lock, MachineUse, Places, Summary, ThreadUse, Timeline, Use};
pub use thread::THREAD;
pub use timeline::MOST_BINS;
pub use wait::wait_for_end;
pub use watch::{Config, Watch, WatchResult};
