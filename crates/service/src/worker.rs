//! One worker: takes a request, serves it chunk by chunk, makes way where it must.

use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use kendall_record::clock::now_ns;
use kendall_record::stamps::Stamp;
use kendall_station::Entry;

use crate::handler::{Handler, Reply, Step};
use crate::metrics::{Fate, Times};
use crate::pool::{Next, Pending, Verdict, Waiter, Word};
use crate::server::Shared;
use crate::stamps::StampLog;

/// How many units make a chunk of the wanted length, learned from the chunks before.
#[derive(Debug)]
struct Pace {
    units: f64,
    target_ns: f64,
}

impl Pace {
    fn new(first: u64, target: Duration) -> Self {
        Self { units: first.max(1) as f64, target_ns: target.as_nanos() as f64 }
    }

    fn units(&self) -> u64 {
        self.units as u64
    }

    /// A factor of two at most, so that one chunk that was held up does not spoil the next hundred.
    fn learn(&mut self, took_ns: i64) {
        let factor = (self.target_ns / took_ns.max(1) as f64).clamp(0.5, 2.0);
        self.units = (self.units * factor).clamp(1.0, u64::MAX as f64);
    }
}

/// Serves until the server shuts down.
pub(crate) fn work<H: Handler>(shared: &Shared<H>, worker: usize, stamps: &StampLog) {
    let mut pace = Pace::new(shared.handler.first_chunk(), shared.config.chunk);
    let mut next = shared.pool.take(worker);
    let mut free_ns = i64::MIN;
    while let Some(entry) = next {
        // Whoever waited is taken up in the instant in which the worker came free, so that the services of a busy worker
        // follow each other without a gap, and add up to the time it was busy.
        let begun_ns = if entry.item.queued_ns <= free_ns { free_ns } else { now_ns() };
        (next, free_ns) = serve(shared, worker, stamps, &mut pace, entry, begun_ns);
    }
}

/// Serves one request until it ends or must make way; returns the next one, and when the worker came free.
fn serve<H: Handler>(
    shared: &Shared<H>,
    worker: usize,
    stamps: &StampLog,
    pace: &mut Pace,
    mut entry: Entry<Pending<H::Task>>,
    begun_ns: i64,
) -> (Option<Entry<Pending<H::Task>>>, i64) {
    let (pool, handler) = (&shared.pool, &shared.handler);
    let mut before_ns = begun_ns;
    entry.item.started_ns.get_or_insert(before_ns);
    loop {
        // A panic leaves the task half done, and it is never touched again.
        let step =
            catch_unwind(AssertUnwindSafe(|| handler.advance(worker, &mut entry.item.task, pace.units())));
        let now = now_ns();
        entry.item.service_ns += now - before_ns;
        let progress = match step {
            Ok(Step::Continue { attained }) => {
                pace.learn(now - before_ns);
                Ok(attained)
            }
            // How long it took until the answer began says little of the chunks to come.
            Ok(Step::Begun { reply, attained }) => {
                pool.begin(&entry.item, &reply);
                Ok(attained)
            }
            Ok(Step::Done(reply)) => Err(End::Answered(reply)),
            Err(_) => {
                tracing::error!("the handler panicked; the request is refused");
                Err(End::Unserved(Fate::Crashed))
            }
        };
        let end = match progress {
            Ok(attained) => {
                entry.job.attained += attained;
                match pool.after_chunk(worker, &mut entry) {
                    Next::GoOn => None,
                    Next::MakeWay => {
                        shared.meters.preemptions.inc();
                        return (pool.exchange(worker, entry), now);
                    }
                    Next::Cancel => Some(End::Unserved(Fate::Cancelled)),
                    Next::Refuse => Some(End::Unserved(Fate::Shutdown)),
                }
            }
            Err(end) => Some(end),
        };
        for (key, reply) in handler.answered_besides() {
            let service = Service { started_ns: now, finished_ns: now, service_ns: 0, fixed_ns: None };
            tell(shared, stamps, pool.take_waiting(&key), &End::Answered(reply), service);
        }
        if let Some(end) = end {
            let Pending { started_ns, service_ns, task, .. } = &entry.item;
            let service = Service {
                started_ns: started_ns.expect("it was taken up"),
                finished_ns: now,
                service_ns: handler.service_ns(task).unwrap_or(*service_ns),
                fixed_ns: handler.fixed_ns(task),
            };
            let waiters = pool.leave(worker, &entry.item);
            let free_ns = tell(shared, stamps, waiters, &end, service);
            // What it holds is given back now, and not when the next request comes.
            drop(entry);
            return (pool.take(worker), free_ns);
        }
        before_ns = now;
    }
}

/// How a request ends.
enum End {
    Answered(Reply),
    Unserved(Fate),
}

/// The service that a flight received.
#[derive(Clone, Copy)]
struct Service {
    started_ns: i64,
    finished_ns: i64,
    service_ns: i64,
    fixed_ns: Option<i64>,
}

/// Counts the end of each request of a flight and only then tells its client: whoever has an answer finds it
/// counted, and finds the place free that it took. The first of them had the service; those who joined it cost
/// none. Returns when that service was over, the handing over of its answer included.
fn tell<H: Handler>(
    shared: &Shared<H>,
    stamps: &StampLog,
    waiters: Vec<Waiter>,
    end: &End,
    service: Service,
) -> i64 {
    let joined = Service {
        started_ns: service.finished_ns,
        service_ns: 0,
        fixed_ns: service.fixed_ns.map(|_| 0),
        ..service
    };
    let mut over_ns = service.finished_ns;
    let services = iter::once(service).chain(iter::repeat(joined));
    for (place, (waiter, service)) in waiters.into_iter().zip(services).enumerate() {
        let told_ns = tell_one(shared, stamps, waiter, end, service);
        if place == 0 {
            over_ns = told_ns;
        }
    }
    over_ns
}

/// Tells one client, and returns when it was told.
fn tell_one<H: Handler>(
    shared: &Shared<H>,
    stamps: &StampLog,
    waiter: Waiter,
    end: &End,
    Service { started_ns, finished_ns, service_ns, fixed_ns }: Service,
) -> i64 {
    let Waiter { port, queued_ns, verdict, .. } = waiter;
    let reply = match end {
        End::Unserved(fate) => {
            shared.meters.ended(*fate);
            let _ = verdict.send(Word::last(Verdict::Refused));
            return now_ns();
        }
        End::Answered(reply) => reply.clone(),
    };
    // Whoever joined late saw no more of the service than the time that it was there.
    let response_ns = finished_ns - queued_ns;
    let service_ns = service_ns.min(response_ns);
    shared.meters.answered(Times { response_ns, service_ns });
    tracing::trace!(port, response_ns, service_ns, "answered");
    // A client that goes away in this very instant has been counted already.
    let _ = verdict.send(Word::last(Verdict::Answered(reply)));
    // Handing the answer over keeps the worker busy as much as finding it does: some 3 % of a millisecond's
    // service, which a station at 95 % of its capacity would else have too little of.
    let told_ns = now_ns();
    let service = service_ns + told_ns - finished_ns;
    stamps.write(Stamp {
        port,
        queued: queued_ns,
        started: started_ns.max(queued_ns),
        finished: finished_ns,
        service,
        fixed: fixed_ns.map(|fixed_ns| fixed_ns.min(service_ns)),
    });
    told_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_settles_on_the_wanted_length_and_forgets_a_hold_up() {
        let mut pace = Pace::new(1, Duration::from_millis(1));
        let unit_ns = 37.0;
        let chunk = |pace: &mut Pace| pace.learn((pace.units() as f64 * unit_ns) as i64);
        (0..40).for_each(|_| chunk(&mut pace));
        assert!((pace.units * unit_ns / 1e6 - 1.0).abs() < 0.01, "{}", pace.units);
        pace.learn(1_000_000_000);
        (0..3).for_each(|_| chunk(&mut pace));
        assert!((pace.units * unit_ns / 1e6 - 1.0).abs() < 0.01, "{}", pace.units);
    }

    #[test]
    fn a_chunk_never_falls_below_one_unit() {
        let mut pace = Pace::new(0, Duration::from_millis(1));
        (0..10).for_each(|_| pace.learn(i64::MAX));
        assert_eq!(pace.units(), 1);
    }
}
