//! The memory of connections that wait.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;

use kendall_faults::subjects::{Part, Running, Scene, Subject, subject};
use kendall_testbed::{reset, wait_until};

use crate::kendall;

/// Clients at a time; the server accepts twice as many.
const CLIENTS: usize = 500;
/// The server's memory for one of them, at most. A task, its socket and the beginning of its file need some 12 KiB; a buffer for
/// the whole file would need 200.
const MOST_KB: u64 = 24;

#[test]
fn files_that_wait_on_disk_hold_little_memory() {
    hold_little(subject("recover").unwrap(), 2);
}

#[test]
fn files_that_wait_in_memory_hold_what_has_arrived() {
    let with_memory = Subject {
        parts: |scene| {
            let command = scene.kendall(["serve", "recover", "--listen", &scene.address]);
            vec![Part { role: "server", command, ready: "listening on" }]
        },
        ..*subject("recover").unwrap()
    };
    hold_little(Box::leak(with_memory.into()), 1);
}

/// Each client needs this many descriptors: for its socket, and for a temporary file where there is no memory for files.
fn hold_little(recover: &'static Subject, descriptors_each: usize) {
    let Some(kendall) = kendall() else { return };
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::new(&kendall, folder.path()).unwrap();
    let mut running = Running::start(recover, scene).unwrap().unwrap();
    let id = running.id("server").unwrap();
    let descriptors = || fs::read_dir(format!("/proc/{id}/fd")).unwrap().count();
    let memory_kb = || {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    // A known password needs no search.
    let digest = b"\x5b\xaa\x61\xe4\xc9\xb9\x3f\x3f\x06\x82\x25\x0b\x6c\xf8\x33\x1b\x7e\xe6\x8f\xd8";
    let head = [&digest[..], &8_u32.to_be_bytes(), &200_000_u64.to_be_bytes()].concat();
    let request = [head, vec![1; 4000]].concat();
    let (memory_before_kb, descriptors_before) = (memory_kb(), descriptors());
    // New memory of the kernel counts once it is written; the memory of the first clients, which the next ones reuse, is.
    for _ in 0..3 {
        let connect = |_| TcpStream::connect(&running.scene().address).unwrap();
        let clients: Vec<TcpStream> = (0..CLIENTS).map(connect).collect();
        clients.iter().for_each(|mut client| client.write_all(&request).unwrap());
        // The small memory for files has space for the first ones.
        wait_until("all wait", || descriptors() > descriptors_before + descriptors_each * CLIENTS - 10);
        let waiting_kb = memory_kb();
        clients.into_iter().for_each(reset);
        wait_until("all have gone", || descriptors() < descriptors_before + 10);
        let more_kb = waiting_kb.max(memory_kb()).saturating_sub(memory_before_kb);
        assert!(more_kb < MOST_KB * CLIENTS as u64, "{more_kb} KiB more than before");
    }
}
