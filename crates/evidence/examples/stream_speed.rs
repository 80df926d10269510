//! What a row costs in a stream, and that its memory does not grow:
//! `cargo run --release --package kendall-evidence --example stream_speed`.

use std::fs;
use std::time::Instant;

use kendall_evidence::streamed::{Stream, Warmup};
use kendall_record::{Outcome, RequestRow};
use kendall_station::Law;
use kendall_stats::random::{Purpose, stream};

/// An hour at 20,000 requests per second.
const ROWS: u64 = 72_000_000;
const GAP_NS: i64 = 50_000;

fn main() {
    let response = Law::Exponential { mean_s: 1e-3 };
    let mut rng = stream(1, Purpose::Trial, 0);
    // Drawn before, so that only the stream is timed.
    let responses_ns: Vec<i64> = (0..1 << 16).map(|_| (response.sample(&mut rng) * 1e9) as i64).collect();
    let mut rows = Stream::new(Warmup::Auto);
    let mut start = Instant::now();
    for index in 0..ROWS {
        let due = index as i64 * GAP_NS;
        let sent = due + 20_000;
        rows.add(&RequestRow {
            first_byte: Some(sent),
            bytes_out: 100,
            bytes_in: 1000,
            ..RequestRow::due(index, due)
                .sent_at(sent, 1)
                .ended(Outcome::Answered, sent + responses_ns[index as usize % responses_ns.len()])
        });
        if (index + 1) % (ROWS / 6) == 0 {
            let each_ns = start.elapsed().as_nanos() as f64 / (ROWS / 6) as f64;
            println!("{:>9} rows: {each_ns:.0} ns each, {} resident", index + 1, resident());
            start = Instant::now();
        }
    }
    rows.end(ROWS as i64 * GAP_NS);
    let start = Instant::now();
    let seen = rows.seen().expect("all were answered");
    println!("the answer, {:.0} ms: mean {:?}", start.elapsed().as_secs_f64() * 1e3, seen.response.mean_s);
}

/// The resident memory of this process, as the kernel reports it.
fn resident() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or_else(|| "?".to_owned(), |size| size.trim().to_owned())
}
