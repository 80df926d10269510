//! CurveCP beside QUIC on the loopback interface: one stream, both ends on the same two processors. And what a server sustains:
//! ten thousand connections, and a flood of Hellos.

mod crowd;
mod flood;
mod ours;
mod quic;

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::{ROUNDS, median};

/// Bytes of a transfer.
const BYTES: usize = 1_000_000_000;
/// Bytes that an application writes or reads at once.
const PIECE: usize = 256 << 10;
/// Bytes of a stream that may be under way, for both: as much as the link needs and more.
const WINDOW: u32 = 16 << 20;
/// Bytes of a socket's buffer in the kernel, each way, for both.
const SOCKET_BUFFER: usize = 4 << 20;
/// Processors for both ends together.
const PROCESSORS: usize = 2;

/// What a transfer took.
struct Transfer {
    bytes: usize,
    took: Duration,
    sender_cpu: Duration,
    receiver_cpu: Duration,
}

impl Transfer {
    fn gb(&self) -> f64 {
        self.bytes as f64 / 1e9
    }

    fn gb_per_s(&self) -> f64 {
        self.gb() / self.took.as_secs_f64()
    }

    fn cpu_s_per_gb(&self) -> f64 {
        (self.sender_cpu + self.receiver_cpu).as_secs_f64() / self.gb()
    }
}

pub(crate) fn section(page: &mut String) {
    page.push_str("\n## CurveCP\n\n");
    beside_quic(page);
    crowd::row(page);
    flood::table(page);
}

fn beside_quic(page: &mut String) {
    let Some(identity) = quic::Identity::new() else {
        page.push_str("Not compared with QUIC: openssl is not installed, which makes its certificate.\n");
        return;
    };
    let rounds: Vec<[Transfer; 2]> =
        (0..ROUNDS).map(|_| [ours::transfer(BYTES, |_| {}), quic::transfer(&identity)]).collect();
    page.push_str(
        "1 GB over one stream on the loopback interface; each end is a thread with a runtime of its own, both on the same two \
         processors. quinn has its default transport configuration, segmented sends included, but windows of 16 MiB; both have \
         socket buffers of 4 MiB.\n\n\
         | | GB/s | sender, CPU s/GB | receiver, CPU s/GB | both |\n| --- | ---: | ---: | ---: | ---: |\n",
    );
    for (side, name) in ["curve", "quinn"].into_iter().enumerate() {
        let of = |value: fn(&Transfer) -> f64| median(rounds.iter().map(|round| value(&round[side])));
        let gb = BYTES as f64 / 1e9;
        let _ = writeln!(
            page,
            "| {name} | {:.2} | {:.2} | {:.2} | {:.2} |",
            of(Transfer::gb_per_s),
            of(|one| one.sender_cpu.as_secs_f64()) / gb,
            of(|one| one.receiver_cpu.as_secs_f64()) / gb,
            of(Transfer::cpu_s_per_gb),
        );
    }
    let ratio =
        |value: fn(&Transfer) -> f64| median(rounds.iter().map(|[ours, quic]| value(ours) / value(quic)));
    let _ = writeln!(
        page,
        "\ncurve has {:.2} times quinn's throughput (at least 1.5 wanted) at {:.2} times its processor time (at most 0.6).",
        ratio(Transfer::gb_per_s),
        ratio(Transfer::cpu_s_per_gb),
    );
}

/// Runs both ends, each on a thread of its own; the receiver returns when it has everything.
fn run(bytes: usize, receive: impl FnOnce() + Send, send: impl FnOnce() + Send) -> Transfer {
    let start = Instant::now();
    let (sender_cpu, receiver_cpu) = thread::scope(|scope| {
        let [sender, receiver] = [scope.spawn(|| timed(send)), scope.spawn(|| timed(receive))];
        (sender.join().expect("the sender ends well"), receiver.join().expect("the receiver ends well"))
    });
    Transfer { bytes, took: start.elapsed(), sender_cpu, receiver_cpu }
}

/// The processor time of this thread in the work.
fn timed(work: impl FnOnce()) -> Duration {
    confine();
    work();
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("it is not negative")
}

/// Confines this thread to the first processors that it may use.
fn confine() {
    let allowed = sched_getaffinity(None).expect("a thread can ask for its own processors");
    let mut few = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).take(PROCESSORS).for_each(|cpu| few.set(cpu));
    sched_setaffinity(None, &few).expect("a thread may use fewer processors");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}
