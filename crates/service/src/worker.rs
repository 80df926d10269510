//! The worker thread: takes a request, serves it chunk by chunk, and yields to more urgent ones.

use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use kendall_record::clock::now_ns;
use kendall_record::stamps::Stamp;

use crate::metrics::{Fate, Times};
use crate::pool::Stay;
use crate::shared::{AnswerTo, Shared, System};
use crate::stamps::StampLog;
use crate::station::{Next, Pending, Waiter};
use crate::turn::{Step, Turn};

/// The number of units of a chunk of the target length, learned from earlier chunks.
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

    /// A factor of two at most, so that one delayed chunk does not spoil the next hundred.
    fn learn(&mut self, took_ns: i64) {
        let factor = (self.target_ns / took_ns.max(1) as f64).clamp(0.5, 2.0);
        self.units = (self.units * factor).clamp(1.0, u64::MAX as f64);
    }
}

/// Serves until the server shuts down.
pub(crate) fn work<S: System>(shared: &Shared<S>, worker: usize, stamps: &StampLog) {
    let mut pace = Pace::new(shared.system.first_chunk(), shared.config.chunk);
    let mut next = shared.pool.take(worker);
    let mut free_ns = i64::MIN;
    while let Some(stay) = next {
        // A flight that waited starts in the instant in which the worker became free, so that the services of a busy
        // worker follow each other without a gap, and add up to the time it was busy.
        let begun_ns = if stay.entry.item.queued_ns <= free_ns { free_ns } else { now_ns() };
        (next, free_ns) = serve(shared, worker, stamps, &mut pace, stay, begun_ns);
    }
}

/// Serves one flight until it ends or must yield; returns the next one, and when the worker became free.
fn serve<S: System>(
    shared: &Shared<S>,
    worker: usize,
    stamps: &StampLog,
    pace: &mut Pace,
    mut stay: Stay<S::Task>,
    begun_ns: i64,
) -> (Option<Stay<S::Task>>, i64) {
    let pool = &shared.pool;
    let mut before_ns = begun_ns;
    stay.entry.item.started_ns.get_or_insert(before_ns);
    loop {
        let mut turn = Turn::new(worker, pace.units(), stay.interrupt.clone());
        // A panic leaves the task in an unknown state, and it is never used again.
        let step =
            catch_unwind(AssertUnwindSafe(|| shared.system.advance(&mut stay.entry.item.task, &mut turn)));
        let now = now_ns();
        stay.entry.item.service_ns += now - before_ns;
        let progress = match step {
            Ok(Step::Continue { attained }) => {
                pace.learn(now - before_ns);
                Ok(attained)
            }
            // The time until the answer began says little about the following chunks.
            Ok(Step::Begun { answer, attained }) => {
                pool.begin(&stay.entry.item, answer);
                Ok(attained)
            }
            Ok(Step::Done(answer)) => Err(End::Answered(answer)),
            Err(_) => {
                tracing::error!("the handler panicked; the request is rejected");
                Err(End::Unserved(Fate::Crashed))
            }
        };
        let (reported, besides) = turn.into_parts();
        stay.entry.item.reported.update(reported);
        for (key, answer) in besides {
            let service = Service { started_ns: now, finished_ns: now, service_ns: 0, fixed_ns: None };
            notify_waiters(shared, stamps, pool.take_waiting(&key), End::Answered(answer), service);
        }
        let end = match progress {
            Ok(attained) => {
                stay.entry.job.attained += attained;
                match pool.after_chunk(worker, &mut stay) {
                    Next::GoOn => None,
                    Next::MakeWay => {
                        shared.meters.preemptions.inc();
                        return (pool.exchange(worker, stay.entry), now);
                    }
                    Next::Cancel => Some(End::Unserved(Fate::Cancelled)),
                    Next::Refuse => Some(End::Unserved(Fate::Shutdown)),
                }
            }
            Err(end) => Some(end),
        };
        if let Some(end) = end {
            let Pending { started_ns, service_ns, reported, .. } = &stay.entry.item;
            let service = Service {
                started_ns: started_ns.expect("it was started"),
                finished_ns: now,
                service_ns: reported.service_ns.unwrap_or(*service_ns),
                fixed_ns: reported.fixed_ns,
            };
            let waiters = pool.finish(worker, &stay.entry.item);
            let free_ns = notify_waiters(shared, stamps, waiters, end, service);
            // Releases what it holds now, and not at the next request.
            drop(stay);
            return (pool.take(worker), free_ns);
        }
        before_ns = now;
    }
}

/// Counts the requests that shutdown leaves unserved, and rejects them.
pub(crate) fn refuse<S: System>(shared: &Shared<S>, waiters: Vec<Waiter<S::Recipient>>) {
    for waiter in waiters {
        shared.meters.ended(Fate::Shutdown);
        waiter.recipient.refused();
    }
}

/// How a flight ends.
#[derive(Clone)]
enum End<A> {
    Answered(A),
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

/// Counts the end of each request of a flight and only then notifies its client: a client that has an answer finds it
/// counted, and finds capacity in the station. The first of them had the service; those that joined it cost none.
/// Returns when that service was over, including passing on its answer.
fn notify_waiters<S: System>(
    shared: &Shared<S>,
    stamps: &StampLog,
    waiters: Vec<Waiter<S::Recipient>>,
    end: End<S::Answer>,
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
    // The last one gets the answer, the others get clones.
    let ends = iter::repeat_n(end, waiters.len());
    for (place, ((waiter, end), service)) in waiters.into_iter().zip(ends).zip(services).enumerate() {
        let notified_ns = notify(shared, stamps, waiter, end, service);
        if place == 0 {
            over_ns = notified_ns;
        }
    }
    over_ns
}

/// Notifies one client, and returns the instant.
fn notify<S: System>(
    shared: &Shared<S>,
    stamps: &StampLog,
    waiter: Waiter<S::Recipient>,
    end: End<S::Answer>,
    Service { started_ns, finished_ns, service_ns, fixed_ns }: Service,
) -> i64 {
    let Waiter { queued_ns, recipient, .. } = waiter;
    let answer = match end {
        End::Unserved(fate) => {
            shared.meters.ended(fate);
            recipient.refused();
            return now_ns();
        }
        End::Answered(answer) => answer,
    };
    let port = recipient.port();
    // A request that joined late only saw the service during its stay.
    let response_ns = finished_ns - queued_ns;
    let service_ns = service_ns.min(response_ns);
    shared.meters.answered(Times { response_ns, service_ns });
    tracing::trace!(port, response_ns, service_ns, "answered");
    // A client that disconnects in this very instant has been counted already.
    recipient.answered(answer);
    // Passing the answer on keeps the worker as busy as finding it does: some 3 % of a millisecond's service, by which
    // the service of a station at 95 % of its capacity would otherwise be too short.
    let notified_ns = now_ns();
    let service = service_ns + notified_ns - finished_ns;
    stamps.write(Stamp {
        port,
        queued: queued_ns,
        started: started_ns.max(queued_ns),
        finished: finished_ns,
        service,
        fixed: fixed_ns.map(|fixed_ns| fixed_ns.min(service_ns)),
    });
    notified_ns
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
