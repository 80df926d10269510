//! Connections that find no room in the listen queue of a server.

use kendall_stats::number;

use crate::surroundings::LoadedServers;

/// How many connections found no room in a listen queue so far, in the network namespace of the servers; 0 where they are on another
/// machine.
pub(super) fn overflows(servers: &LoadedServers) -> u64 {
    let pid = match servers {
        LoadedServers::Known(pids) => pids.first().copied(),
        LoadedServers::Unknown => Some(std::process::id()),
    };
    pid.and_then(kendall_probe::listen_overflows).unwrap_or_default()
}

/// What that does to response times, as a sentence, by the load with most such connections. `None` without any.
pub(super) fn doubt(loads: &[(String, u64)]) -> Option<String> {
    let (name, count) = loads.iter().max_by_key(|load| load.1).filter(|load| load.1 > 0)?;
    Some(format!(
        "in the load {name}, {} found no room in a listen queue of this machine: a client then tries again after 1 s, 3 s and more (RFC 6298), \
         which no prediction contains. Give the server a longer queue (its backlog, and net.core.somaxconn)",
        number::counted(*count, "connection")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_with_most_connections_without_room_is_named() {
        let loads = [("queue-round-1".to_owned(), 0), ("high-70".into(), 3), ("high-85".into(), 1_200)];
        let doubt = doubt(&loads).unwrap();
        assert!(doubt.starts_with("in the load high-85, 1200 connections found no room"), "{doubt}");
        assert_eq!(super::doubt(&loads[..1]), None);
        assert_eq!(overflows(&LoadedServers::Known(Vec::new())), 0);
    }
}
