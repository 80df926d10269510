//! The environment of a program at an end of a link: the addresses, and its processor time.

use std::env;
use std::fs;
use std::net::IpAddr;

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

/// Fields of /proc/PID/stat behind the name, which is in brackets (proc(5)): the processor time of the process in user and in system
/// mode, and the same of its children that have ended.
const OWN: [usize; 2] = [11, 12];
const ENDED: [usize; 2] = [13, 14];

/// The processor time of this process, and of all its descendants.
pub(crate) fn processor_s() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let own_s = used.tv_sec as f64 + used.tv_nsec as f64 / 1e9;
    let ticks = ticks("self", &ENDED) + children("self");
    own_s + ticks as f64 / clock_ticks_per_second() as f64
}

/// The processor time of all living descendants of a process, in ticks.
fn children(process: &str) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let born = threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let both = [OWN, ENDED].concat();
    let all: Vec<String> = born.collect();
    let all = all.iter().flat_map(|line| line.split_whitespace());
    all.map(|child| ticks(child, &both) + children(child)).sum()
}

/// The sum of some fields of a process's times; 0 once it has gone.
fn ticks(process: &str, fields: &[usize]) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let times: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields.iter().filter_map(|field| times.get(*field)?.parse::<u64>().ok()).sum()
}

/// The client's address on the link.
pub(crate) fn client_address() -> Result<IpAddr, String> {
    let text = env::var("KENDALL_CLIENT").unwrap_or_default();
    text.parse().map_err(|_| "KENDALL_CLIENT names no address".into())
}

/// The server's address on the link.
pub(crate) fn server_address() -> Result<IpAddr, String> {
    let text = env::var("KENDALL_SERVER").unwrap_or_default();
    text.parse()
        .map_err(|_| "only `kendall link run` starts this, and names the address in KENDALL_SERVER".into())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_time_of_programs_that_were_started_counts_while_they_run_and_after() {
        let before_s = processor_s();
        // The shell has a child that works, so there is a grandchild.
        let work = "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; read line); true";
        let mut shell = Command::new("sh")
            .args(["-c", work])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = std::io::BufReader::new(shell.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut String::new()).unwrap();
        let running_s = processor_s() - before_s;
        drop(shell.stdin.take());
        shell.wait().unwrap();
        let ended_s = processor_s() - before_s;
        assert!(running_s >= 0.05, "{running_s} s of a loop that takes longer");
        assert!(ended_s >= running_s, "{ended_s} s after the end, {running_s} s before");
    }
}
