//! A server in this process on a free port, shut down at the end of the test.

use std::num::NonZeroUsize;

use kendall_digest::Engine;
use kendall_reverse::{Config, Execution, ReverseOptions, bind};
use kendall_testbed::Running;

/// Two threads, ranges without a limit, defaults otherwise.
pub(crate) fn options() -> ReverseOptions {
    let options = ReverseOptions::new("127.0.0.1:0".parse().unwrap(), Engine::Portable);
    ReverseOptions {
        service: Config { workers: NonZeroUsize::new(2).unwrap(), ..options.service },
        most_candidates: u64::MAX,
        ..options
    }
}

/// One thread, so that the order of service shows.
pub(crate) fn one_worker() -> ReverseOptions {
    with(options(), |config| config.workers = NonZeroUsize::MIN)
}

/// The options with a change to those of the runtime.
pub(crate) fn with(mut options: ReverseOptions, change: impl FnOnce(&mut Config)) -> ReverseOptions {
    change(&mut options.service);
    options
}

/// Every assignment of searches to threads, on two.
pub(crate) fn on_threads() -> [ReverseOptions; 3] {
    [Execution::Sequential, Execution::ThreadPool, Execution::SharedChunks]
        .map(|execution| ReverseOptions { execution, ..options() })
}

/// Runs a server for the duration of a test.
pub(crate) fn run(options: ReverseOptions) -> Running {
    let server = bind(options).unwrap();
    let (address, metrics, stop) = (server.local_addr(), server.handle(), server.handle());
    Running::new(address, move || metrics.metrics_text(), move || stop.shut_down(), || server.run())
}
