//! Disks without space or without writes, limits of descriptors and memory, and a clock that jumps.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kendall_testbed::LIMIT;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};

use super::kind::{Fault, NotInjected, PLAIN, always, has_database, stores_nothing, wait};
use super::processes::restart_peer;
use crate::subjects::Scene;

pub(super) const FULL_DISK: Fault = Fault {
    name: "full-disk",
    what: "no space on the disk for 0.5 to 2 s",
    not_for: stores_nothing,
    inject: |running, _, draw| {
        let ballast = running.scene().path("disk/ballast");
        let mut file = File::create(&ballast).map_err(failed)?;
        let piece = vec![1; 1 << 16];
        while file.write_all(&piece).is_ok() {}
        wait(draw, 500, 2000);
        drop(file);
        fs::remove_file(ballast).map_err(failed)?;
        // A database may end, or wait a minute before it tries again.
        if let Some(database) = &mut running.database {
            database.kill();
        }
        restart_peer(running);
        Ok(Instant::now())
    },
    ..PLAIN
};

pub(super) const READ_ONLY_DISK: Fault = Fault {
    name: "read-only-disk",
    what: "server killed, and its disk read-only at the next start",
    not_for: |subject| {
        let stored_elsewhere = has_database(subject).then_some("its store is the database's");
        stores_nothing(subject).or(stored_elsewhere)
    },
    may_end: true,
    inject: |running, _, draw| {
        running.signal("server", Signal::KILL);
        let disk = running.scene().path("disk");
        // Files that clients or peers write keep it writable for a moment.
        let begun = Instant::now();
        while !mount(running.scene(), &disk, "remount,ro") {
            if begun.elapsed() > LIMIT {
                return Err(NotInjected::LeftOut("the disk cannot be made read-only".into()));
            }
            sleep(Duration::from_millis(50));
        }
        // It may refuse to start, with a reason.
        let _ = running.start_again();
        wait(draw, 200, 1000);
        if !mount(running.scene(), &disk, "remount,rw") {
            return Err(NotInjected::LeftOut("the disk cannot be made writable again".into()));
        }
        running.signal("server", Signal::KILL);
        let lifted = Instant::now();
        running.start_again().map_err(NotInjected::Failed)?;
        Ok(lifted)
    },
    ..PLAIN
};

fn mount(scene: &Scene, disk: &Path, options: &str) -> bool {
    let done = scene.command("mount").args(["-o", options]).arg(disk).output();
    done.is_ok_and(|done| done.status.success())
}

pub(super) const NO_DESCRIPTORS: Fault = Fault {
    name: "no-descriptors",
    what: "no further file descriptors for 0.5 to 2 s",
    not_for: |subject| (subject.name == "agents").then_some("as of `hold`, which they load"),
    inject: |running, _, draw| {
        let Some(id) = running.id("server") else { return Ok(Instant::now()) };
        let pid = Pid::from_raw(id as i32);
        let open = fs::read_dir(format!("/proc/{id}/fd")).map_or(0, Iterator::count);
        let before = getrlimit(Resource::Nofile);
        let limit = Rlimit { current: Some((open + draw.below(3)) as u64), maximum: before.maximum };
        let before = prlimit(pid, Resource::Nofile, limit).map_err(failed)?;
        let connections: Vec<_> = (0..20).map(|_| TcpStream::connect(&running.scene().address)).collect();
        wait(draw, 500, 2000);
        drop(connections);
        prlimit(pid, Resource::Nofile, before).map_err(failed)?;
        Ok(Instant::now())
    },
    ..PLAIN
};

pub(super) const MEMORY_LIMIT: Fault = Fault {
    name: "memory-limit",
    what: "a memory limit (cgroup) for 1 to 3 s, under a flood",
    not_for: |subject| (subject.name == "agents").then_some("as of `hold`, which they load"),
    may_end: true,
    inject: |running, load, draw| {
        let Some(id) = running.id("server") else { return Ok(Instant::now()) };
        let limit = [1_u64, 2, 4, 16][draw.below(4)] << 20;
        let group = MemoryGroup::new(id, limit)
            .map_err(|error| NotInjected::LeftOut(format!("a memory cgroup cannot be made: {error}")))?;
        (super::clients::FLOOD.inject)(running, load, draw)?;
        wait(draw, 500, 2000);
        drop(group);
        let lifted = Instant::now();
        running.start_again().map_err(NotInjected::Failed)?;
        Ok(lifted)
    },
    ..PLAIN
};

/// A cgroup with a process in it, which leaves it when this is dropped.
struct MemoryGroup {
    parent: PathBuf,
    path: PathBuf,
    limit: PathBuf,
    unlimited: &'static str,
    id: u32,
}

impl MemoryGroup {
    fn new(id: u32, limit: u64) -> std::io::Result<Self> {
        let (parent, name, unlimited) = match Path::new("/sys/fs/cgroup/memory").is_dir() {
            true => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "-1"),
            false => ("/sys/fs/cgroup", "memory.max", "max"),
        };
        let parent = PathBuf::from(parent);
        // Its name is drawn: other campaigns may run beside this one.
        let folder = tempfile::Builder::new().prefix("kendall-faults-").tempdir_in(&parent)?;
        let path = folder.keep();
        let group = Self { limit: path.join(name), path, parent, unlimited, id };
        fs::write(&group.limit, limit.to_string())?;
        fs::write(group.path.join("cgroup.procs"), id.to_string())?;
        Ok(group)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Programs that the process has started meanwhile stay in the group.
        let _ = fs::write(&self.limit, self.unlimited);
        // It fails for a process that has ended, which is no longer in the group.
        let _ = fs::write(self.parent.join("cgroup.procs"), self.id.to_string());
        let begun = Instant::now();
        while fs::remove_dir(&self.path).is_err() && begun.elapsed() < Duration::from_secs(2) {
            sleep(Duration::from_millis(20));
        }
    }
}

/// The library of Debian's package libfaketime.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

pub(super) const CLOCK_JUMP: Fault = Fault {
    name: "clock-jump",
    what: "the server's clock jumps by an hour to ten years, and back",
    others_are_served: always,
    before: |scene| {
        let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"];
        let library = folders.iter().map(|folder| Path::new(folder).join(LIBRARY)).find(|path| path.exists());
        let library =
            library.ok_or_else(|| NotInjected::LeftOut("libfaketime is not installed".to_owned()))?;
        shift(scene, "+0").map_err(failed)?;
        let variables = [
            ("LD_PRELOAD", library),
            ("FAKETIME_TIMESTAMP_FILE", scene.path("clock")),
            ("FAKETIME_NO_CACHE", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ];
        let text = |(name, value): (&str, PathBuf)| (name.to_owned(), value.to_string_lossy().into_owned());
        scene.environment.extend(variables.map(text));
        Ok(())
    },
    inject: |running, _, draw| {
        for jump in [draw.pick(&["+1h", "-1h", "+1d", "-1d", "+3650d", "-3650d"]), "+0"] {
            shift(running.scene(), jump).map_err(failed)?;
            wait(draw, 300, 1500);
        }
        Ok(Instant::now())
    },
    ..PLAIN
};

/// Replaces the file with the shift of the clock as a whole, because the server reads it at any time.
fn shift(scene: &Scene, by: &str) -> std::io::Result<()> {
    fs::write(scene.path("clock.new"), by)?;
    fs::rename(scene.path("clock.new"), scene.path("clock"))
}

fn failed(error: impl ToString) -> NotInjected {
    NotInjected::Failed(error.to_string())
}
