//! Finds the process of this machine that serves an address, by the open sockets of all processes.

use std::collections::HashSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::error::ProbeError;
use crate::proc::parse;

/// The tables of sockets (proc(5), /proc/net/tcp), and the state of a listening socket in them.
const TABLES: [(&str, &str); 4] =
    [("tcp", LISTENING), ("tcp6", LISTENING), ("udp", UNCONNECTED), ("udp6", UNCONNECTED)];
const LISTENING: &str = "0A";
const UNCONNECTED: &str = "07";

/// The process that serves the clients of an address. Where several hold its socket, it is the one that started the others.
///
/// # Errors
/// Fails where the address is another machine's, where nothing listens there, and where the process belongs to another user, so
/// that its sockets are hidden.
pub fn listener(address: SocketAddr) -> Result<u32, ProbeError> {
    // A process can listen only on an address of this machine.
    if UdpSocket::bind((address.ip(), 0)).is_err() {
        return Err(ProbeError::Elsewhere { address });
    }
    let of_table = |(name, state): (&str, &str)| {
        let text = fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
        sockets(&text, state, address)
    };
    // Datagrams only where nothing accepts streams: a port of HTTP/3 is usually one of HTTP/2 as well, of the same server.
    let [streams, datagrams] = [&TABLES[..2], &TABLES[2..]]
        .map(|tables| tables.iter().copied().flat_map(of_table).collect::<HashSet<u64>>());
    let inodes = if streams.is_empty() { datagrams } else { streams };
    if inodes.is_empty() {
        return Err(ProbeError::NoListener { address });
    }
    let holders: Vec<(u32, u32)> =
        processes().filter(|pid| holds(*pid, &inodes)).filter_map(|pid| Some((pid, parent(pid)?))).collect();
    match eldest(&holders)[..] {
        [] => Err(ProbeError::OtherUser { address }),
        [pid] => Ok(pid),
        ref several => {
            let pids = several.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            Err(ProbeError::SeveralListen { address, pids })
        }
    }
}

/// The processes that none of the others has started, from pairs of process and parent. The first process of a machine (systemd)
/// holds sockets for other processes, so it counts only where it is alone.
fn eldest(holders: &[(u32, u32)]) -> Vec<u32> {
    let is_holder = |pid: u32| pid != 1 && holders.iter().any(|holder| holder.0 == pid);
    let eldest =
        holders.iter().filter(|(pid, parent)| !is_holder(*parent) && (*pid != 1 || holders.len() == 1));
    eldest.map(|(pid, _)| *pid).collect()
}

/// The inodes of the sockets in this state on which clients of an address arrive.
fn sockets(table: &str, state: &str, address: SocketAddr) -> Vec<u64> {
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, inode) = (read_address(fields.get(1)?)?, fields.get(9)?.parse().ok()?);
        let any = local.ip().is_unspecified() && (local.is_ipv6() || address.is_ipv4());
        let here = local.port() == address.port()
            && (any || local.ip().to_canonical() == address.ip().to_canonical());
        (here && *fields.get(3)? == state).then_some(inode)
    };
    table.lines().filter_map(socket).collect()
}

/// Parses "0100007F:1F90": four-byte words in the machine's byte order, each in hexadecimal digits, and the port.
fn read_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(8 * at..8 * at + 8)?, 16).ok()?.to_ne_bytes());
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let mut bytes = [0; 16];
            for at in 0..4 {
                bytes[4 * at..4 * at + 4].copy_from_slice(&word(at)?);
            }
            Ipv6Addr::from(bytes).into()
        }
        _ => return None,
    };
    Some((ip, u16::from_str_radix(port, 16).ok()?).into())
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Whether a process has one of these sockets open, as far as permissions show.
fn holds(pid: u32, inodes: &HashSet<u64>) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    files.filter_map(|file| fs::read_link(file.ok()?.path()).ok()).any(|link| {
        let inode =
            link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        inode.is_some_and(|inode: u64| inodes.contains(&inode))
    })
}

/// The parent of a process: field 4 of its stat, after its name in brackets, which may hold blanks.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// How many connections found no room in a listen queue so far, in the network namespace of a process: `ListenOverflows` of
/// `/proc/PID/net/netstat`. `None` where the kernel does not count them.
pub fn listen_overflows(pid: u32) -> Option<u64> {
    let netstat = fs::read(format!("/proc/{pid}/net/netstat")).ok()?;
    parse::counter(&netstat, b"TcpExt:", b"ListenOverflows")
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::process;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_server_is_found_at_its_own_address_and_at_all() {
        let one = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(listener(one.local_addr().unwrap()).unwrap(), process::id());
        let all = TcpListener::bind("0.0.0.0:0").unwrap();
        assert_eq!(
            listener(([127, 0, 0, 1], all.local_addr().unwrap().port()).into()).unwrap(),
            process::id()
        );
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(listener(datagrams.local_addr().unwrap()).unwrap(), process::id());
    }

    #[test]
    fn who_is_not_there_or_not_here_is_said_to_be_so() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let refused = |address| listener(address).unwrap_err().to_string();
        assert!(refused(free).contains("nothing listens"), "{}", refused(free));
        // An address for documentation (RFC 5737), which no machine has.
        let far = ([192, 0, 2, 1], 80).into();
        assert!(refused(far).contains("not an address of this machine"), "{}", refused(far));
    }

    #[test]
    fn tables_are_read_as_the_kernel_writes_them() {
        let little = cfg!(target_endian = "little");
        let (loopback, mapped) = if little {
            ("0100007F", "0000000000000000FFFF00000100007F")
        } else {
            ("7F000001", "00000000000000000000FFFF7F000001")
        };
        let line = |ip: &str, state| {
            format!(
                "  0: {ip}:1F90 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 0 0 77 1 0\n"
            )
        };
        let address: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        let any = "0".repeat(32);
        for ip in [loopback, "00000000", mapped, &any] {
            assert_eq!(sockets(&line(ip, "0A"), "0A", address), [77], "{ip}");
        }
        assert!(sockets(&line(loopback, "01"), "0A", address).is_empty(), "a connection");
        assert!(sockets(&line(loopback, "0A"), "0A", "127.0.0.1:8081".parse().unwrap()).is_empty());
        assert!(sockets(&line(loopback, "0A"), "0A", "127.0.0.2:8080".parse().unwrap()).is_empty());
        assert!(sockets(&line("00000000", "0A"), "0A", "[::1]:8080".parse().unwrap()).is_empty());
        assert!(sockets("  sl  local_address rem_address   st\n", "0A", address).is_empty());
    }

    #[test]
    fn of_a_master_and_its_workers_it_is_the_master() {
        assert_eq!(eldest(&[(31, 30), (30, 7), (32, 30)]), [30]);
        assert_eq!(eldest(&[(31, 7), (40, 8)]), [31, 40]);
        // A socket that the first process passes on to the server that it starts.
        assert_eq!(eldest(&[(1, 0), (40, 1), (41, 40)]), [40]);
        assert_eq!(eldest(&[(1, 0)]), [1]);
    }

    #[test]
    fn connections_without_room_in_the_listen_queue_are_counted() {
        let before = listen_overflows(process::id()).unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&server, 1).unwrap();
        let address = server.local_addr().unwrap();
        let connected = || TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok();
        let all: Vec<_> = (0..6).map(|_| connected()).collect();
        assert!(all.iter().any(Option::is_none), "a queue of one has no room for six");
        assert!(listen_overflows(process::id()).unwrap() > before);
        assert_eq!(listen_overflows(0), None);
    }
}
