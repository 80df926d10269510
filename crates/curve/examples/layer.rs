//! What a message of 1,024 data bytes costs in the message layer, and what a silent connection costs in memory.
//!
//! `cargo run --release -p kendall-curve --example layer`. Two layers talk without a link between them; sender, receiver and
//! acknowledgments share one core, so the cost per message is that of both ends. Times are CPU times of the thread.

use std::time::Duration;

use curvecp::congestion::Algorithm;
use curvecp::{MessageConfig, MessageLayer, Read, Role};
use rustix::time::{ClockId, clock_gettime};

const TOTAL: u64 = 1 << 30;
const RUNS: usize = 3;

fn main() {
    // Of several runs the fastest counts: what else the machine does only slows it down.
    let fastest = |run: &dyn Fn() -> f64| (0..RUNS).map(|_| run()).fold(f64::INFINITY, f64::min);
    let copies = fastest(&copies);
    println!("{copies:6.1} ns to copy a message's data four times, as both ends do");
    for algorithm in [Algorithm::Cubic, Algorithm::Bbr] {
        let ends = fastest(&|| transfer(algorithm));
        let own = (ends - copies) / 2.0;
        println!(
            "{ends:6.1} ns per message at both ends with {}: {own:.1} per end beyond the copies",
            algorithm.name()
        );
    }
    let [fresh, silent] = idle_heap_bytes();
    let own = size_of::<MessageLayer>();
    println!(
        "{own} bytes per connection, {fresh} in buffers after a request, {silent} after two seconds of silence"
    );
}

/// Copies a gigabyte four times through buffers of a megabyte, a kilobyte at a time; ns per kilobyte.
fn copies() -> f64 {
    let mut buffers = [(); 5].map(|()| vec![1_u8; 1 << 20]);
    let start = cpu_time();
    for index in 0..(TOTAL >> 10) as usize {
        let at = (index << 10) & ((1 << 20) - 1);
        for copy in 0..4 {
            let (from, to) = buffers.split_at_mut(copy + 1);
            to[0][at..at + 1024].copy_from_slice(std::hint::black_box(&from[copy][at..at + 1024]));
        }
    }
    std::hint::black_box(&buffers);
    (cpu_time() - start).as_nanos() as f64 / (TOTAL >> 10) as f64
}

/// Sends a gigabyte; CPU time per message at both ends, in ns.
fn transfer(algorithm: Algorithm) -> f64 {
    // As much as a gigabyte per second needs at a millisecond.
    let config = || MessageConfig {
        algorithm,
        max_send_buffer: 1 << 20,
        max_receive_window: 1 << 20,
        ..MessageConfig::default()
    };
    let mut now = Duration::ZERO;
    let mut sender = MessageLayer::new(config(), Role::Client, 1, now);
    let mut receiver = MessageLayer::new(config(), Role::Server, 2, now);
    let piece = vec![7; 65_536];
    let mut into = vec![0; 65_536];
    let mut batch = vec![[0; 1088]; 1024];
    let mut lengths = Vec::with_capacity(1024);
    let (mut written, mut read) = (0, 0);
    let mut acks = vec![];
    let start = cpu_time();
    while read < TOTAL {
        while written < TOTAL {
            match sender.write(&piece) {
                0 => break,
                length => written += length as u64,
            }
        }
        lengths.clear();
        while lengths.len() < batch.len()
            && let Some(length) = sender.poll_transmit(now, 1088, &mut batch[lengths.len()])
        {
            lengths.push(length);
        }
        now += Duration::from_micros(500);
        let mut ack = [0; 1088];
        for (message, length) in batch.iter().zip(&lengths) {
            receiver.handle(now, &message[..*length]);
            while let Some(length) = receiver.poll_transmit(now, 1088, &mut ack) {
                acks.push((length, ack));
            }
        }
        while let Read::Bytes(length) = receiver.read(&mut into) {
            read += length as u64;
        }
        receiver.handle_timeout(now);
        while let Some(length) = receiver.poll_transmit(now, 1088, &mut ack) {
            acks.push((length, ack));
        }
        now += Duration::from_micros(500);
        for (length, ack) in acks.drain(..) {
            sender.handle(now, &ack[..length]);
        }
        sender.handle_timeout(now);
    }
    (cpu_time() - start).as_nanos() as f64 / (TOTAL >> 10) as f64
}

/// Time that this thread has spent on a CPU.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("it is not negative")
}

/// Bytes of buffers of a connection that has carried something, and after two seconds of silence.
fn idle_heap_bytes() -> [usize; 2] {
    let mut ends = [Role::Client, Role::Server]
        .map(|role| MessageLayer::new(MessageConfig::default(), role, 1, Duration::ZERO));
    ends[0].write(b"GET / HTTP/1.0\r\n\r\n");
    let mut out = [0; 1088];
    let mut now = Duration::ZERO;
    for turn in 0..10 {
        now += Duration::from_millis(30);
        let [one, other] = &mut ends;
        let (from, to) = if turn % 2 == 0 { (one, other) } else { (other, one) };
        from.handle_timeout(now);
        while let Some(length) = from.poll_transmit(now, 1088, &mut out) {
            to.handle(now, &out[..length]);
        }
        while let Read::Bytes(_) = to.read(&mut [0; 64]) {}
    }
    let heap =
        |ends: &[MessageLayer; 2]| ends.iter().map(MessageLayer::memory_bytes).max().expect("two ends");
    let fresh = heap(&ends);
    ends.iter_mut().for_each(|end| end.handle_timeout(now + Duration::from_secs(2)));
    [fresh, heap(&ends)]
}
