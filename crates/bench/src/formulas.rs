//! How long a formula takes to answer.

use std::fmt::Write as _;
use std::time::Instant;

use kendall_station::{Arrivals, Class, Discipline, Law, Servers, Station};
use kendall_theory::formula;

use crate::common::{ROUNDS, median};

/// How long formulas take to answer.
pub(crate) fn section(page: &mut String) {
    page.push_str(
        "\n## Formulas\n\nThe time from a station to its whole answer, quantiles included.\n\n\
         | station | utilisation | time | mean response | source |\n| --- | ---: | ---: | ---: | --- |\n",
    );
    for station in stations() {
        let mut source = String::new();
        let mut response_s = 0.0;
        let times = (0..ROUNDS).map(|_| {
            const REPEATS: u32 = 20;
            let start = Instant::now();
            for _ in 0..REPEATS {
                let answer = formula(std::hint::black_box(&station)).expect("there is a formula");
                response_s = answer.response.mean_s.value;
                if let kendall_station::By::Formula { source: named, .. } = answer.by {
                    source = named;
                }
            }
            start.elapsed().as_secs_f64() / f64::from(REPEATS)
        });
        let time_us = median(times) * 1e6;
        let utilisation = station.offered_utilisation().map_or_else(|| "–".into(), |rho| format!("{rho:.3}"));
        let _ =
            writeln!(page, "| {station} | {utilisation} | {time_us:.1} µs | {response_s:.4} s | {source} |");
    }
}

/// Stations of mean service time 1 s: the small ones that one plans with, and the largest that must not take longer.
fn stations() -> Vec<Station> {
    let exponential = Law::Exponential { mean_s: 1.0 };
    let constant = Law::Constant { mean_s: 1.0 };
    let varied = Law::Hyperexponential { parts: vec![(0.9, 0.5), (0.1, 5.5)] };
    let open = |servers: u32, rho: f64, service: &Law| {
        let rate_per_s = rho * f64::from(servers);
        Station::new(Arrivals::poisson(rate_per_s), service.clone(), Servers::new(servers).expect("positive"))
    };
    let class = |name: &str, share, weight| Class { name: name.into(), share, weight, service: None };
    let classes = || vec![class("urgent", 0.2, 10.0), class("normal", 0.8, 1.0)];
    let lognormal = Law::LogNormal { mean_s: 1.0, scv: 2.0 };
    let gap = Law::Erlang { shape: 2, mean_s: 1.0 / 3.2 };
    let closed = |population, servers, think_s| {
        let think = Law::Exponential { mean_s: think_s };
        Station { arrivals: Arrivals::Closed { population, think }, ..open(servers, 0.5, &exponential) }
    };
    vec![
        open(1, 0.8, &exponential),
        open(6, 0.9, &exponential),
        open(100_000, 1.0 - 1e-9, &exponential),
        Station { capacity: Some(1_000_000), ..open(1000, 1.1, &exponential) },
        open(1, 0.8, &constant),
        open(1, 0.8, &lognormal),
        open(8, 0.9, &constant),
        open(1000, 0.99, &constant),
        open(10_000, 1.0 - 1e-9, &constant),
        open(100_000, 0.999, &constant),
        open(6, 0.8, &varied),
        open(20, 0.9, &varied),
        open(1, 0.8, &Law::Uniform { low_s: 0.0, high_s: 2.0 }),
        open(1, 1.0 - 1e-9, &lognormal),
        open(1, 0.8, &Law::Pareto { shape: 2.5, mean_s: 1.0 }),
        Station { capacity: Some(1_000_000), ..open(100_000, 1.0, &exponential) },
        Station { arrivals: Arrivals::Open { gap }, ..open(4, 0.8, &exponential) },
        Station { classes: classes(), discipline: Discipline::Priority, ..open(1, 0.8, &varied) },
        Station {
            classes: classes(),
            discipline: Discipline::PreemptivePriority,
            ..open(6, 0.8, &exponential)
        },
        Station { discipline: Discipline::ShortestRemaining, ..open(1, 0.8, &lognormal) },
        closed(100, 4, 5.0),
        closed(1_000_000, 1000, 900.0),
    ]
}
