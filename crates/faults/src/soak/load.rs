//! The mixed load of a soak: the load generator for all of its time, short clients one after the other, and noise.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::{TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kendall_stats::random::{seeded, unit};
use serde_json::Value;

use super::Soak;
use super::verdict::{Bin, Measured};
use crate::subjects::{Client, Outcome, Requests, Scene, Subject};

/// How long a generator may take beyond its duration.
const GRACE: Duration = Duration::from_secs(60);
/// The time from one noisy client to the next.
const NOISE_GAP: Duration = Duration::from_secs(1);
/// The most bytes of noise.
const NOISE_BYTES: f64 = 400.0;
/// Parts of the time for which the response times of short clients are summed up.
const BINS: f64 = 75.0;

/// A load generator that runs. It ends when this is dropped.
pub(super) struct Generator {
    child: Child,
    result: PathBuf,
    deadline: Instant,
}

impl Generator {
    /// Starts the load of a system; `None` for one that only short clients load.
    pub(super) fn start(
        subject: &Subject,
        scene: &Scene,
        rate: f64,
        soak: &Soak,
    ) -> Result<Option<Self>, String> {
        let Requests::Url(url) = subject.requests else { return Ok(None) };
        let result = scene.path("result.json");
        let file = File::create(&result).map_err(|error| error.to_string())?;
        let mut command = scene.kendall(["load"]);
        command.args(url(scene)).args(["--rate", &rate.to_string(), "--seed", &soak.seed.to_string()]);
        command.args(["--duration", &format!("{}s", soak.duration.as_secs_f64()), "--connections", "50"]);
        command.args(["--timeout", "10s", "--json"]).stdout(file).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| error.to_string())?;
        Ok(Some(Self { child, result, deadline: Instant::now() + soak.duration + GRACE }))
    }

    /// The number of its process.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, and returns what it printed.
    pub(super) fn finish(mut self) -> Result<Value, String> {
        while self.child.try_wait().map_err(|error| error.to_string())?.is_none() {
            if Instant::now() > self.deadline {
                return Err("the load does not end".into());
            }
            sleep(Duration::from_millis(20));
        }
        let text = fs::read(&self.result).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|error| format!("the load printed no result: {error}"))
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// When a short client began, how long it took, in seconds, and how it ended.
pub(super) type ShortClient = (f64, f64, Outcome);

/// Starts clients at a rate until the load is over.
pub(super) fn short_clients(
    client: &Client,
    rate: f64,
    begun: Instant,
    over: &AtomicBool,
) -> Vec<ShortClient> {
    let mut ended = Vec::new();
    for number in 0_u32.. {
        let due = begun + Duration::from_secs_f64(1.0 / rate) * number;
        while !over.load(Relaxed) && Instant::now() < due {
            sleep(Duration::from_millis(20));
        }
        if over.load(Relaxed) {
            break;
        }
        let started = Instant::now();
        let (_, outcome) = client.probe();
        ended.push(((started - begun).as_secs_f64(), started.elapsed().as_secs_f64(), outcome));
    }
    ended
}

/// Sends random bytes that are no request, from a new connection each second, until the load is over.
pub(super) fn noise(subject: &Subject, scene: &Scene, seed: u64, over: &AtomicBool) {
    let mut rng = seeded(seed);
    while !over.load(Relaxed) {
        let bytes: Vec<u8> =
            (0..(NOISE_BYTES * unit(&mut rng)) as usize).map(|_| (256.0 * unit(&mut rng)) as u8).collect();
        // A server may refuse it at any time.
        if subject.datagrams {
            _ = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(&bytes, &scene.address));
        } else {
            _ = TcpStream::connect(&scene.address).and_then(|mut stream| stream.write_all(&bytes));
        }
        sleep(NOISE_GAP);
    }
}

impl Measured {
    /// Adds what a load generator printed.
    pub(super) fn add_load(&mut self, value: Value) {
        let ended: Vec<u64> =
            value["run"]["ended"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        if let [answered, wrong, failed @ ..] = &ended[..] {
            self.answered += answered;
            self.wrong += wrong;
            self.failed += failed.iter().sum::<u64>();
            let kinds = failed.iter().zip(["refused", "timed out", "unanswered"]).filter(|kind| *kind.0 > 0);
            let kinds: Vec<String> = kinds.map(|(count, kind)| format!("{count} {kind}")).collect();
            let how = (!kinds.is_empty()).then(|| kinds.join(", "));
            self.failure = value["run"]["refused_because"].as_str().map(str::to_owned).or(how);
        }
        let bins = value["seen"]["series"]["bins"].as_array().into_iter().flatten();
        let number = |bin: &Value, name: &str| bin[name].as_f64();
        self.bins.extend(bins.filter_map(|bin| {
            let (p50_s, p99_s) = (number(bin, "response_p50_s")?, number(bin, "response_p99_s")?);
            Some(Bin { at_s: number(bin, "at_s")?, p50_s, p99_s })
        }));
    }

    /// Sums up the response times of short clients.
    pub(super) fn add_bins(&mut self, clients: &[ShortClient]) {
        let place = |at_s: f64| (at_s / self.length_s * BINS) as u32;
        for bin in clients.chunk_by(|a, b| place(a.0) == place(b.0)) {
            let mut times: Vec<f64> = bin.iter().map(|(_, time_s, _)| *time_s).collect();
            times.sort_by(f64::total_cmp);
            let rank = |p: f64| times[((p * times.len() as f64).ceil() as usize).clamp(1, times.len()) - 1];
            self.bins.push(Bin { at_s: bin[0].0, p50_s: rank(0.5), p99_s: rank(0.99) });
        }
    }
}
