//! The gain of kendall's HTTP/1.1 state machine over hyper: the same closed loop over both, in alternation.
//!
//!     cargo run --release -p kendall-http --example lean http://127.0.0.1:8080/ [CONNECTIONS]

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use kendall_http::{HttpOptions, HttpWorkload, address};
use kendall_load::{
    Connect, Connection, Exchange, LocalFuture, Plan, Progress, Request, RequestClass, Reuse, Route,
    RunSummary, Stamps, Workload, run,
};
use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use kendall_station::{Arrivals, Law};
use tokio::net::TcpStream;

const TURNS: usize = 5;

struct OverHyper {
    address: SocketAddr,
    url: String,
}

struct HyperConnection {
    port: u16,
    url: String,
    send: SendRequest<Empty<Bytes>>,
}

impl Workload for OverHyper {
    fn request(&self, _: u64) -> Request {
        Request::new(0, Bytes::new())
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new("all", 1.0)]
    }

    fn route(&self) -> Route<'_> {
        Route::Tasks(self)
    }
}

impl Connect for OverHyper {
    fn connect(&self) -> LocalFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            let port = stream.local_addr()?.port();
            let (send, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
            tokio::spawn(async move { drop(connection.await) });
            Ok(Box::new(HyperConnection { port, url: self.url.clone(), send }) as Box<dyn Connection>)
        })
    }
}

impl HyperConnection {
    async fn ask(&mut self, stamps: &mut Stamps) -> Result<Outcome, hyper::Error> {
        let request =
            hyper::Request::get(&self.url).header("host", "a").body(Empty::new()).expect("a valid request");
        stamps.sent = Some(now_ns());
        self.send.ready().await?;
        let mut answer = self.send.send_request(request).await?;
        stamps.first_byte = Some(now_ns());
        while let Some(frame) = answer.frame().await {
            stamps.bytes_in += frame?.data_ref().map_or(0, Bytes::len) as u64;
        }
        Ok(if answer.status().as_u16() < 400 { Outcome::Answered } else { Outcome::Wrong })
    }
}

impl Connection for HyperConnection {
    fn port(&self) -> u16 {
        self.port
    }

    fn exchange<'a>(
        &'a mut self,
        _: u64,
        _: &'a Request,
        stamps: &'a mut Stamps,
    ) -> LocalFuture<'a, Exchange> {
        Box::pin(async {
            let result = self.ask(stamps).await;
            stamps.completed = Some(now_ns());
            match result {
                Ok(outcome) => Exchange { outcome, reuse: Reuse::Keep },
                Err(_) => Exchange { outcome: Outcome::Refused, reuse: Reuse::Close },
            }
        })
    }
}

fn measure(name: &str, workload: &dyn Workload, connections: u32) -> (f64, f64) {
    let arrivals = Arrivals::Closed { population: connections, think: Law::Constant { mean_s: 0.0 } };
    let plan = Plan { connections, ..Plan::lasting(arrivals, Duration::from_secs(2), 1) };
    let (progress, never) = (Progress::default(), AtomicBool::new(false));
    let (found, ()): (RunSummary, ()) =
        run(&plan, workload, &progress, &never, |rows| rows.for_each(drop)).expect("sockets can be had");
    let answered = found.count(Outcome::Answered) as f64;
    let (per_s, cpu_us) = (answered / found.wall_s, found.generator_cpu_s / answered * 1e6);
    println!("{name:6} {per_s:8.0} requests/s  {cpu_us:6.2} µs of CPU a request");
    (per_s, cpu_us)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let url = words.next().ok_or("write the URL of a server: lean http://127.0.0.1:8080/ [CONNECTIONS]")?;
    let connections = words.next().map_or(Ok(50), |word| word.parse())?;
    let address = address(&url)?;
    let lean = HttpWorkload::new(address, &HttpOptions::get(&url), 1)?;
    let hyper = OverHyper { address, url };
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let (own, other) = (measure("lean", &lean, connections), measure("hyper", &hyper, connections));
        rates.push(own.0 / other.0);
        costs.push(own.1 / other.1);
    }
    println!("lean ÷ hyper, medians: {:.2} requests/s, {:.2} CPU a request", median(rates), median(costs));
    Ok(())
}
