//! A soak of seconds.

use std::process::{Command, Output};

use crate::kendall;

/// Runs a soak; `None` where the command kendall is not built.
fn soak(arguments: &[&str]) -> Option<Output> {
    let kendall = kendall()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_kendall-faults"));
    command.args(["soak", "--program"]).arg(kendall).args(arguments);
    Some(command.output().unwrap())
}

#[test]
fn a_soak_of_seconds_counts_requests_and_finds_no_problem() {
    let Some(output) = soak(&["--for", "6s", "hold"]) else { return };
    let page = String::from_utf8_lossy(&output.stdout);
    let row = page.lines().find(|line| line.starts_with("| hold |")).unwrap_or_else(|| panic!("{output:?}"));
    let cells: Vec<&str> = row.split(" | ").collect();
    // About 600 are due; a soak of seconds has enough samples for a line, but no first and last quarter of response times.
    let answered: u64 = cells[1].replace(',', "").parse().unwrap();
    assert!((400..800).contains(&answered), "{row}");
    assert!(cells[2].contains('→') && cells[3].contains(" to ") && cells[4].contains('→'), "{row}");
    // Descriptors and threads are the same again. How memory and response times change in seconds says nothing.
    for cell in &cells[10..12] {
        let (before, after) = cell.split_once(" → ").unwrap();
        assert!(after.parse::<u64>().unwrap() <= before.parse().unwrap(), "{row}");
    }
    assert!(!page.contains("failed and"), "{page}");
}

#[test]
fn arguments_that_are_not_known_are_rejected() {
    for (arguments, complaint) in [
        (&["--for", "never"][..], "--for must be"),
        (&["--for"], "--for needs a value"),
        (&["--quick"], "--quick"),
        (&["nothing"], "nothing is not a system"),
        (&["lab"], "lab is not a system"),
    ] {
        let Some(output) = soak(arguments) else { return };
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(complaint), "{arguments:?}: {message}");
    }
}
