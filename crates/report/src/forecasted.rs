//! A prediction from a curve through mean response times, in sentences.

use kendall_evidence::fit::{Forecast, Highest, Load, Slo};
use kendall_station::Estimate;
use kendall_stats::number;

use crate::terminal::{percent, with_interval};

/// A prediction for one load.
pub fn at(forecast: &Forecast) -> Vec<String> {
    let row = |name: &str, value: String| format!("  {name:<24} {value}");
    let mut lines = vec![format!("At {}", forecast.load)];
    lines.push(row("response time, mean", time(forecast.response.mean_s)));
    for (name, p) in [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)] {
        lines.extend(
            forecast.response.quantile(p).map(|value| row(&format!("response time, {name}"), time(value))),
        );
    }
    lines.push(row("throughput, 1/s", plain(forecast.throughput_per_s)));
    lines.extend(forecast.utilisation.map(|rho| row("utilisation", with_interval(rho, percent))));
    if let Some(why) = &forecast.no_quantiles {
        lines.push(row("quantiles", format!("none: {why}")));
    }
    lines.extend(forecast.amplification.filter(|factor| *factor >= 2.0).map(|factor| {
        format!(
            "  An error of 1 % in the service time changes the waiting time by about {} % here: 1/(1 − utilisation).",
            number::significant(factor, 2)
        )
    }));
    if forecast.steady < 1.0 {
        let share = number::percent(1.0 - forecast.steady);
        lines.push(format!(
            "  In {share} of the fits that the points allow, this load exceeds the station's capacity."
        ));
    }
    lines
}

/// The highest load that meets an objective.
pub fn most(highest: &Highest, slo: Slo) -> String {
    let (load, unit) = match highest.at {
        Load::Open { .. } => (plain(highest.load), "requests per second"),
        Load::Closed { .. } => (whole(highest.load), "users"),
    };
    let rho = highest
        .utilisation
        .map_or(String::new(), |rho| format!(", at a utilisation of {}", number::percent(rho)));
    format!("{slo}: up to {load} {unit}{rho}")
}

/// The number of servers that the objective needs.
pub fn needed(servers: &Estimate) -> String {
    format!("servers needed for that: {}", whole(*servers))
}

/// A time with its interval, whose upper end may lie beyond saturation.
fn time(time_s: Estimate) -> String {
    match time_s.interval {
        Some((low, high)) if high.is_infinite() => {
            format!("{} [from {}, no upper end]", number::time(time_s.value), number::time(low))
        }
        interval => number::time_with_interval(time_s.value, interval),
    }
}

/// A count with those that may be it.
fn whole(count: Estimate) -> String {
    match count.interval {
        Some((low, high)) if high.is_infinite() => format!("{} ({low} or more)", count.value),
        Some((low, high)) if low != high => format!("{} ({low} to {high})", count.value),
        _ => count.value.to_string(),
    }
}

/// A number with its interval.
pub fn plain(estimate: Estimate) -> String {
    let show = |value| number::significant(value, 4);
    match estimate.interval {
        Some((low, high)) if low != high => {
            format!("{} [{}, {}]", show(estimate.value), show(low), show(high))
        }
        _ => show(estimate.value),
    }
}
