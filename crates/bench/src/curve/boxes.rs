//! What sealing and opening packets costs: in batches, and by dryoc one after another.

use std::fmt::Write as _;
use std::time::Duration;

use kendall_curve::curvecp::seal::{BATCH, Batch, DirectionKey, Kernel};
use kendall_curve::curvecp::{SecretKey, TAG};

use super::transfer::cpu_time;
use crate::common::median;

const HEADER: usize = 48;
const MESSAGE: usize = 1088;
const STRIDE: usize = HEADER + TAG + MESSAGE;
const ROUNDS: usize = 201;
/// Batches that a round seals and opens.
const REPEATS: usize = 8;
const LEAST_RATIO: f64 = 1.3;

pub(super) fn table(page: &mut String) {
    let kernel = Kernel::fastest();
    let secret = SecretKey::from_bytes([1; 32]);
    let shared = secret.box_key(&secret.public_key()).expect("the point is of high order");
    let key = DirectionKey::new(shared, b"CurveCP-client-M");
    // Sealing and opening in ns per message: by dryoc, in batches.
    let rounds: Vec<[[f64; 2]; 2]> =
        (0..ROUNDS).map(|_| [None, kernel].map(|kernel| round(&key, kernel))).collect();
    let name = kernel.map_or("as dryoc: this processor has no faster kernel", Kernel::name);
    let _ = write!(
        page,
        "\nXSalsa20-Poly1305 on {BATCH} messages of 1,088 bytes, GB per second of processor time. dryoc takes one after another, and \
         is what single packets go through.\n\n| | seal | open |\n| --- | ---: | ---: |\n"
    );
    for (side, name) in ["dryoc", &format!("batches ({name})")].into_iter().enumerate() {
        let speed =
            |direction: usize| MESSAGE as f64 / median(rounds.iter().map(|round| round[side][direction]));
        let _ = writeln!(page, "| {name} | {:.2} | {:.2} |", speed(0), speed(1));
    }
    let ratio =
        |direction: usize| median(rounds.iter().map(|[dryoc, ours]| dryoc[direction] / ours[direction]));
    let _ = writeln!(
        page,
        "\nA batch is sealed {:.2} and opened {:.2} times as fast as by dryoc (at least {LEAST_RATIO} wanted).",
        ratio(0),
        ratio(1)
    );
}

/// Nanoseconds per packet to seal batches, and to open them.
fn round(key: &DirectionKey, kernel: Option<Kernel>) -> [f64; 2] {
    let mut packets = vec![7; BATCH * STRIDE];
    let mut times = [Duration::ZERO; 2];
    for _ in 0..REPEATS {
        let start = cpu_time();
        key.seal_batch_with(kernel, Batch { packets: &mut packets, stride: STRIDE, header: HEADER });
        let between = cpu_time();
        let batch = Batch { packets: &mut packets, stride: STRIDE, header: HEADER };
        let authentic = key.open_batch_with(kernel, batch);
        times[1] += cpu_time() - between;
        times[0] += between - start;
        assert_eq!(authentic.count_ones() as usize, BATCH);
    }
    times.map(|time| time.as_nanos() as f64 / (REPEATS * BATCH) as f64)
}
