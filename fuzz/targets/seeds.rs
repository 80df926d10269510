//! Writes the seeds of every target to `FOLDER/TARGET`, and prints the targets' names.

#[path = "../../crates/curvecp/tests/it/fuzzing/mod.rs"]
mod fuzzing;
#[path = "../../crates/curvecp/tests/it/net/mod.rs"]
mod net;

use std::fs;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder is named"));
    for target in &fuzzing::TARGETS {
        let folder = folder.join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
        println!("{}", target.name);
    }
    Ok(())
}
