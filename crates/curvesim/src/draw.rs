//! Networks and applications, drawn from a seed.

use std::time::Duration;

use kendall_linkmodel::{Loss, Settings};

use crate::script::{Ending, Script};

/// SplitMix64.
#[derive(Debug)]
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize].clone()
    }

    /// One direction of a link.
    pub(crate) fn link(&mut self) -> Settings {
        let delay_us = self.pick(&[50, 400, 2_000, 10_000, 50_000, 150_000]);
        let mut text = format!("delay={delay_us}us queue={}k", self.pick(&[8, 30, 150, 500]));
        let mut add = |setting: String| text = format!("{text} {setting}");
        if self.one_in(3) {
            add(format!("jitter={}us", self.below(delay_us / 2 + 1)));
        }
        if !self.one_in(4) {
            add(format!("rate={}", self.pick(&["300kbit", "2mbit", "10mbit", "100mbit"])));
        }
        match self.below(4) {
            0 => add(format!("loss={}%", self.pick(&[1, 5, 20]))),
            1 => add(format!("loss={}% burst {}", self.pick(&[1, 10]), self.pick(&[2, 10]))),
            _ => {}
        }
        if self.one_in(3) {
            add(format!("reorder={}% distance {}", self.pick(&[1, 20]), self.pick(&[1, 4, 20])));
        }
        if self.one_in(3) {
            add(format!("duplicate={}%", self.pick(&[1, 20])));
        }
        if self.one_in(4) {
            add("corrupt=2%".to_owned());
        }
        text.parse().expect("drawn settings are valid")
    }

    pub(crate) fn script(&mut self) -> Script {
        let total = self.pick(&[0, 1, 500, 1_024, 5_000, 60_000, 200_000]) + self.below(2_000);
        let pieces = (total / 64).max(1) as usize;
        let write = (self.pick(&[pieces, 10 * pieces, 1 << 20]), self.pause());
        let read = (self.pick(&[1_000, 16_384]), self.pause());
        let ending = if self.one_in(5) { Ending::Abort } else { Ending::Finish };
        let starts = Duration::from_millis(self.pick(&[0, 0, 30]));
        Script { total, write, read, ending, starts }
    }

    fn pause(&mut self) -> Duration {
        match self.below(3) {
            0 => Duration::from_micros(self.pick(&[500, 10_000, 100_000])),
            _ => Duration::ZERO,
        }
    }

    /// An MTU from 1,280 to 1,500 for half of the seeds, and another from some instant on for half of these.
    pub(crate) fn mtu(&mut self) -> Vec<(Duration, u32)> {
        let changes = [0, 0, 1, 2][self.below(4) as usize];
        let mut from = Duration::ZERO;
        (0..changes)
            .map(|_| {
                let change = (from, 1_280 + self.below(221) as u32);
                from = Duration::from_millis(self.below(2_000));
                change
            })
            .collect()
    }
}

/// Whether a link loses many messages in a row.
pub(crate) fn long_losses(link: &Settings) -> bool {
    match link.loss {
        Loss::None => false,
        Loss::Random { share } => share > 0.1,
        Loss::GilbertElliott { recovers, .. } => recovers < 0.2,
    }
}
