//! Passes on what only Cargo knows of this build. It reads neither the clock nor the repository, so the same sources give the same program.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| std::env::var(name).expect("cargo sets it");
    let version = Command::new(variable("RUSTC")).arg("--version").output().expect("the compiler runs");
    let version = String::from_utf8_lossy(&version.stdout);
    // `rustc 1.95.0 (59807616e 2026-04-14)`
    let version = version.split(' ').nth(1).unwrap_or("unknown");
    println!("cargo::rustc-env=KENDALL_RUSTC={version}");
    println!("cargo::rustc-env=KENDALL_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=KENDALL_PROFILE={}", variable("PROFILE"));
}
