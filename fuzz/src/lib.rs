//! Hands fuzz targets of a crate to libFuzzer. Each program in `bin` is named like its crate in the folder `crates`.
//!
//! With `FUZZ_SEEDS=FOLDER` a program writes the seeds of each target to `FOLDER/TARGET`, prints the names of the targets, and
//! ends. Otherwise it runs the target that `FUZZ_TARGET` names.

use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::{env, fs, panic, process};

use kendall_testbed::fuzz::Target;

#[doc(hidden)]
pub use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<&Target> = OnceLock::new();
/// The message of the last panic. It is only printed where the panic is not caught, because some parsers catch those of libraries.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Makes a program of the targets of a crate.
#[macro_export]
macro_rules! program {
    ($targets:expr) => {
        $crate::fuzz_target!(init: $crate::begin($targets), |input: &[u8]| $crate::run(input));
    };
}

#[doc(hidden)]
pub fn begin(targets: &'static [Target]) {
    if let Some(folder) = env::var_os("FUZZ_SEEDS") {
        for target in targets {
            write_seeds(target, &Path::new(&folder).join(target.name)).expect("the folder is writable");
            println!("{}", target.name);
        }
        process::exit(0);
    }
    let name = env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
    let target = targets.iter().find(|target| target.name == name).expect("it is one of this crate");
    TARGET.set(target).expect("it is set once");
    panic::set_hook(Box::new(|info| {
        if let Ok(mut message) = PANIC.lock() {
            *message = info.to_string();
        }
    }));
}

fn write_seeds(target: &Target, folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let seeds = (target.seeds)().into_iter().enumerate();
    seeds.map(|(number, seed)| fs::write(folder.join(format!("seed-{number}")), seed)).collect()
}

#[doc(hidden)]
pub fn run(input: &[u8]) {
    let target = TARGET.get().expect("it is set first");
    if panic::catch_unwind(|| (target.run)(input)).is_err() {
        eprintln!("{}", PANIC.lock().map_or_else(|poisoned| poisoned.into_inner().clone(), |message| message.clone()));
        process::abort();
    }
}
