//! What must hold for any bytes that a peer sends, and for the files of hosts and keys.

mod copy;
mod files;
mod shell;

use kendall_testbed::fuzz::Target;

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "copy", seeds: copy::seeds, run: copy::run },
    Target { name: "shell", seeds: shell::seeds, run: shell::run },
    Target { name: "remote-hosts", seeds: files::host_seeds, run: files::hosts },
    Target { name: "remote-keys", seeds: files::key_seeds, run: files::keys },
];

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
