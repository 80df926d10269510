//! The names of columns: what people and tools call a quantity, made the name by which it is known here.
//!
//! One vocabulary for all tables, whether they are fitted, checked or compared: "rps", "Requests/s" and `rate_per_s`; "avg (ms)",
//! "Response mean [ms]" and `mean_ms`; "99th percentile (us)" and `p99_us`.

/// Names that are understood besides those of [`quantities`](super::quantities), as examples.
pub(crate) const ALSO: &str =
    "rate, rps, qps, throughput, mean_ms, avg_ms, p50_ms, p90_ms, p99_us, p999_s, errors";

/// Names of the rate that is offered.
const RATE: [&str; 13] = [
    "rate",
    "rps",
    "qps",
    "offered",
    "offered_rate",
    "offered_rps",
    "offered_load",
    "arrival_rate",
    "request_rate",
    "target",
    "target_rate",
    "target_rps",
    "target_qps",
];
/// Names of the rate that is completed.
const THROUGHPUT: [&str; 11] = [
    "throughput",
    "achieved",
    "achieved_rate",
    "achieved_rps",
    "achieved_qps",
    "actual_rate",
    "actual_rps",
    "actual_qps",
    "req",
    "reqs",
    "requests",
];
/// Words that say that a time is that of a response, and nothing more.
const RESPONSE: [&str; 5] = ["response", "responses", "latency", "latencies", "rt"];

/// The name of a quantity with its unit: "Latency p99 [us]" is `response_p99_us`, "rps" is `rate_per_s`. Any other
/// header keeps its words.
pub(crate) fn canonical(header: &str) -> String {
    let lower = header.to_lowercase().replace(['µ', 'μ'], "u").replace('%', " percent");
    let words: Vec<&str> =
        lower.split(|c: char| !(c.is_alphanumeric() || c == '.')).filter(|word| !word.is_empty()).collect();
    rate(&words).or_else(|| time(&words)).unwrap_or_else(|| {
        let name = words.join("_").replace("latency_", "response_");
        plain(&name).map_or(name, str::to_owned)
    })
}

/// A rate, per second if no other unit is given.
fn rate(words: &[&str]) -> Option<String> {
    let (stem, unit) = match words {
        [stem @ .., "per", "s" | "sec" | "second"] => (stem, Some("_per_s")),
        [stem @ .., "per", "min" | "minute"] => (stem, Some("_per_min")),
        [stem @ .., "per", "h" | "hour"] => (stem, Some("_per_h")),
        [stem @ .., "per", "ms"] => (stem, Some("_per_ms")),
        [stem @ .., "s" | "sec" | "second"] => (stem, Some("_per_s")),
        stem => (stem, None),
    };
    let stem = stem.join("_");
    // Without a unit these are counts.
    let is_count = unit.is_none()
        && ["req", "reqs", "requests", "target", "offered", "achieved"].contains(&stem.as_str());
    let quantity = match stem.as_str() {
        _ if is_count => return None,
        stem if RATE.contains(&stem) => "rate",
        stem if THROUGHPUT.contains(&stem) => "throughput",
        _ => return None,
    };
    Some(format!("{quantity}{}", unit.unwrap_or("_per_s")))
}

/// A response time, its mean or a quantile; without a unit if none is given, because it cannot be guessed.
fn time(words: &[&str]) -> Option<String> {
    let (words, unit) = match words {
        [stem @ .., "s" | "sec" | "secs" | "second" | "seconds"] => (stem, "_s"),
        [stem @ .., "ms" | "msec" | "msecs" | "millis" | "milliseconds"] => (stem, "_ms"),
        [stem @ .., "us" | "usec" | "usecs" | "micros" | "microseconds"] => (stem, "_us"),
        [stem @ .., "ns" | "nsec" | "nsecs" | "nanos" | "nanoseconds"] => (stem, "_ns"),
        stem => (stem, ""),
    };
    let is_response = words.iter().any(|word| RESPONSE.contains(word));
    let core: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| !RESPONSE.contains(word) && !["time", "times", "request"].contains(word))
        .collect();
    let quantity = match core.as_slice() {
        [] if is_response => "mean".to_owned(),
        ["mean" | "avg" | "average"] => "mean".to_owned(),
        ["median" | "med"] => "p50".to_owned(),
        [quantile] if quantile.strip_prefix('p').is_some_and(is_number) => (*quantile).to_owned(),
        [quantile, part] if quantile.strip_prefix('p').is_some_and(is_number) && is_number(part) => {
            format!("{quantile}_{part}")
        }
        [number] | [number, "percentile"] if number.strip_suffix("th").is_some_and(is_number) => {
            format!("p{}", number.trim_end_matches("th"))
        }
        _ => return None,
    };
    Some(format!("response_{quantity}{unit}"))
}

fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

/// Other names of other quantities.
fn plain(name: &str) -> Option<&'static str> {
    Some(match name {
        "threads" | "clients" | "concurrency" | "vus" | "virtual_users" | "concurrent_users" => "users",
        "utilization" | "util" => "utilisation",
        "utilization_percent" | "util_percent" => "utilisation_percent",
        "error_rate" | "errors" | "error_share" | "failure_rate" | "loss" | "loss_rate" => "lost",
        "error_rate_percent" | "errors_percent" | "failure_rate_percent" | "loss_percent" => "lost_percent",
        "request_count" | "total_requests" | "num_requests" => "requests",
        "think_time_s" => "think_s",
        "think_time_ms" => "think_ms",
        "service_time_s" => "service_mean_s",
        "service_time_ms" => "service_mean_ms",
        "service_time_us" => "service_mean_us",
        "waiting_time_s" => "waiting_mean_s",
        "waiting_time_ms" => "waiting_mean_ms",
        "waiting_time_us" => "waiting_mean_us",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn what_people_write_is_understood() {
        for (header, name) in [
            ("rate", "rate_per_s"),
            ("RPS", "rate_per_s"),
            ("qps", "rate_per_s"),
            ("target_rps", "rate_per_s"),
            ("rate per min", "rate_per_min"),
            ("Requests/s", "throughput_per_s"),
            ("req/sec", "throughput_per_s"),
            ("Throughput", "throughput_per_s"),
            ("achieved_rps", "throughput_per_s"),
            ("mean_ms", "response_mean_ms"),
            ("avg (ms)", "response_mean_ms"),
            ("Average Response Time [s]", "response_mean_s"),
            ("latency_ms", "response_mean_ms"),
            ("p999_us", "response_p999_us"),
            ("p99.9 ms", "response_p99.9_ms"),
            ("p99_9_ms", "response_p99_9_ms"),
            ("p99_latency_ms", "response_p99_ms"),
            ("latency p50 µs", "response_p50_us"),
            ("median_ms", "response_p50_ms"),
            ("99th percentile (ms)", "response_p99_ms"),
            ("p99", "response_p99"),
            ("response_half_width_ms", "response_half_width_ms"),
            ("error_rate", "lost"),
            ("errors %", "lost_percent"),
            ("requests", "requests"),
            ("service_rate_per_s", "service_rate_per_s"),
            ("duration_s", "duration_s"),
            ("latency_min", "response_min"),
            ("time_s", "time_s"),
            ("length", "length"),
        ] {
            assert_eq!(canonical(header), name, "{header}");
        }
    }
}
