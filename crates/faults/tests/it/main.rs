//! The program itself, with kendall.

mod campaign;
mod memory;
mod soak;

use std::env::current_exe;
use std::path::PathBuf;

use kendall_testbed::left_out;

/// The command kendall; `None` where it is not built.
fn kendall() -> Option<PathBuf> {
    let own = current_exe().unwrap();
    let kendall = own.parent().and_then(|deps| deps.parent()).unwrap().join("kendall");
    if kendall.exists() {
        return Some(kendall);
    }
    left_out("the command kendall is not built");
    None
}
