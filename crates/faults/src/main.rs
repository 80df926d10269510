//! `kendall-faults PROGRAM [SYSTEM]`: starts each system, loads it for two seconds and prints what the load counted.

use std::env;
use std::path::Path;
use std::time::Duration;

use kendall_faults::subjects::{Running, SUBJECTS, Scene, Subject};

fn main() -> Result<(), String> {
    let mut arguments = env::args().skip(1);
    let program = arguments.next().ok_or("name the program kendall")?;
    let only = arguments.next();
    let chosen = |subject: &&Subject| only.as_ref().is_none_or(|only| only == subject.name);
    for subject in SUBJECTS.iter().filter(chosen) {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let scene = Scene::new(Path::new(&program), folder.path())?;
        let Some(running) = Running::start(subject, scene)? else { continue };
        let client = running.client();
        let (n, outcome) = client.probe();
        let counts = client.load(20.0, Duration::from_secs(2)).finish();
        println!("{}: {outcome:?}, {:?}, {counts:?}", subject.name, client.check_kept(n));
    }
    Ok(())
}
