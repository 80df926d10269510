//! A reading of a thread, a process, or the machine. Rows become `resources.parquet` and, added up, a
//! [`Summary`](crate::Summary).

use kendall_archive::series::Layout;
use serde::{Deserialize, Serialize};

/// The owner of the resources in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The system under test.
    Server,
    /// The load generator.
    Generator,
    /// The machine as a whole.
    Machine,
}

impl Role {
    /// The role's name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Generator => "generator",
            Self::Machine => "machine",
        }
    }
}

/// The state of a thread when the sampler read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadState {
    /// On a core, or waiting for one.
    Running,
    /// Waiting for a mutex that another thread holds.
    Lock,
    /// Waiting for work: on a condition variable, or on many descriptors at once.
    Idle,
    /// Sleeping for a given time.
    Asleep,
    /// Waiting for bytes from a client: the rest of a request, or the next one.
    Client,
    /// Waiting until a client takes bytes of an answer.
    Sending,
    /// Waiting for an answer of another server.
    BackEnd,
    /// Waiting for a file or a disk.
    Disk,
    /// The thread waits for another cause.
    Other,
}

impl ThreadState {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Running,
        Self::Lock,
        Self::Idle,
        Self::Asleep,
        Self::Client,
        Self::Sending,
        Self::BackEnd,
        Self::Disk,
        Self::Other,
    ];

    /// The state's name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Lock => "lock",
            Self::Idle => "idle",
            Self::Asleep => "asleep",
            Self::Client => "client",
            Self::Sending => "sending",
            Self::BackEnd => "back end",
            Self::Disk => "disk",
            Self::Other => "other",
        }
    }
}

/// A quantity of a row. Times and counts only grow: they count from the start of the thread, the process or the machine, so the
/// difference of two rows gives the interval between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "`meaning` says what each is")]
pub enum Column {
    Cpu,
    RunQueueWait,
    Turns,
    User,
    System,
    EndedChildren,
    Voluntary,
    Involuntary,
    LockAddress,
    Threads,
    Memory,
    MinorFaults,
    MajorFaults,
    DiskRead,
    DiskWritten,
    Read,
    Written,
    NetIn,
    NetOut,
    Retransmits,
    ListenDrops,
    AcceptQueue,
    AcceptQueueLimit,
    Connections,
    RoundTrip,
    Unread,
    UnreadConnections,
    Unsent,
    SendBlocked,
    HeldBack,
    ConnectionRetransmits,
    BackEndConnections,
    BackEndBusy,
    GroupCpu,
    Throttled,
    Busy,
    Steal,
    IoWait,
    CpuPressure,
    IoPressure,
    MemoryPressure,
}

impl Column {
    /// Every column, in the order of the table.
    pub const ALL: [Self; 41] = [
        Self::Cpu,
        Self::RunQueueWait,
        Self::Turns,
        Self::User,
        Self::System,
        Self::EndedChildren,
        Self::Voluntary,
        Self::Involuntary,
        Self::LockAddress,
        Self::Threads,
        Self::Memory,
        Self::MinorFaults,
        Self::MajorFaults,
        Self::DiskRead,
        Self::DiskWritten,
        Self::Read,
        Self::Written,
        Self::NetIn,
        Self::NetOut,
        Self::Retransmits,
        Self::ListenDrops,
        Self::AcceptQueue,
        Self::AcceptQueueLimit,
        Self::Connections,
        Self::RoundTrip,
        Self::Unread,
        Self::UnreadConnections,
        Self::Unsent,
        Self::SendBlocked,
        Self::HeldBack,
        Self::ConnectionRetransmits,
        Self::BackEndConnections,
        Self::BackEndBusy,
        Self::GroupCpu,
        Self::Throttled,
        Self::Busy,
        Self::Steal,
        Self::IoWait,
        Self::CpuPressure,
        Self::IoPressure,
        Self::MemoryPressure,
    ];

    /// The name in the table, with its unit, and the meaning.
    pub fn named(self) -> (&'static str, &'static str) {
        match self {
            Self::Cpu => ("cpu_s", "CPU time so far, in seconds"),
            Self::RunQueueWait => {
                ("run_queue_wait_s", "time so far that it was ready to run and had no core, in seconds")
            }
            Self::Turns => ("turns", "how often it was given a core so far"),
            Self::User => ("user_s", "CPU time so far in its own code, in seconds"),
            Self::System => ("system_s", "CPU time so far in the kernel, in seconds"),
            Self::EndedChildren => (
                "ended_children_cpu_s",
                "CPU time of the processes that it started and that have ended, in seconds",
            ),
            Self::Voluntary => ("voluntary_switches", "how often it gave up its core so far, to wait"),
            Self::Involuntary => ("involuntary_switches", "how often its core was taken away so far"),
            Self::LockAddress => ("lock_address", "the address of the mutex that it waits for"),
            Self::Threads => ("threads", "threads it has"),
            Self::Memory => ("memory_bytes", "main memory it holds"),
            Self::MinorFaults => ("minor_faults", "pages mapped so far without reading a disk"),
            Self::MajorFaults => ("major_faults", "pages read so far from a disk"),
            Self::DiskRead => ("disk_read_bytes", "bytes so far that had to come from a disk"),
            Self::DiskWritten => ("disk_written_bytes", "bytes so far that have to go to a disk"),
            Self::Read => ("read_bytes", "bytes so far that reading calls returned, of files and pipes"),
            Self::Written => {
                ("written_bytes", "bytes so far that writing calls took, of files, pipes and sockets")
            }
            Self::NetIn => {
                ("net_in_bytes", "bytes so far that came into its network namespace, loopback included")
            }
            Self::NetOut => {
                ("net_out_bytes", "bytes so far that left its network namespace, loopback included")
            }
            Self::Retransmits => ("retransmits", "TCP segments sent again so far, in its network namespace"),
            Self::ListenDrops => (
                "listen_drops",
                "connections dropped so far because an accept queue was full, in its network namespace",
            ),
            Self::AcceptQueue => ("accept_queue", "connections that wait to be accepted"),
            Self::AcceptQueueLimit => ("accept_queue_limit", "connections that can wait to be accepted"),
            Self::Connections => ("connections", "its TCP connections with clients"),
            Self::RoundTrip => (
                "round_trip_s",
                "smoothed TCP round-trip time, the median over its connections with clients, in seconds",
            ),
            Self::Unread => ("unread_bytes", "bytes of clients that it has not read yet"),
            Self::UnreadConnections => {
                ("unread_connections", "connections with clients that have bytes which it has not read yet")
            }
            Self::Unsent => ("unsent_bytes", "bytes for clients that they have not acknowledged yet"),
            Self::SendBlocked => {
                ("send_blocked", "connections with clients that have bytes which cannot be sent yet")
            }
            Self::HeldBack => (
                "held_back",
                "connections with clients on which Nagle's algorithm holds bytes back until earlier ones are acknowledged",
            ),
            Self::ConnectionRetransmits => {
                ("connection_retransmits", "segments that its open connections with clients sent again")
            }
            Self::BackEndConnections => {
                ("back_end_connections", "TCP connections that it opened to other servers")
            }
            Self::BackEndBusy => {
                ("back_end_busy", "those of them on which it sent last, so that an answer is due")
            }
            Self::GroupCpu => ("cgroup_cpu_s", "CPU time so far of its control group, in seconds"),
            Self::Throttled => (
                "throttled_s",
                "time so far that its control group was kept from running by its quota, in seconds",
            ),
            Self::Busy => ("busy_s", "CPU time so far of all cores together, in seconds"),
            Self::Steal => ("steal_s", "time so far that other virtual machines had its cores, in seconds"),
            Self::IoWait => {
                ("io_wait_s", "time so far that cores were idle while a disk was waited for, in seconds")
            }
            Self::CpuPressure => {
                ("cpu_pressure_s", "time so far in which some thread waited for a core, in seconds")
            }
            Self::IoPressure => {
                ("io_pressure_s", "time so far in which some thread waited for a disk, in seconds")
            }
            Self::MemoryPressure => {
                ("memory_pressure_s", "time so far in which some thread waited for memory, in seconds")
            }
        }
    }
}

/// The columns of `resources.parquet`.
pub fn layout() -> Layout {
    let layout = Layout::new(
        "A row is a reading of a thread, of a process (without thread), or of the machine. A thread of which nothing \
         has changed since its last row has none. What could not be read, or was not read at this instant, is null. \
         `place` says where a thread was found.",
    );
    let layout = layout.label("role").label("process").label("thread").label("place");
    Column::ALL
        .into_iter()
        .map(Column::named)
        .fold(layout, |layout, (name, meaning)| layout.quantity(name, meaning))
}

/// The quantities of one reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    values: [Option<f64>; Column::ALL.len()],
    /// The state of the thread, if it was read.
    pub place: Option<ThreadState>,
}

impl Default for Reading {
    fn default() -> Self {
        Self { values: [None; Column::ALL.len()], place: None }
    }
}

impl Reading {
    /// A quantity, if it was read.
    pub fn get(&self, column: Column) -> Option<f64> {
        self.values[column as usize]
    }

    /// Sets a quantity.
    pub fn set(&mut self, column: Column, value: f64) {
        self.values[column as usize] = Some(value);
    }

    /// Sets a quantity, if it could be read.
    pub(crate) fn put(&mut self, column: Column, value: Option<f64>) {
        if value.is_some() {
            self.values[column as usize] = value;
        }
    }

    /// The quantities in the order of the table.
    pub fn values(&self) -> &[Option<f64>] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_stands_at_its_own_place_under_a_name_of_its_own() {
        for (at, column) in Column::ALL.into_iter().enumerate() {
            assert_eq!(column as usize, at);
            let mut reading = Reading::default();
            reading.set(column, 7.0);
            assert_eq!(reading.values()[at], Some(7.0));
        }
        let mut names = Column::ALL.map(|column| column.named().0);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
