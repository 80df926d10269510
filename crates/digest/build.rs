//! Writes the kernel of AVX-512: the formulas of the library, recorded, scheduled and printed.

use std::path::Path;
use std::{env, fs};

#[path = "src/generator/mod.rs"]
mod generator;
#[path = "src/lane.rs"]
mod lane;
#[path = "src/sha256"]
mod sha256 {
    pub(crate) mod assembly;
    #[allow(dead_code, reason = "the kernels are made of a part of it")]
    pub(crate) mod formula;
}

use sha256::assembly;

fn main() -> std::io::Result<()> {
    for source in
        ["build.rs", "src/generator", "src/lane.rs", "src/sha256/assembly.rs", "src/sha256/formula.rs"]
    {
        println!("cargo::rerun-if-changed={source}");
    }
    if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|target| target != "x86_64") {
        return Ok(());
    }
    let folder = env::var_os("OUT_DIR").expect("cargo names the folder");
    fs::write(Path::new(&folder).join("sha256_avx512.s"), assembly::kernel(&assembly::tuning()))
}
