//! Showing something in the user's browser.

use std::env;
use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// Shows a page, by its path or address, in the user's browser. Where it is has been printed, so it does not matter if that
/// fails.
pub(crate) fn open(page: impl AsRef<OsStr>) {
    let graphical = env::var_os("DISPLAY").is_some() || env::var_os("WAYLAND_DISPLAY").is_some();
    if graphical || cfg!(target_os = "macos") {
        let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let mut command = Command::new(program);
        let quiet = command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        drop(quiet.spawn());
    }
}
