//! A worker's turn at a task: what the runtime gives the handler, and what the handler reports besides its result.

use crate::interrupt::Interrupt;

/// A chunk of work of one worker. `A` is the system's answer.
#[derive(Debug)]
pub struct Turn<A> {
    worker: usize,
    units: u64,
    interrupt: Interrupt,
    reported: Reported,
    besides: Vec<(Vec<u8>, A)>,
}

/// The handler's report of a task's service.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reported {
    pub(crate) service_ns: Option<i64>,
    pub(crate) fixed_ns: Option<i64>,
}

impl Reported {
    /// Merges a later report.
    pub(crate) fn update(&mut self, later: Self) {
        self.service_ns = later.service_ns.or(self.service_ns);
        self.fixed_ns = later.fixed_ns.or(self.fixed_ns);
    }
}

impl<A> Turn<A> {
    /// A turn of about `units` units at the calling worker.
    pub fn new(worker: usize, units: u64, interrupt: Interrupt) -> Self {
        Self { worker, units, interrupt, reported: Reported::default(), besides: Vec::new() }
    }

    /// The number of the worker, from 0.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// The most units to do: candidates, rows, bytes, whatever the handler can count.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// The task's interrupt token. A handler that ignores it delays others by the rest of its chunk.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Reports the service that the whole task received, in ns, if the handler knows better than the wall clock: a process
    /// that shares the processors with others, for example. The last report counts.
    pub fn report_service_ns(&mut self, service_ns: i64) {
        self.reported.service_ns = Some(service_ns);
    }

    /// Reports the part of the task's service, in ns, that every request has in common.
    pub fn report_fixed_ns(&mut self, fixed_ns: i64) {
        self.reported.fixed_ns = Some(fixed_ns);
    }

    /// Answers the waiting requests with this [key](crate::Decoded::sharing), which this turn has served as well.
    pub fn answer_besides(&mut self, key: Vec<u8>, answer: A) {
        self.besides.push((key, answer));
    }

    /// The handler's report of the service, and its answers to other requests.
    pub(crate) fn into_parts(self) -> (Reported, Vec<(Vec<u8>, A)>) {
        (self.reported, self.besides)
    }
}

/// The result of a chunk of work.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<A> {
    /// The request needs more service.
    Continue {
        /// The service that the job received in this chunk, in the unit of its size.
        attained: f64,
    },
    /// The answer has begun, and there is more to do: for example a stream that grows with the work. All clients of the
    /// request receive it from its start, and so do those that join later. The work ends with [`Done`](Self::Done), whose own
    /// answer is then sent to no client of a plain connection. An answer that has begun and cannot continue ends with a reset
    /// of its connections.
    Begun {
        /// The answer to send from now on.
        answer: A,
        /// The service that the request has received, as in [`Continue`](Self::Continue).
        attained: f64,
    },
    /// The answer is complete.
    Done(A),
}
