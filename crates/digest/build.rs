//! Writes the vector kernels for x86-64: the formulas of the library, recorded, scheduled and printed.

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

use generator::isa::Isa;
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
    for (isa, name) in [(Isa::Avx2, "sha256_avx2.s"), (Isa::Avx512, "sha256_avx512.s")] {
        fs::write(Path::new(&folder).join(name), assembly::kernel(isa, &assembly::tuning(isa)))?;
    }
    Ok(())
}
