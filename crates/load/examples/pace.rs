//! Loads an HTTP/1.1 server with GET / over kept connections and prints what the generator says of itself.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kendall_load::{
    Dialog, Dialogs, Plan, Progress, Reading, Request, RequestClass, Reuse, Timing, Transport, Way, Wire,
    Workload, run,
};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Law};

struct Get(SocketAddr, bytes::Bytes);

impl Workload for Get {
    fn request(&self, _: u64) -> Request {
        Request { class: 0, bytes: self.1.clone() }
    }
    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass { name: "all".into(), weight: 1.0 }]
    }
    fn way(&self) -> Way<'_> {
        Way::Bytes(Wire { to: self.0, transport: Transport::Tcp, reuse: Reuse::Keep }, self)
    }
}
impl Dialogs for Get {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(Whole)
    }
}
struct Whole;
impl Dialog for Whole {
    fn begin(&mut self, _: u64, _: &Request) {}
    fn read(&mut self, bytes: &[u8]) -> Reading {
        match bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            Some(at) if bytes.len() >= at + 6 => {
                Reading::Done { used: at + 6, outcome: Outcome::Answered, reuse: Reuse::Keep }
            }
            _ => Reading::More { used: 0 },
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let connections: u32 = words[2].parse().unwrap();
    let arrivals = match words[1].as_str() {
        "closed" => Arrivals::Closed { population: connections, think: Law::Constant { mean_s: 0.0 } },
        rate => match rate.strip_prefix('p') {
            Some(rate) => Arrivals::poisson(rate.parse().unwrap()),
            None => Arrivals::constant(rate.parse().unwrap()),
        },
    };
    let timing = if words.get(4).is_some_and(|w| w == "precise") { Timing::Precise } else { Timing::Sleep };
    let plan = Plan {
        connections,
        timing,
        ..Plan::lasting(arrivals, Duration::from_secs_f64(words[3].parse().unwrap()), 1)
    };
    let get = Get(
        words[0].parse().unwrap(),
        bytes::Bytes::from_static(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    );
    let mut responses = Vec::new();
    let mut waits = Vec::new();
    let mut sink = |row: RequestRow| {
        responses.extend(row.response_ns());
        waits.extend(row.completed.zip(row.sent).map(|(c, s)| c - s));
    };
    let run = run(&plan, &get, &mut sink, &Progress::default(), &AtomicBool::new(false)).unwrap();
    responses.sort_unstable();
    waits.sort_unstable();
    let q = |v: &[i64], p: f64| v[((v.len() - 1) as f64 * p) as usize] as f64 / 1e3;
    println!(
        "sent {} answered {} in {:.3} s: {:.0}/s; cpu {:.2} us/request, core {:.2}; lag p50 {:.1} p99 {:.1} max {:.0}; send lag p50 {:.1} p99 {:.1} max {:.0} us; response p50 {:.1} p99 {:.1}; service p50 {:.1} p99 {:.1}; gaps cv {:.3}, {:?}",
        run.sent,
        run.count(Outcome::Answered),
        run.wall_s,
        run.sent as f64 / run.wall_s,
        run.cpu_per_request_s() * 1e6,
        run.core_share(),
        run.lag.p50_ns as f64 / 1e3,
        run.lag.p99_ns as f64 / 1e3,
        run.lag.max_ns as f64 / 1e3,
        run.send_lag.p50_ns as f64 / 1e3,
        run.send_lag.p99_ns as f64 / 1e3,
        run.send_lag.max_ns as f64 / 1e3,
        q(&responses, 0.5),
        q(&responses, 0.99),
        q(&waits, 0.5),
        q(&waits, 0.99),
        run.sends.gap_cv,
        run.sends.dispersion.iter().map(|d| (d.index * 1000.0).round() / 1000.0).collect::<Vec<_>>(),
    );
    println!(
        "  {:?} {:?} waited {} opened {} refused because {:?}",
        run.little, run.thread, run.waited_for_connection, run.connections_opened, run.refused_because
    );
}
