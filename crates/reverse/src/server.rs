//! The server: each request is a search, done a chunk at a time, in the order of the discipline.
//!
//! Every complete request gets exactly 8 bytes. The protocol has no error, and course clients wait for ever for
//! an answer that does not come, so a request that finds nothing, or is turned away, is answered with 0.

use std::net::SocketAddr;

use kendall_service::{
    Config, Counter, Decoded, Handler, Malformed, Registry, Reply, Server, ServiceError, Step, Then,
    signalled,
};
use kendall_station::{Job, Size};

use crate::protocol::{Digest, NOT_FOUND, REQUEST_BYTES, Request, encode_answer};
use crate::search::search;

/// The candidates of a worker's first chunk: about a millisecond on a processor with SHA instructions.
const FIRST_CHUNK: u64 = 16_384;

/// Serves until SIGINT or SIGTERM. Calls `ready` with the address once connections are accepted.
///
/// # Errors
/// Fails if the addresses are taken, the file of stamps cannot be written or threads cannot be started.
pub fn serve(options: Config, ready: impl FnOnce(SocketAddr)) -> Result<(), ServiceError> {
    let server = Server::bind(options, Reverse::default())?;
    let address = server.local_addr();
    server.run_until(async move {
        let signalled = signalled();
        ready(address);
        signalled.await;
    })
}

/// Hash reversal as the runtime sees it. The unit of work is a candidate.
#[derive(Debug, Default)]
pub struct Reverse {
    /// Requests whose range held no answer.
    not_found: Counter,
}

/// A search that has come as far as `at`.
#[derive(Debug)]
pub struct Search {
    digest: Digest,
    at: u64,
    end: u64,
}

impl Reverse {
    /// The reply to a search that is over.
    fn reply(&self, found: Option<u64>) -> Reply {
        if found.is_none() {
            self.not_found.inc();
        }
        answer(found.unwrap_or(NOT_FOUND))
    }
}

impl Handler for Reverse {
    type Task = Search;

    fn max_request_bytes(&self) -> usize {
        REQUEST_BYTES
    }

    fn decode(&self, bytes: &[u8]) -> Result<Option<Decoded<Search>>, Malformed> {
        let Some(request) = Request::decode(bytes) else { return Ok(None) };
        let used_bytes = REQUEST_BYTES;
        if request.candidates() == 0 {
            tracing::debug!(start = request.start, end = request.end, "an empty range");
            return Ok(Some(Decoded::Answer { used_bytes, reply: self.reply(None) }));
        }
        let job = Job {
            // Weight 0 would wait for ever while anybody else does.
            weight: f64::from(request.priority.max(1)),
            size: Size::UniformUpTo(request.candidates() as f64),
            attained: 0.0,
        };
        let task = Search { digest: request.digest, at: request.start, end: request.end };
        Ok(Some(Decoded::Work { used_bytes, job, task }))
    }

    fn first_chunk(&self) -> u64 {
        FIRST_CHUNK
    }

    fn advance(&self, task: &mut Search, units: u64) -> Step {
        let to = task.at.saturating_add(units).min(task.end);
        let found = search(&task.digest, task.at, to);
        if found.is_some() || to == task.end {
            return Step::Done(self.reply(found));
        }
        let attained = (to - task.at) as f64;
        task.at = to;
        Step::Continue { attained }
    }

    fn refusal(&self) -> Reply {
        answer(NOT_FOUND)
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("reverse_not_found", "Searches without a find", self.not_found.clone());
    }
}

fn answer(answer: u64) -> Reply {
    Reply { bytes: encode_answer(answer).to_vec(), then: Then::Close }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::digest;
    use proptest::prelude::*;

    proptest! {
        /// However the work is cut, it ends with the same answer and the same total.
        #[test]
        fn chunks_of_any_size_search_the_whole_range_once(
            start: u64, length in 1u64..500, offset in 0u64..600, chunks in prop::collection::vec(1u64..100, 1..20),
        ) {
            let end = start.saturating_add(length);
            prop_assume!(start < end);
            let x = start.saturating_add(offset);
            let reverse = Reverse::default();
            let mut task = Search { digest: digest(x), at: start, end };
            let mut attained = 0.0;
            for &units in chunks.iter().cycle() {
                match reverse.advance(&mut task, units) {
                    Step::Continue { attained: more } => attained += more,
                    Step::Done(reply) => {
                        prop_assert_eq!(reply, answer(if x < end { x } else { NOT_FOUND }));
                        break;
                    }
                }
            }
            prop_assert!(attained < (end - start) as f64);
            prop_assert_eq!(reverse.not_found.get(), u64::from(x >= end));
        }
    }

    #[test]
    fn the_largest_range_and_the_lowest_priority_are_ordinary_jobs() {
        let request = Request { digest: digest(3), start: 0, end: u64::MAX, priority: 0 };
        let reverse = Reverse::default();
        let Ok(Some(Decoded::Work { job, mut task, .. })) = reverse.decode(&request.encode()) else {
            panic!("a range with candidates is work")
        };
        assert_eq!((job.weight, job.size), (1.0, Size::UniformUpTo(u64::MAX as f64)));
        assert!(matches!(reverse.advance(&mut task, 2), Step::Continue { attained: 2.0 }));
        assert!(matches!(reverse.advance(&mut task, 2), Step::Done(reply) if reply == answer(3)));
    }
}
