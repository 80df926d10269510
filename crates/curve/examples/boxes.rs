//! What sealing and opening a packet costs: one by one, and in batches with each kernel that this processor can run.
//!
//! `cargo run --release -p kendall-curve --example boxes`. Times are CPU times of the thread, medians of interleaved rounds.

use std::time::Duration;

use curvecp::seal::{Batch, DirectionKey, Kernel};
use curvecp::{SecretKey, TAG};
use rustix::time::{ClockId, clock_gettime};

const HEADER: usize = 48;
const MESSAGE: usize = 1088;
const STRIDE: usize = HEADER + TAG + MESSAGE;
const BATCHES: [usize; 9] = [1, 2, 4, 6, 8, 16, 32, 44, 64];
const ROUNDS: usize = 201;
/// How often a round seals and opens, each time about 64 packets.
const REPEATS: usize = 8;

fn main() {
    let secret = SecretKey::from_bytes([1; 32]);
    let shared = secret.box_key(&secret.public_key()).expect("the point is of high order");
    let key = DirectionKey::new(shared, b"CurveCP-client-M");
    let kernels: Vec<_> = std::iter::once(None).chain(Kernel::all().map(Some)).collect();
    println!("ns per message of {MESSAGE} bytes, GB/s, and how many times the speed of one by one");
    println!("{:>7} {:>10} {:>22} {:>22}", "packets", "kernel", "seal", "open");
    for count in BATCHES {
        let mut times = vec![[vec![], vec![]]; kernels.len()];
        for _ in 0..ROUNDS {
            for (kernel, times) in kernels.iter().zip(&mut times) {
                let [seal, open] = round(&key, *kernel, count);
                times[0].push(seal);
                times[1].push(open);
            }
        }
        let medians: Vec<[f64; 2]> = times.into_iter().map(|both| both.map(median)).collect();
        for (kernel, [seal, open]) in kernels.iter().zip(&medians) {
            let name = kernel.map_or("one by one", Kernel::name);
            let [one_seal, one_open] = medians[0];
            let figures =
                |ns: f64, one: f64| format!("{ns:7.1} {:6.2} {:6.2}x", MESSAGE as f64 / ns, one / ns);
            println!(
                "{count:7} {name:>10} {:>22} {:>22}",
                figures(*seal, one_seal),
                figures(*open, one_open)
            );
        }
    }
}

/// Nanoseconds per packet to seal batches of this many packets, and to open them.
fn round(key: &DirectionKey, kernel: Option<Kernel>, count: usize) -> [f64; 2] {
    let batches = 64_usize.div_ceil(count);
    let mut packets = vec![7; batches * count * STRIDE];
    let mut times = [Duration::ZERO; 2];
    for _ in 0..REPEATS {
        let start = cpu_time();
        for packets in packets.chunks_exact_mut(count * STRIDE) {
            key.seal_batch_with(kernel, Batch { packets, stride: STRIDE, header: HEADER });
        }
        let between = cpu_time();
        for packets in packets.chunks_exact_mut(count * STRIDE) {
            let authentic = key.open_batch_with(kernel, Batch { packets, stride: STRIDE, header: HEADER });
            assert_eq!(authentic.count_ones() as usize, count);
        }
        times[0] += between - start;
        times[1] += cpu_time() - between;
    }
    times.map(|time| time.as_nanos() as f64 / (REPEATS * batches * count) as f64)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Time that this thread has spent on a CPU.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("it is not negative")
}
