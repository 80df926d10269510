//! What else the machine did while a trial ran: processor time that went to other programs, or that the host of a virtual
//! machine took away.
//!
//! It is read from `/proc` before and after, so it costs the trial nothing. A machine that is shared is never quite quiet;
//! therefore a trial is called disturbed by how much it was disturbed beyond what was usual in the same run, and not by a fixed bound that
//! a noisy machine would always break.

use std::collections::HashMap;
use std::fs;

use kendall_analysis::Disturbance;

/// The kernel counts in ticks, and a trial begins and ends within one on each core; three of them are no disturbance.
const TICKS: f64 = 3.0;

/// The counters of the machine at one instant, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    /// All time of all cores.
    total: f64,
    /// Time in programs and in the kernel on behalf of them.
    busy: f64,
    steal: f64,
    /// Time of this process and all that descend from it.
    own: f64,
    cores: f64,
}

impl Look {
    /// Reads the counters; `None` on a system without them.
    pub(crate) fn now() -> Option<Self> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        Self::parse(&text, own_ticks()?)
    }

    /// `/proc/stat` (proc(5)): user nice system idle iowait irq softirq steal. Interrupts are left out of what is busy: on
    /// behalf of whom they come cannot be told.
    fn parse(stat: &str, own: f64) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<f64> =
            line.split_whitespace().filter_map(|field| field.parse().ok()).take(8).collect();
        let [user, nice, system, .., steal] = ticks[..] else { return None };
        let cores = stat.lines().filter(|line| line.starts_with("cpu")).count() as f64 - 1.0;
        (ticks.len() == 8).then_some(Self {
            total: ticks.iter().sum(),
            busy: user + nice + system,
            steal,
            own,
            cores,
        })
    }

    /// What else happened since an earlier look; `None` where no time passed.
    pub(crate) fn since(&self, before: &Self) -> Option<Disturbance> {
        let total = self.total - before.total;
        let foreign = (self.busy - before.busy) - (self.own - before.own);
        (total > 0.0).then(|| Disturbance {
            steal_share: ((self.steal - before.steal) / total).clamp(0.0, 1.0),
            foreign_share: (foreign / total).clamp(0.0, 1.0),
            resolution_share: TICKS * self.cores / total,
        })
    }
}

/// User and system time of this process and its descendants, their dead children included. Who dies between two looks
/// hands its time to the parent that waits for it.
fn own_ticks() -> Option<f64> {
    let mut processes = HashMap::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // It may have ended since.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        processes.extend(parent_and_ticks(&stat).map(|found| (id, found)));
    }
    let me = std::process::id();
    let descends = |mut id: u32| {
        // No line of ancestors is longer than there are processes.
        for _ in 0..processes.len() {
            if id == me {
                return true;
            }
            match processes.get(&id) {
                Some(&(parent, _)) => id = parent,
                None => return false,
            }
        }
        false
    };
    Some(processes.iter().filter(|(id, _)| descends(**id)).map(|(_, (_, ticks))| ticks).sum())
}

/// Fields 4 and 14 to 17 of `/proc/PID/stat`.
fn parent_and_ticks(stat: &str) -> Option<(u32, f64)> {
    // The command's name, field 2, may hold blanks; it ends at the last bracket.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<f64>().ok()).sum();
    Some((fields.get(1)?.parse().ok()?, ticks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn the_counters_are_read() {
        let stat =
            "cpu  100 5 50 800 10 3 7 25 0 0\ncpu0 50 0 0 0 0 0 0 0 0 0\ncpu1 50 0 0 0 0 0 0 0 0 0\nintr 5\n";
        let look = Look::parse(stat, 40.0).unwrap();
        assert_eq!(look, Look { total: 1000.0, busy: 155.0, steal: 25.0, own: 40.0, cores: 2.0 });
        let later = Look { total: 2000.0, busy: 455.0, steal: 75.0, own: 240.0, cores: 2.0 };
        let seen = later.since(&look).unwrap();
        assert_eq!((seen.foreign_share, seen.steal_share, seen.resolution_share), (0.1, 0.05, 0.006));
        assert_eq!(look.since(&look), None);
        assert_eq!(Look::parse("cpu  1 2 3\n", 0.0), None);
        assert_eq!(parent_and_ticks("12 (a ) b) S 7 2 3 4 5 6 7 8 9 10 250 50 20 3 0"), Some((7, 323.0)));
    }

    /// Work of a child is our own; that of others is not. Compared with each other, for the machine may be busy anyhow.
    #[test]
    fn what_descends_from_us_is_not_foreign() {
        let before = own_ticks().unwrap();
        let script = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(own_ticks().unwrap() >= before + 5.0);
    }

    /// A program that nobody here started is foreign, with all that it used. It ends by itself.
    #[test]
    fn what_does_not_descend_from_us_is_foreign() {
        let before = Look::now().unwrap();
        // The shell that starts it ends at once, and leaves it to the machine's first process.
        let script = "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done >/dev/null & echo $!";
        let started = Command::new("sh").args(["-c", script]).output().unwrap();
        let id = String::from_utf8(started.stdout).unwrap().trim().to_owned();
        let used = || {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            parent_and_ticks(&stat).map(|(_, ticks)| ticks)
        };
        let (mut ticks, deadline) = (0.0, Instant::now() + Duration::from_secs(60));
        while let (Some(now), true) = (used(), ticks < 30.0 && Instant::now() < deadline) {
            ticks = now;
            std::thread::sleep(Duration::from_millis(5));
        }
        let after = Look::now().unwrap();
        let seen = after.since(&before).unwrap();
        let foreign_ticks = seen.foreign_share * (after.total - before.total);
        assert!(ticks >= 10.0 && foreign_ticks >= 0.5 * ticks, "{foreign_ticks} of {ticks}");
    }
}
