//! A replica of the course's client in its own scenario, written from the description of the protocol, the draws of
//! its requests, its threads, its score. Blocking sockets, one thread per request. It shares no code with the system
//! under test, nor with the workload that replaces it.

use std::net::SocketAddr;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::peer::{ask, digest, request};

/// The command-line arguments of that client, in order.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) seed: u32,
    pub(crate) total: u32,
    /// 0 draws a start for each request.
    pub(crate) start: u64,
    pub(crate) difficulty: u64,
    pub(crate) repeat_percent: u32,
    pub(crate) delay: Duration,
    pub(crate) lambda: f64,
}

/// A request that it draws, with the expected answer.
#[derive(Clone, Copy)]
pub(crate) struct DrawnRequest {
    pub(crate) x: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) priority: u8,
}

/// The results that it prints at the end.
pub(crate) struct Results {
    pub(crate) reliability_percent: f64,
    pub(crate) score: u64,
    /// The number of requests of each priority, from 1.
    pub(crate) priorities: [u32; 16],
}

impl Scenario {
    /// Its requests, in the order in which it draws them.
    pub(crate) fn requests(&self) -> Vec<DrawnRequest> {
        let mut rand = Rand::new(self.seed);
        let mut all: Vec<DrawnRequest> = Vec::new();
        for i in 0..self.total {
            let start = if self.start == 0 {
                let high = rand.next();
                (high << 32 | rand.next()) % (0xffff_ffff_ffff_fffe - self.difficulty)
            } else {
                self.start
            };
            let repeats = rand.next() % 100 <= u64::from(self.repeat_percent) && i > 0;
            let (x, start, end) = if repeats {
                let earlier = all[(rand.next() % u64::from(i)) as usize];
                (earlier.x, earlier.start, earlier.end)
            } else {
                (start + rand.next() % self.difficulty, start, start + self.difficulty)
            };
            let priority = if self.lambda == 0.0 { 1 } else { rand.priority(self.lambda) };
            all.push(DrawnRequest { x, start, end, priority });
        }
        all
    }

    /// Sends them all, a thread for each, and waits for every answer.
    pub(crate) fn run(&self, server: SocketAddr) -> Results {
        let mut sent = Vec::new();
        for drawn in self.requests() {
            sent.push((drawn, thread::spawn(move || drawn.send(server))));
            sleep(self.delay);
        }
        let (mut correct, mut weighted_us, mut priorities) = (0u64, 0, [0; 16]);
        for (drawn, thread) in sent {
            let (right, latency_us) = thread.join().unwrap();
            correct += u64::from(right);
            weighted_us += u64::from(drawn.priority) * latency_us;
            priorities[usize::from(drawn.priority) - 1] += 1;
        }
        let total = u64::from(self.total);
        let reliability_percent = 100.0 * correct as f64 / total as f64;
        Results { reliability_percent, score: weighted_us / total, priorities }
    }
}

impl DrawnRequest {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        request(digest(self.x), self.start, self.end, self.priority)
    }

    /// Whether the answer is right, and the microseconds from the connection to its end.
    fn send(&self, server: SocketAddr) -> (bool, u64) {
        let bytes = self.bytes();
        let begun = Instant::now();
        let answer = ask(server, &bytes);
        (answer == self.x, begun.elapsed().as_micros() as u64)
    }
}

/// `rand()` of the C library that the client was linked with: additive feedback over 31 words.
struct Rand {
    words: [u32; 31],
    at: usize,
}

impl Rand {
    fn new(seed: u32) -> Self {
        let mut words = [seed; 31];
        for i in 1..31 {
            words[i] = (16_807 * u64::from(words[i - 1]) % 2_147_483_647) as u32;
        }
        let mut rand = Self { words, at: 3 };
        for _ in 0..310 {
            rand.next();
        }
        rand
    }

    /// 31 bits.
    fn next(&mut self) -> u64 {
        let word = self.words[self.at].wrapping_add(self.words[(self.at + 28) % 31]);
        self.words[self.at] = word;
        self.at = (self.at + 1) % 31;
        u64::from(word >> 1)
    }

    fn priority(&mut self, lambda: f64) -> u8 {
        let uniform = self.next() as f64 / 2_147_483_648.0;
        ((-(1.0 - uniform).ln() / lambda) as u8 + 1).min(16)
    }
}
