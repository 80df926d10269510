//! Writes the seeds of every target to `FOLDER/TARGET`, and prints the targets' names.

#[path = "../../crates/chat/tests/it/fuzzing/mod.rs"]
mod chat;
#[path = "../../crates/curvecp/tests/it/fuzzing/mod.rs"]
mod fuzzing;
#[path = "../../crates/curvecp/tests/it/net/mod.rs"]
mod net;
#[allow(dead_code, reason = "each program uses a part")]
#[path = "../../crates/remote/tests/it/fuzzing.rs"]
mod remote;
#[allow(dead_code, reason = "each program uses a part")]
#[path = "../../crates/remote/tests/it/shell/fuzzing.rs"]
mod shell;
#[path = "../../crates/talk/tests/it/fuzzing/mod.rs"]
mod talk;

use std::fs;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder is named"));
    let of_curvecp = fuzzing::TARGETS.iter().map(|target| (target.name, (target.seeds)()));
    let of_chat = chat::TARGETS.iter().map(|target| (target.name, (target.seeds)()));
    let of_talk = talk::TARGETS.iter().map(|target| (target.name, (target.seeds)()));
    let of_remote = [("copy", remote::seeds()), ("shell", shell::seeds())];
    for (name, seeds) in of_curvecp.chain(of_chat).chain(of_talk).chain(of_remote) {
        let folder = folder.join(name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
        println!("{name}");
    }
    Ok(())
}
