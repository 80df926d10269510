//! A transfer between two threads that share two processors, and what it took.

use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Bytes of a transfer.
pub(crate) const BYTES: usize = 1_000_000_000;
/// Bytes that an application writes or reads at once.
pub(crate) const PIECE: usize = 256 << 10;
/// Bytes of a stream that may be under way, for both: as much as the link needs and more.
pub(crate) const WINDOW: u32 = 16 << 20;
/// Bytes of a socket's buffer in the kernel, each way, for both.
pub(crate) const SOCKET_BUFFER: usize = 4 << 20;
/// Processors for both ends together.
const PROCESSORS: usize = 2;

/// What a transfer took.
pub(crate) struct Transfer {
    pub(crate) bytes: usize,
    pub(crate) took: Duration,
    pub(crate) sender_cpu: Duration,
    pub(crate) receiver_cpu: Duration,
}

impl Transfer {
    pub(crate) fn gb(&self) -> f64 {
        self.bytes as f64 / 1e9
    }

    pub(crate) fn gb_per_s(&self) -> f64 {
        self.gb() / self.took.as_secs_f64()
    }

    pub(crate) fn cpu_s_per_gb(&self) -> f64 {
        (self.sender_cpu + self.receiver_cpu).as_secs_f64() / self.gb()
    }
}

/// Runs both ends, each on its own thread; the receiver returns when it has everything.
pub(crate) fn run(bytes: usize, receive: impl FnOnce() + Send, send: impl FnOnce() + Send) -> Transfer {
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
    cpu_time()
}

/// Time that this thread has spent on a processor.
pub(crate) fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("it is not negative")
}

/// Confines this thread to the first processors that it may use.
pub(crate) fn confine() {
    let allowed = sched_getaffinity(None).expect("a thread can ask for its own processors");
    let mut few = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).take(PROCESSORS).for_each(|cpu| few.set(cpu));
    sched_setaffinity(None, &few).expect("a thread may use fewer processors");
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}
