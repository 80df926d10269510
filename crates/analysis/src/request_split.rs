//! The split of the time of one request in the server, from what the kernel shows of its threads and sockets without any
//! privilege.
//!
//! By Little's law, the mean number of threads (or connections) at a place is the rate of requests times the mean time that each
//! spends there. Time on cores and ready without one is exact (schedstat); the places of waits are found by looking at the
//! threads now and then, and the sockets by sock_diag. What no thread shows is the rest, and named as such.

use kendall_probe::{Summary, ThreadState};
use kendall_stats::number::{percent, significant, time};
use serde::{Deserialize, Serialize};

use crate::bottleneck::AnswersSeen;
use crate::table::Table;

/// A part below this share of a request is not listed.
const LEAST_SHARE: f64 = 0.0005;

/// The split of the time of one request in the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestSplit {
    /// The mean time from sending a request to its whole answer, in seconds.
    pub request_s: f64,
    /// Answers per second.
    pub throughput_per_s: f64,
    /// The measured parts, in the order of their table.
    pub parts: Vec<SplitPart>,
    /// The rest of the request's time, in seconds.
    pub unseen_s: f64,
    /// The number of samples of the server's threads.
    pub looks: u64,
    /// The parts of the request's time that remain unknown, as sentences.
    pub unknown: Vec<String>,
}

/// A part of a request's time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitPart {
    /// The place.
    pub at: SplitPlace,
    /// The mean for each request, in seconds.
    pub time_s: f64,
    /// The share of the request's time, or of the sum of all parts where that is more.
    pub share: f64,
}

/// A place in which a request spends time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitPlace {
    /// In the socket: it has come and was not read, while no thread was ready to.
    Unread,
    /// In a thread on a core.
    OnCpu,
    /// In a thread that is ready and has no core.
    Runnable,
    /// In a thread that waits for a mutex.
    Lock,
    /// In a thread that waits for a file or a disk.
    Disk,
    /// In a thread that waits for another server.
    BackEnd,
    /// In a thread that sleeps for a given time.
    Sleeping,
    /// In a thread that waits for another cause.
    OtherWait,
    /// The server's answer waits for the client: in a thread that writes, or in a socket that is full.
    Client,
    /// Nagle's algorithm holds the server's answer back.
    HeldBack,
}

impl SplitPlace {
    /// The place's name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unread => "in the socket, not read",
            Self::OnCpu => "on a core",
            Self::Runnable => "ready, without a core",
            Self::Lock => "waiting for a lock",
            Self::Disk => "waiting for the disk",
            Self::BackEnd => "waiting for a back end",
            Self::Sleeping => "sleeping",
            Self::OtherWait => "waiting otherwise",
            Self::Client => "waiting for the client",
            Self::HeldBack => "held back (Nagle)",
        }
    }
}

impl RequestSplit {
    /// The split of the mean request of a load; `None` if no server was watched or no request was answered.
    pub fn of(summary: &Summary, answers: &AnswersSeen) -> Option<Self> {
        let server = summary.server.as_ref()?;
        let (request_s, per_s) = (answers.request_s.or(answers.response_s)?, answers.throughput_per_s?);
        if !(request_s > 0.0 && per_s > 0.0) {
            return None;
        }
        let places = server.places.as_ref();
        let at = |place| places.map_or(0.0, |places| places.at(place).1);
        let connections = server.connections.unwrap_or_default();
        let blocked = connections.blocked_connections.unwrap_or(0.0);
        let unread = connections.unread_connections.unwrap_or(0.0);
        let asleep = at(ThreadState::Asleep) - places.map_or(0.0, |places| places.resting);
        let present = [
            // A thread that is ready to read a request is counted as ready.
            (SplitPlace::Unread, unread - server.waiting_threads),
            (SplitPlace::OnCpu, server.cpu_cores),
            (SplitPlace::Runnable, server.waiting_threads),
            (SplitPlace::Lock, at(ThreadState::Lock)),
            (SplitPlace::Disk, at(ThreadState::Disk)),
            (SplitPlace::BackEnd, at(ThreadState::BackEnd)),
            (SplitPlace::Sleeping, asleep),
            (SplitPlace::OtherWait, at(ThreadState::Other)),
            (SplitPlace::Client, at(ThreadState::Sending).max(blocked)),
            (SplitPlace::HeldBack, connections.held_back.map_or(0.0, |(mean, _)| mean)),
        ];
        let times = present.map(|(at, mean)| (at, mean.max(0.0) / per_s));
        let seen_s: f64 = times.iter().map(|(_, time_s)| time_s).sum();
        let whole_s = request_s.max(seen_s);
        let part = |(at, time_s): (SplitPlace, f64)| SplitPart { at, time_s, share: time_s / whole_s };
        Some(Self {
            request_s,
            throughput_per_s: per_s,
            parts: times.into_iter().map(part).filter(|part| part.share >= LEAST_SHARE).collect(),
            unseen_s: (request_s - seen_s).max(0.0),
            looks: places.map_or(0, |places| places.looks),
            unknown: unknown(summary, at(ThreadState::Client), seen_s > 1.05 * request_s),
        })
    }

    /// The share of the time that no part explains.
    pub fn unseen_share(&self) -> f64 {
        self.unseen_s / self.request_s
    }

    /// The title of the table.
    pub fn title(&self) -> String {
        format!(
            "One request's time in the server: {} on average, from sending to the whole answer",
            time(self.request_s)
        )
    }

    /// The parts and the rest.
    pub fn table(&self) -> Table {
        let head = ["where", "time", "share"].map(str::to_owned).to_vec();
        let row = |name: &str, time_s: f64, share: f64| vec![name.to_owned(), time(time_s), percent(share)];
        let mut rows: Vec<_> =
            self.parts.iter().map(|part| row(part.at.name(), part.time_s, part.share)).collect();
        rows.push(row("not seen", self.unseen_s, self.unseen_share()));
        Table { head, rows }
    }

    /// The note below the table: how many samples it is from, and what remains unknown.
    pub fn note(&self) -> String {
        let looks = format!(
            "From {} samples of its threads and {} answers a second.",
            self.looks,
            significant(self.throughput_per_s, 3)
        );
        std::iter::once(looks).chain(self.unknown.iter().cloned()).collect::<Vec<_>>().join(" ")
    }
}

/// The parts of the request's time that a split does not show.
fn unknown(summary: &Summary, reading: f64, exceeds: bool) -> Vec<String> {
    let mut sentences = vec![
        "“Not seen” is time that no thread and no socket shows: queues within the server, timers of an event loop, the network and the \
         generator. Other work of the server counts as work for its requests."
            .to_owned(),
    ];
    let server = summary.server.as_ref();
    if server.is_none_or(|server| server.places.is_none()) {
        sentences.push(
            "The places where threads wait could not be read, so “not seen” includes all their waits.".into(),
        );
    } else if summary.missing.iter().any(|what| what.starts_with("waits for locks")) {
        sentences.push("Waits for locks and back ends could not be distinguished from others.".into());
    }
    if server.is_none_or(|server| server.connections.is_none()) {
        sentences.push("Its sockets could not be seen.".into());
    }
    if reading >= 0.05 {
        sentences.push(format!(
            "{} threads on average wait for bytes of clients. The kernel does not show whether they wait for the rest of a request or \
             for the next one, so no part includes this wait.",
            significant(reading, 2)
        ));
    }
    if exceeds {
        sentences.push(
            "The parts exceed a request's time: several threads work for one request, or the server does other work.".into(),
        );
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_probe::{Connections, Cost, MachineUse, Places, Timeline, Use};

    /// A server of 100 requests a second, of 50 ms each.
    fn split(change: impl FnOnce(&mut Use)) -> RequestSplit {
        let mut server = Use {
            cpu_cores: 0.5,
            waiting_threads: 0.25,
            places: Some(Places { looks: 100, ..Places::default() }),
            connections: Some(Connections { looks: 100, ..Connections::default() }),
            ..Use::default()
        };
        change(&mut server);
        let summary = Summary {
            length_s: 10.0,
            cost: Cost { cpu_s: 0.05, samples: 1000, skipped: 0, every_s: 0.01 },
            cores: 4.0,
            machine: MachineUse::default(),
            server: Some(server),
            generator: None,
            timeline: Timeline::default(),
            missing: Vec::new(),
        };
        let answers = AnswersSeen {
            response_s: Some(0.06),
            request_s: Some(0.05),
            throughput_per_s: Some(100.0),
            pauses: None,
        };
        RequestSplit::of(&summary, &answers).unwrap()
    }

    fn time_s(split: &RequestSplit, at: SplitPlace) -> f64 {
        split.parts.iter().find(|part| part.at == at).map_or(0.0, |part| part.time_s)
    }

    #[test]
    fn the_mean_number_at_a_place_is_the_rate_times_the_time_there() {
        let found = split(|server| {
            let places = server.places.as_mut().unwrap();
            places.found = vec![
                (ThreadState::Asleep, 1.0, 3.0),
                (ThreadState::Lock, 0.3, 0.4),
                (ThreadState::Client, 1.0, 7.0),
            ];
            places.resting = 1.0;
        });
        let close =
            |at, expected: f64| assert!((time_s(&found, at) - expected).abs() < 1e-12, "{at:?} {found:?}");
        close(SplitPlace::OnCpu, 0.005);
        close(SplitPlace::Runnable, 0.0025);
        // One of the three threads that sleep only keeps house.
        close(SplitPlace::Sleeping, 0.02);
        close(SplitPlace::Lock, 0.004);
        assert!((found.unseen_s - 0.0185).abs() < 1e-12);
        let shares: f64 = found.parts.iter().map(|part| part.share).sum::<f64>() + found.unseen_share();
        assert!((shares - 1.0).abs() < 1e-9);
        assert!(
            found.note().contains("7.0 threads on average wait for bytes of clients"),
            "{}",
            found.note()
        );
    }

    #[test]
    fn shares_add_up_to_one_however_much_was_seen() {
        let found = split(|server| server.cpu_cores = 12.0);
        let shares: f64 = found.parts.iter().map(|part| part.share).sum();
        assert!((shares - 1.0).abs() < 1e-9 && found.unseen_s == 0.0);
        assert!(found.note().contains("exceed"), "{}", found.note());
    }

    #[test]
    fn what_could_not_be_read_is_said() {
        let found = split(|server| (server.places, server.connections) = (None, None));
        assert!(found.note().contains("The places where threads wait could not be read"), "{}", found.note());
        assert!(found.note().contains("sockets could not be seen"));
        let table = found.table();
        assert!(table.rows.iter().flatten().all(|cell| !cell.is_empty()));
    }
}
