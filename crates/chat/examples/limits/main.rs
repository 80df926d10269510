//! The limits of this machine, and which of them binds the registrations of a directory server with SQLite.
//!
//! ```console
//! $ cargo run --release --package kendall-chat --example limits -- FOLDER 50
//! ```
//!
//! The arguments are the folder of the store, where a file stays, and the number of users without think time.

#[path = "../local/mod.rs"]
mod local;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use kendall_chat::limits::{Load, MachineLimits, registration_s};
use kendall_chat::password::AuthMethod;
use kendall_load::Reuse;

/// How long each limit is measured, and each load lasts.
const CALIBRATION: Duration = Duration::from_millis(500);
const SPAN: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, users] = &arguments[..] else { return Err("arguments: FOLDER USERS".into()) };
    let users: u32 = users.parse()?;
    for method in AuthMethod::ALL {
        let seconds = registration_s(method, CALIBRATION)?;
        println!("{method}: {:.1} µs of a core for a registration's password", seconds * 1e6);
    }
    let limits = MachineLimits::measure(Path::new(folder), AuthMethod::Opaque, CALIBRATION)?;
    println!("{limits}");
    for (connect, reuse) in [("kept", Reuse::Keep), ("per-request", Reuse::Close)] {
        let rates = local::register(&format!("sqlite:{folder}/limits.db"), users, reuse, SPAN)?;
        let registrations_per_s = rates.registrations_per_s;
        let connections_per_s = if reuse == Reuse::Close { registrations_per_s } else { 0.0 };
        let load =
            Load { registrations_per_s, connections_per_s, transactions_per_s: rates.transactions_per_s };
        println!(
            "{connect}, {users} users: {registrations_per_s:.0} registrations/s. {}",
            limits.binding(load)
        );
    }
    Ok(())
}
