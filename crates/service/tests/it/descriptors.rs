//! A process without a file descriptor left.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::lines::{Peer, Server, config};
use kendall_testbed::{alone, wait_until};
use rustix::net::{AddressFamily, SocketType, connect, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

fn set_soft_limit(current: Option<u64>) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Sockets of clients, created while there still are descriptors.
fn sockets(count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| socket(AddressFamily::INET, SocketType::STREAM, None).unwrap().into()).collect()
}

fn connect_all(sockets: Vec<TcpStream>, server: SocketAddr) -> Vec<Peer> {
    let connected = |stream: TcpStream| {
        connect(&stream, &server).unwrap();
        Peer::over(stream)
    };
    sockets.into_iter().map(connected).collect()
}

#[test]
fn without_descriptors_connections_are_closed_at_once_and_nothing_spins() {
    // The limit is for the whole process.
    if !alone("descriptors::without_descriptors_connections_are_closed_at_once_and_nothing_spins") {
        return;
    }
    set_soft_limit(Some(200));
    let server = Server::new(config(1));
    assert!(getrlimit(Resource::Nofile).current != Some(200), "the server raises its limit");
    let mut early = Peer::connect(server.address);
    assert_eq!(early.ask("now\n"), "now");

    let late = sockets(10);
    let highest = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().file_name());
    let highest = highest.map(|name| name.to_str().unwrap().parse::<u64>().unwrap()).max().unwrap();
    // Every number below the highest is in use, or is taken here.
    let _fill: Vec<fs::File> = (0..highest)
        .map(|_| fs::File::open("/dev/null").unwrap())
        .take_while(|file| number(file) < highest)
        .collect();
    set_soft_limit(Some(highest));
    assert!(fs::File::open("/dev/null").is_err(), "no descriptor is left");

    let before = cpu_time();
    // Kept to the end: dropping one frees a descriptor.
    let mut late = connect_all(late, server.address);
    late.iter_mut().for_each(|peer| assert_eq!(peer.line(), "", "closed unanswered"));
    std::thread::sleep(Duration::from_millis(300));
    let used = cpu_time() - before;
    assert!(used < Duration::from_millis(150), "{used:?} of CPU in 300 ms of idleness");
    wait_until("all are counted", || server.closed("descriptors") == 10);
    assert_eq!(early.ask("work 3\n"), "done 3", "an open connection is served");

    set_soft_limit(getrlimit(Resource::Nofile).maximum);
    assert_eq!(Peer::connect(server.address).ask("now\n"), "now");
    wait_until("it is counted", || server.metric("connections_accepted_total") == 12);
}

fn number(file: &fs::File) -> u64 {
    use std::os::fd::AsRawFd;
    file.as_raw_fd() as u64
}
