//! The test program itself, started again as a separate process.

use std::env;
use std::io::{BufRead, BufReader};
use std::panic::catch_unwind;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libtest_mimic::{Arguments, Trial};

/// The environment variable with the role of a process that [`Again::start`] started.
const ROLE: &str = "KENDALL_TESTBED_ROLE";

/// One at a time: two busy processes would slow each other down.
static ALONE: Mutex<()> = Mutex::new(());

/// This test program as a separate process in the role of a server; no other one runs at the same time, and it is killed when
/// dropped.
#[derive(Debug)]
pub struct Again(Child, #[expect(dead_code, reason = "it is held")] MutexGuard<'static, ()>);

impl Again {
    /// Starts the program, whose `main` is [`main`], in a role, and waits until it reports that it is [`ready`](Self::ready).
    /// Returns the text that follows that word.
    ///
    /// # Panics
    /// Where the process cannot be started, or ends before it is ready.
    pub fn start(role: &str) -> (Self, String) {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let child = Command::new(env::current_exe().expect("a test has a program"))
            .env(ROLE, role)
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.expect("a test can be started again");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        let said = { lines }.find_map(|line| Some(line.split_once("ready")?.1.trim().to_owned()));
        (Self(child, alone), said.expect("the server says when it is ready"))
    }

    /// Reports that this process serves, with the information that its parent needs.
    pub fn ready(said: &str) {
        println!("\nready {said}");
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The `main` of a test program without cargo's harness: serves in the role that [`Again::start`] gave this process, and otherwise
/// runs the tests with cargo's options. Call it as `main!(serve, a_test, another_test)`.
pub fn main(serve: fn(&str), tests: &[(&str, fn())]) {
    if let Ok(role) = env::var(ROLE) {
        return serve(&role);
    }
    let trial = |&(name, test): &(&str, fn())| {
        // The panic has already printed its message to standard error.
        Trial::test(name, move || catch_unwind(test).map_err(|_| "it panicked".into()))
    };
    libtest_mimic::run(&Arguments::from_args(), tests.iter().map(trial).collect()).exit()
}

/// Writes the `main` of a test program: [`main`](again::main) with the names of the tests.
#[macro_export]
macro_rules! main {
    ($serve:path, $($test:ident),+ $(,)?) => {
        fn main() {
            $crate::again::main($serve, &[$((stringify!($test), $test as fn())),+]);
        }
    };
}
