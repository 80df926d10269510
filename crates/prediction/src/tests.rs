//! Predictions of servers that are simulated, so that the truth is known.

use kendall_evidence::Visit;
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Discipline, Law};
use kendall_stats::random::{Purpose, exponential, stream};

use crate::candidate::{Candidate, responses_s};
use crate::{Block, Capacity, Observed, Prediction, Predictor, Question};

/// A server as it really is.
struct Truth {
    discipline: Discipline,
    servers: u32,
    law: Law,
    delay_s: f64,
}

impl Truth {
    fn new(discipline: Discipline, servers: u32, law: Law, delay_s: f64) -> Self {
        Self { discipline, servers, law, delay_s }
    }

    fn capacity_per_s(&self) -> f64 {
        f64::from(self.servers) / self.law.mean_s()
    }

    /// Rows of a run at a share of the capacity.
    fn rows(&self, rho: f64, n: usize, seed: u64) -> Vec<RequestRow> {
        let mut rng = stream(seed, Purpose::Arrivals, 0);
        let mut services = stream(seed, Purpose::Service, 0);
        let mut now_s = 0.0;
        let visits: Vec<Visit> = (0..n)
            .map(|_| {
                now_s += exponential(&mut rng) / (rho * self.capacity_per_s());
                Visit { arrival_s: now_s, service_s: self.law.sample(&mut services), class: 0 }
            })
            .collect();
        let station = Candidate { discipline: self.discipline, servers: self.servers, delay_s: self.delay_s };
        let responses = responses_s(&visits, station, &[]);
        let ns = |s: f64| (s * 1e9) as i64;
        let row = |(index, (visit, response_s)): (usize, (&Visit, f64))| {
            RequestRow::due(index as u64, ns(visit.arrival_s))
                .sent_at(ns(visit.arrival_s), 1)
                .ended(Outcome::Answered, ns(visit.arrival_s + response_s))
        };
        visits.iter().zip(responses).enumerate().map(row).collect()
    }

    fn observed(&self, n: usize, capacity: Option<Capacity>, seed: u64) -> Observed {
        let rhos = [0.2, 0.35, 0.5];
        let block = |(at, rho): (usize, f64)| {
            let rows = self.rows(rho, n, seed * 10 + at as u64);
            (rho * self.capacity_per_s(), Block::of(&rows, 0))
        };
        Observed::new(rhos.into_iter().enumerate().map(block).collect(), capacity, None).unwrap()
    }

    fn known_capacity(&self) -> Option<Capacity> {
        Some(Capacity { per_s: self.capacity_per_s(), relative_sd: 0.005, blocks: 4 })
    }
}

fn quantile(prediction: &Prediction, p: f64) -> kendall_station::Estimate {
    prediction.quantiles.iter().find(|quantile| quantile.0 == p).unwrap().1
}

/// Prints how predictions do; for development: `cargo test -p kendall-prediction --release -- --ignored --nocapture`.
#[test]
fn survey() {
    let exponential = Law::Exponential { mean_s: 0.01 };
    let erlang = Law::Erlang { shape: 4, mean_s: 0.01 };
    let log_normal = Law::LogNormal { mean_s: 0.01, scv: 1.0 };
    let heavy = Law::LogNormal { mean_s: 0.01, scv: 4.0 };
    let truths = [
        Truth::new(Discipline::Fifo, 1, exponential.clone(), 0.0),
        Truth::new(Discipline::Fifo, 1, erlang.clone(), 0.003),
        Truth::new(Discipline::Fifo, 1, heavy.clone(), 0.003),
        Truth::new(Discipline::ProcessorSharing, 1, exponential.clone(), 0.002),
        Truth::new(Discipline::ProcessorSharing, 1, erlang.clone(), 0.002),
        Truth::new(Discipline::Fifo, 2, log_normal.clone(), 0.003),
        Truth::new(Discipline::Fifo, 4, log_normal.clone(), 0.003),
        Truth::new(Discipline::ProcessorSharing, 2, exponential.clone(), 0.002),
        Truth::new(Discipline::ProcessorSharing, 4, log_normal, 0.0),
    ];
    for (at, truth) in truths.iter().enumerate() {
        for capacity in [truth.known_capacity(), None] {
            println!(
                "{:?} {} scv {} D {} C {}",
                truth.discipline,
                truth.servers,
                truth.law.scv(),
                truth.delay_s,
                capacity.is_some()
            );
            let mut all: Vec<Vec<[f64; 4]>> = vec![Vec::new(); 6];
            let mut stations = Vec::new();
            for seed in 0..5 {
                let observed = truth.observed(6000, capacity, 100 * seed + at as u64);
                let predictor = Predictor::new(&observed, seed);
                for (place, rho) in [0.7, 0.85, 0.93].into_iter().enumerate() {
                    let n = 40_000;
                    let rate = rho * truth.capacity_per_s();
                    let Ok(found) = predictor.predict(&Question::at(rate, n as u64)) else { continue };
                    let runs = [n * 11 / 10, 1_000_000].map(|n| {
                        let rows = truth.rows(rho, n, 1000 * (seed + 1) + at as u64);
                        let mut measured: Vec<f64> = rows[n / 10..]
                            .iter()
                            .map(|row| row.response_ns().unwrap() as f64 / 1e9)
                            .collect();
                        measured.sort_by(f64::total_cmp);
                        [kendall_stats::mean(&measured), measured[measured.len() * 99 / 100]]
                    });
                    for (which, estimate) in [found.mean_s, quantile(&found, 0.99)].into_iter().enumerate() {
                        let (low, high) = estimate.interval.unwrap();
                        let inside = f64::from(u8::from((low..=high).contains(&runs[0][which])));
                        let error = estimate.value / runs[1][which] - 1.0;
                        all[2 * place + which].push([
                            error,
                            inside,
                            (high - low) / 2.0 / estimate.value,
                            0.0,
                        ]);
                    }
                    if place == 2 {
                        let names = found.stations.iter().take(2).map(|station| {
                            format!("{:?}{} {:.2}", station.discipline, station.servers, station.share)
                        });
                        stations.push(format!(
                            "{} D {:.2}",
                            names.collect::<Vec<_>>().join(" "),
                            found.delay_s.value * 1e3
                        ));
                    }
                }
            }
            for (place, values) in all.iter().enumerate() {
                let column = |k: usize| values.iter().map(|value| value[k]).collect::<Vec<f64>>();
                let n = values.len() as f64;
                print!(
                    "  {}{} {:+.1} ± {:.1} in {:.0}/{} w {:.0} |",
                    ["mean", "p99"][place % 2],
                    ["70", "85", "93"][place / 2],
                    100.0 * kendall_stats::mean(&column(0)),
                    100.0 * kendall_stats::variance(&column(0)).sqrt(),
                    column(1).iter().sum::<f64>(),
                    n,
                    100.0 * kendall_stats::median(&column(2))
                );
            }
            println!("\n   {}", stations.join(" ; "));
        }
    }
}
