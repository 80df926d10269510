//! Ends what outlives a link whose emulator and kendall were both killed at once: processes, which keep its namespaces alive.
//! Each process started at an end has the emulator's name in its environment, so that the next start finds those whose emulator
//! has ended.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The environment variable with the name of the emulator of the link.
pub(crate) const MARK: &str = "KENDALL_LINK";

/// The name of an emulator: its process number and its start time, since numbers are reused.
pub(crate) fn name(emulator: u32) -> Option<String> {
    Some(format!("{emulator}.{}", started(emulator)?))
}

/// Ends the processes of links that no longer exist.
pub(crate) fn end_leftovers() {
    let Ok(processes) = fs::read_dir("/proc") else { return };
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    for process in numbers.filter(|process| is_left_over(*process)) {
        // The process may have ended already.
        let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
    }
}

fn is_left_over(process: i32) -> bool {
    // In a container, process numbers are others.
    let numbering = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    if numbering(&process.to_string()) != numbering("self") {
        return false;
    }
    // The environment of another user's process cannot be read, and that user has to end it.
    let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let mark = format!("{MARK}=");
    let mut variables = environment.split(|byte| *byte == 0);
    let emulator = variables.find_map(|variable| variable.strip_prefix(mark.as_bytes()));
    let Some((number, start)) = emulator.and_then(|name| str::from_utf8(name).ok()?.split_once('.')) else {
        return false;
    };
    let is_there = || Some(started(number.parse().ok()?)?.to_string() == start);
    is_there() != Some(true)
}

/// The start time of a process, in ticks since the machine started: field 22 of `/proc/PID/stat` (proc(5)).
fn started(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The command's name, field 2, may hold blanks; it ends at the last bracket.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn bearing(name: &str) -> Child {
        let child = Command::new("sleep").arg("600").env(MARK, name).spawn().unwrap();
        // The kernel shows a program's environment a moment after the start of the program.
        while fs::read(format!("/proc/{}/environ", child.id())).unwrap().is_empty() {
            std::thread::yield_now();
        }
        child
    }

    #[test]
    fn only_what_bears_the_name_of_an_emulator_that_is_gone_is_ended() {
        let own = name(std::process::id()).unwrap();
        let (number, start) = own.split_once('.').unwrap();
        let mut kept = bearing(&own);
        // A later process has the same number.
        let earlier = start.parse::<u64>().unwrap() - 1;
        let mut left = bearing(&format!("{number}.{earlier}"));
        end_leftovers();
        assert!(!left.wait().unwrap().success());
        assert!(kept.try_wait().unwrap().is_none());
        kept.kill().unwrap();
        kept.wait().unwrap();
    }
}
