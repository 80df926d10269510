//! Fits of stations whose parameters are known, because they were simulated.

use kendall_solve::fit::{Family, Fit, Given, Load, Model, Observation, Quantity, Stamped, fit};
use kendall_solve::{StopRule, simulate};
use kendall_station::{Arrivals, Law, Servers, Station};

fn measured(
    service: &Law,
    servers: u32,
    delay_s: f64,
    shares: &[f64],
    requests: u64,
    seed: u64,
) -> Vec<Observation> {
    let point = |(i, share): (usize, &f64)| {
        let rate_per_s = share * f64::from(servers) / service.mean_s();
        let station =
            Station::new(Arrivals::poisson(rate_per_s), service.clone(), Servers::new(servers).unwrap());
        let stop = StopRule::Steady { max_customers: requests, relative_half_width: None };
        let answer = simulate(&station, stop, seed * 1000 + i as u64).unwrap();
        Observation {
            response_s: Some(answer.response.mean_s.value + delay_s),
            response_half_width_s: Some(answer.response.mean_s.half_width()),
            ..Observation::at(format!("{share}"), Load::Open { rate_per_s })
        }
    };
    shares.iter().enumerate().map(point).collect()
}
const SHARES: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
#[test]
fn look() {
    for (service, servers, delay) in [
        (Law::Exponential { mean_s: 0.02 }, 4, 0.0),
        (Law::Exponential { mean_s: 0.02 }, 4, 0.005),
        (Law::Constant { mean_s: 0.02 }, 2, 0.0),
        (Law::LogNormal { mean_s: 0.02, scv: 4.0 }, 3, 0.0),
    ] {
        for given in [Given::default(), Given { servers: Some(servers), ..Given::default() }] {
            let points = measured(&service, servers, delay, &SHARES, 20_000, 1);
            let t = std::time::Instant::now();
            let fit = fit(&points, given).unwrap();
            println!("==== {:?} {servers} {delay} {given:?} {:?}", service, t.elapsed());
            for c in &fit.candidates {
                println!(
                    "{} held {:?} in {:.4} aicc {:?}",
                    c.name,
                    c.held_out.as_ref().map(|h| (h.error, h.worst)),
                    c.error,
                    c.aicc
                );
                for p in &c.parameters {
                    print!("   {} {:.6} {:?}", p.quantity.symbol(), p.value, p.interval);
                }
                println!("   {:?}", c.notes);
            }
            let t = std::time::Instant::now();
            println!("{:?}", fit.forecast(Load::Open { rate_per_s: 0.85 * f64::from(servers) / 0.02 }, None));
            println!("{:?}", fit.highest("mean<100ms".parse().unwrap(), None));
            println!("{:?}", t.elapsed());
        }
    }
}
