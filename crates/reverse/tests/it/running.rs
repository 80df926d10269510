//! A server of this process on a free port, shut down when the test is over.

use std::num::NonZeroUsize;

use kendall_digest::Engine;
use kendall_reverse::{Config, Execution, Options, bind};
use kendall_testbed::Running;

/// Two threads, ranges without a bound, everything else by default.
pub(crate) fn options() -> Options {
    let options = Options::new("127.0.0.1:0".parse().unwrap(), Engine::Portable);
    Options {
        service: Config { workers: NonZeroUsize::new(2).unwrap(), ..options.service },
        most_candidates: u64::MAX,
        ..options
    }
}

/// One thread, so that the order of service shows.
pub(crate) fn one_worker() -> Options {
    with(options(), |config| config.workers = NonZeroUsize::MIN)
}

/// The options with a change to what any server is told.
pub(crate) fn with(mut options: Options, change: impl FnOnce(&mut Config)) -> Options {
    change(&mut options.service);
    options
}

/// Every way to lay searches on threads, on two.
pub(crate) fn on_threads() -> [Options; 3] {
    [Execution::Sequential, Execution::ThreadPool, Execution::SharedChunks]
        .map(|execution| Options { execution, ..options() })
}

/// Runs a server while a test does.
pub(crate) fn run(options: Options) -> Running {
    let server = bind(options).unwrap();
    let (address, metrics, stop) = (server.local_addr(), server.handle(), server.handle());
    Running::new(address, move || metrics.metrics_text(), move || stop.shut_down(), || server.run())
}
