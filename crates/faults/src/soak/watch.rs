//! Reads what processes hold, from `/proc` (proc(5)), and the sizes of what they write.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What some processes hold together, and the machine's work so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The instant, in seconds since the load began.
    pub at_s: f64,
    /// Main memory of the system's processes.
    pub memory_bytes: u64,
    /// Main memory of the load generator; 0 without one.
    pub generator_bytes: u64,
    /// Open descriptors of the system's processes.
    pub descriptors: u64,
    /// Threads of the system's processes.
    pub threads: u64,
    /// Bytes that the system's processes have written to their logs.
    pub log_bytes: u64,
    /// Bytes of the files that the system keeps.
    pub store_bytes: u64,
    /// The machine.
    pub machine: Machine,
}

/// Time that the machine's cores have spent so far, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// All time.
    pub total: u64,
    /// Time in programs, and in the kernel for programs.
    pub busy: u64,
    /// Time that other virtual machines had its cores.
    pub stolen: u64,
    /// Time of the soak and of all that it has started.
    pub own: u64,
}

/// What the processes with these ids hold. Those that have ended hold nothing.
pub(super) fn held(ids: &[u32]) -> Sample {
    let mut held = Sample::default();
    for id in ids {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        held.memory_bytes += 1024 * field(&status, "VmRSS:");
        held.threads += field(&status, "Threads:");
        held.descriptors += fs::read_dir(format!("/proc/{id}/fd")).map_or(0, |files| files.count() as u64);
    }
    held
}

/// The first number after a name at the beginning of a line; 0 if there is no such line.
fn field(status: &str, name: &str) -> u64 {
    let rest = status.lines().find_map(|line| line.strip_prefix(name));
    rest.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The size of a file, or of all files in a folder. A link counts as nothing.
pub(super) fn size(path: &Path) -> u64 {
    match fs::symlink_metadata(path) {
        Ok(file) if file.is_file() => file.len(),
        Ok(folder) if folder.is_dir() => {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| size(&entry.path())).sum()
        }
        _ => 0,
    }
}

impl Machine {
    /// The machine now. A process and all that it has started are the soak.
    pub fn now(root: u32) -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let all = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = all.split_whitespace().skip(1).filter_map(|tick| tick.parse().ok()).collect();
        let [user, nice, system, _, _, _, _, stolen, ..] = ticks[..] else { return Self::default() };
        // The last two are contained in the first two.
        let total = ticks[..8].iter().sum();
        Self { total, busy: user + nice + system, stolen, own: own_ticks(root) }
    }

    /// The shares of the time since an earlier instant that other programs had, and other virtual machines.
    pub fn disturbance_since(&self, before: &Self) -> (f64, f64) {
        let since = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before)) as f64;
        let total = since(|at| at.total).max(1.0);
        ((since(|at| at.busy) - since(|at| at.own)).max(0.0) / total, since(|at| at.stolen) / total)
    }
}

/// The time of a process, of its children that have ended, and of those that run.
fn own_ticks(id: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The name before them may contain spaces.
    let fields = text.rsplit_once(") ").map_or("", |(_, rest)| rest).split_whitespace();
    let own: u64 = fields.skip(11).take(4).filter_map(|tick| tick.parse::<u64>().ok()).sum();
    let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let children =
        threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    children.fold(own, |sum, ids| {
        sum + ids.split_whitespace().filter_map(|id| id.parse().ok()).map(own_ticks).sum::<u64>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_more_is_counted_and_a_file_has_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let ids = [std::process::id()];
        let before = held(&ids);
        // Other tests open files at the same time, but not as many.
        let files: Vec<_> =
            (0..200).map(|at| fs::File::create(folder.path().join(at.to_string())).unwrap()).collect();
        assert!(held(&ids).descriptors >= before.descriptors + 100, "{before:?}");
        fs::create_dir(folder.path().join("inner")).unwrap();
        fs::write(folder.path().join("inner/text"), "12345").unwrap();
        fs::write(folder.path().join("text"), "123").unwrap();
        assert_eq!(size(folder.path()), 8);
        assert!(before.threads >= 1 && before.memory_bytes > 100_000, "{before:?}");
        drop(files);
        assert_eq!(held(&[u32::MAX]), Sample::default());
    }

    #[test]
    fn time_of_this_process_is_not_that_of_others() {
        let before = Machine::now(std::process::id());
        let mut child = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"])
            .spawn()
            .unwrap();
        child.wait().unwrap();
        let after = Machine::now(std::process::id());
        assert!(after.own > before.own, "{before:?} {after:?}");
        assert!(after.own - before.own <= after.busy - before.busy + 5, "{before:?} {after:?}");
        let (others, stolen) = after.disturbance_since(&before);
        assert!((0.0..=1.0).contains(&others) && (0.0..=1.0).contains(&stolen));
    }
}
