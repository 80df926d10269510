//! Reads what does not belong to one process: the machine, a network namespace, a control group.

use std::fs;
use std::path::{Path, PathBuf};

use super::parse;
use super::{Buffer, PolledFile, ticks_s};
use crate::row::{Column, Reading};

/// The machine as a whole. Kernels without pressure information report none.
#[derive(Debug)]
pub(crate) struct System {
    stat: Option<PolledFile>,
    pressures: Vec<(Column, PolledFile)>,
}

impl System {
    pub(crate) fn open() -> Self {
        let pressures = [
            (Column::CpuPressure, "/proc/pressure/cpu"),
            (Column::IoPressure, "/proc/pressure/io"),
            (Column::MemoryPressure, "/proc/pressure/memory"),
        ];
        let open = |(column, path)| Some((column, PolledFile::open(Path::new(path)).ok()?));
        Self {
            stat: PolledFile::open(Path::new("/proc/stat")).ok(),
            pressures: pressures.into_iter().filter_map(open).collect(),
        }
    }

    pub(crate) fn reports_pressure(&self) -> bool {
        !self.pressures.is_empty()
    }

    pub(crate) fn read(&self, buffer: &mut Buffer, reading: &mut Reading) {
        let cores = self.stat.as_ref().and_then(|stat| parse::cores(stat.read(buffer)?));
        if let Some([busy, steal, io_wait]) = cores {
            reading.set(Column::Busy, ticks_s(busy));
            reading.set(Column::Steal, ticks_s(steal));
            reading.set(Column::IoWait, ticks_s(io_wait));
        }
        for (column, file) in &self.pressures {
            let held_up_us = file.read(buffer).and_then(parse::pressure);
            reading.put(*column, held_up_us.map(|us| us as f64 / 1e6));
        }
    }
}

/// The counters of the network namespace of a process.
#[derive(Debug)]
pub(crate) struct Network {
    dev: Option<PolledFile>,
    snmp: Option<PolledFile>,
    netstat: Option<PolledFile>,
}

impl Network {
    pub(crate) fn of(pid: u32) -> Self {
        let open = |name| PolledFile::open(Path::new(&format!("/proc/{pid}/net/{name}"))).ok();
        Self { dev: open("dev"), snmp: open("snmp"), netstat: open("netstat") }
    }

    pub(crate) fn read(&self, buffer: &mut Buffer, reading: &mut Reading) {
        if let Some(text) = self.dev.as_ref().and_then(|file| file.read(buffer)) {
            let (bytes_in, bytes_out) = parse::net_dev(text);
            reading.set(Column::NetIn, bytes_in as f64);
            reading.set(Column::NetOut, bytes_out as f64);
        }
        let snmp = self.snmp.as_ref().and_then(|file| file.read(buffer));
        let retransmits = snmp.and_then(|text| parse::counter(text, b"Tcp:", b"RetransSegs"));
        reading.put(Column::Retransmits, retransmits.map(|count| count as f64));
        let netstat = self.netstat.as_ref().and_then(|file| file.read(buffer));
        let drops = netstat.and_then(|text| parse::counter(text, b"TcpExt:", b"ListenDrops"));
        reading.put(Column::ListenDrops, drops.map(|count| count as f64));
    }
}

/// The control group (version 2) of a process, if it is not that of the whole machine.
#[derive(Debug)]
pub(crate) struct Group {
    stat: PolledFile,
    folder: PathBuf,
}

impl Group {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mounted = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?;
        let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        Self::at(Path::new(mounted), path)
    }

    /// The control group with this path below the folder where control groups are mounted.
    fn at(mounted: &Path, path: &str) -> Option<Self> {
        let folder = mounted.join(path);
        // Within a container, its group has the path of the machine's, which alone has no quota.
        if path.is_empty() && !folder.join("cpu.max").exists() {
            return None;
        }
        Some(Self { stat: PolledFile::open(&folder.join("cpu.stat")).ok()?, folder })
    }

    pub(crate) fn read(&self, buffer: &mut Buffer, reading: &mut Reading) {
        let Some(text) = self.stat.read(buffer) else { return };
        let seconds = |name| parse::field(text, name).map(|us| us as f64 / 1e6);
        reading.put(Column::GroupCpu, seconds(b"usage_usec"));
        reading.put(Column::Throttled, seconds(b"throttled_usec"));
    }

    /// The quota of the control group in cores, if it has one.
    pub(crate) fn quota(&self) -> Option<f64> {
        let text = fs::read_to_string(self.folder.join("cpu.max")).ok()?;
        let mut words = text.split_whitespace().map(str::parse::<f64>);
        Some(words.next()?.ok()? / words.next()?.ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_container_has_a_quota_and_that_of_the_machine_has_none() {
        let mounted = tempfile::tempdir().unwrap();
        fs::write(mounted.path().join("cpu.stat"), "usage_usec 12\nthrottled_usec 5\n").unwrap();
        assert!(Group::at(mounted.path(), "").is_none());
        fs::write(mounted.path().join("cpu.max"), "50000 100000\n").unwrap();
        assert_eq!(Group::at(mounted.path(), "").unwrap().quota(), Some(0.5));
    }
}
