//! No row of the table of checks contradicts itself: over many synthetic runs, what is "ok" is within the bounds that its row shows,
//! what is "NO" is not, and no cell is empty.

use kendall_load::{Dispersion, Lag};
use kendall_stats::random::{Purpose, stream};

use super::tests::{clean, exponential};
use super::*;

/// The numbers of a text, in order: "1 ± 0.11 in 1 ms" has three.
fn numbers(text: &str) -> Vec<f64> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    text.split(|c| !is_part(c)).filter_map(|part| part.trim_end_matches('.').parse().ok()).collect()
}

/// Whether what a row shows as found is within what it shows as asked; `None` for what has no bounds in numbers.
fn is_within_its_bounds(check: &Check) -> Option<bool> {
    let (asked, found) = (numbers(&check.asked), numbers(&check.found));
    let close = 1e-9;
    Some(match check.what {
        Checked::Rate => {
            let explained = check.found.contains("to connect");
            explained || (found[0] / found[1] - 1.0).abs() <= 0.01 + close
        }
        // "p99 within 50 µs, or at most 20 % of the response".
        Checked::Lag => {
            let micros = match check.found.split(' ').nth(4)?.trim_end_matches(',') {
                "ns" => 1e-3,
                "µs" => 1.0,
                "ms" => 1e3,
                _ => 1e6,
            };
            found[1] * micros <= 50.0 + close || found[2] <= 20.0
        }
        Checked::Processor | Checked::RunQueue => found[0] <= *asked.first()?,
        Checked::Gaps => {
            let (cv, room) = (asked[0], asked[1]);
            (found[0] - cv).abs() <= room + close
        }
        // "1 ± 0.11 in 1 ms, 0.15 in 10 ms" beside "1.04, 1.02".
        Checked::Dispersion => {
            let bounds = asked[1..].chunks(2).map(|bound| bound[0]);
            found.iter().zip(bounds).all(|(index, bound)| (index - asked[0]).abs() <= bound + close)
        }
        Checked::Little => found[0] <= asked[0],
        Checked::Connections => check.found.starts_with("none"),
    })
}

/// Runs near every threshold, on either side of it.
#[test]
fn no_row_is_ok_beside_a_number_outside_of_its_bounds() {
    let mut rng = stream(22, Purpose::Trial, 0);
    let (unit, mut judged) = (Law::Exponential { mean_s: 1.0 }, [0u32; 2]);
    for number in 0..4000 {
        // The exponential function of an exponential number is uniform.
        let mut near =
            |threshold: f64, spread: f64| threshold + spread * ((-unit.sample(&mut rng)).exp() - 0.5);
        let gap = if number % 3 == 0 { Law::Constant { mean_s: 2e-4 } } else { exponential() };
        let arrivals = Arrivals::Open { gap: gap.clone() };
        let mut run = clean(&gap);
        run.lag.p99_ns = near(50_000.0, 40_000.0) as u64;
        run.lag_share.p50 = near(0.2, 0.02);
        run.generator_cpu_s = near(8.0, 0.4);
        run.thread.run_queue_s = Some(near(1.0, 0.05));
        run.sends.count = near(30_000.0, 59_000.0) as u64;
        run.sends.per_s = 5000.0 * near(1.01, 0.01);
        if number % 5 == 0 {
            (run.lag, run.send_lag) =
                (Lag::default(), Lag { max_ns: near(2e8, 2e8) as u64, ..Lag::default() });
        }
        run.sends.gap_cv = (gap.scv().sqrt() + near(0.05, 0.02)).max(0.0);
        run.little.responses_s = run.little.in_system_s * near(1.005, 0.001);
        for Dispersion { index, windows, .. } in &mut run.sends.dispersion {
            *windows = near(500.0, 900.0) as u64;
            *index = gap.scv() + near(0.1 + 4.0 * gap.scv() * (2.0 / *windows as f64).sqrt(), 0.05);
        }
        for check in super::judge(&run, &arrivals, None, None).checks {
            assert!(!check.asked.trim().is_empty() && !check.found.trim().is_empty(), "{check:?}");
            // A p-value has its level beside it.
            assert!(!check.found.contains("p ") || check.found.contains("0.001"), "{check:?}");
            if let Some((held, within)) = check.held.zip(is_within_its_bounds(&check)) {
                assert_eq!(held, within, "{check:?}");
                judged[usize::from(held)] += 1;
            }
        }
    }
    // Both sides of the thresholds were tried.
    assert!(judged.iter().all(|rows| *rows > 5_000), "{judged:?}");
}
