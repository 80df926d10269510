//! A random network with random applications, drawn from a seed, and what must hold in it.

use std::time::Duration;

use curvecp::congestion::Algorithm;
use curvecp::{LayerState, MessageConfig, Read};
use kendall_linkmodel::{Loss, Settings};

use crate::simulation::{End, Ending, LONGEST, Script, World};

/// A connection over a network; everything follows from the seed.
pub(crate) struct Scenario {
    seed: u64,
    links: [Settings; 2],
    configs: [MessageConfig; 2],
    scripts: [Script; 2],
    repeats: bool,
    cut_at: Option<Duration>,
    /// Bytes of the longest packet that the path carries, from an instant on; the ends send long messages where there is one.
    mtu: Vec<(Duration, u32)>,
}

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize].clone()
    }
}

fn link(draw: &mut Draw) -> Settings {
    let delay_us = draw.pick(&[50, 400, 2_000, 10_000, 50_000, 150_000]);
    let mut text = format!("delay={delay_us}us queue={}k", draw.pick(&[8, 30, 150, 500]));
    let mut add = |setting: String| text = format!("{text} {setting}");
    if draw.one_in(3) {
        add(format!("jitter={}us", draw.below(delay_us / 2 + 1)));
    }
    if !draw.one_in(4) {
        add(format!("rate={}", draw.pick(&["300kbit", "2mbit", "10mbit", "100mbit"])));
    }
    match draw.below(4) {
        0 => add(format!("loss={}%", draw.pick(&[1, 5, 20]))),
        1 => add(format!("loss={}% burst {}", draw.pick(&[1, 10]), draw.pick(&[2, 10]))),
        _ => {}
    }
    if draw.one_in(3) {
        add(format!("reorder={}% distance {}", draw.pick(&[1, 20]), draw.pick(&[1, 4, 20])));
    }
    if draw.one_in(3) {
        add(format!("duplicate={}%", draw.pick(&[1, 20])));
    }
    if draw.one_in(4) {
        add("corrupt=2%".to_owned());
    }
    text.parse().expect("drawn settings are valid")
}

fn script(draw: &mut Draw) -> Script {
    let total = draw.pick(&[0, 1, 500, 1_024, 5_000, 60_000, 200_000]) + draw.below(2_000);
    let pause = |draw: &mut Draw| match draw.below(3) {
        0 => Duration::from_micros(draw.pick(&[500, 10_000, 100_000])),
        _ => Duration::ZERO,
    };
    let pieces = (total / 64).max(1) as usize;
    let write = (draw.pick(&[pieces, 10 * pieces, 1 << 20]), pause(draw));
    let read = (draw.pick(&[1_000, 16_384]), pause(draw));
    let ending = if draw.one_in(5) { Ending::Abort } else { Ending::Finish };
    let starts = Duration::from_millis(draw.pick(&[0, 0, 30]));
    Script { total, write, read, ending, starts }
}

/// An MTU from 1,280 to 1,500 for half of the seeds, and another from some instant on for half of these.
fn mtu(draw: &mut Draw) -> Vec<(Duration, u32)> {
    let changes = [0, 0, 1, 2][draw.below(4) as usize];
    let mut from = Duration::ZERO;
    (0..changes)
        .map(|_| {
            let change = (from, 1_280 + draw.below(221) as u32);
            from = Duration::from_millis(draw.below(2_000));
            change
        })
        .collect()
}

/// Whether a link loses many messages in a row.
fn long_losses(link: &Settings) -> bool {
    match link.loss {
        Loss::None => false,
        Loss::Random { share } => share > 0.1,
        Loss::GilbertElliott { recovers, .. } => recovers < 0.2,
    }
}

fn config(draw: &mut Draw, links: &[Settings; 2]) -> MessageConfig {
    // Chicago doubles its interval at each time-out without a bound, so a row of losses stops it for hours.
    let any =
        [Algorithm::Cubic, Algorithm::Cubic, Algorithm::Bbr, Algorithm::ChicagoPolled, Algorithm::Chicago];
    let algorithms = if links.iter().any(long_losses) { &any[..3] } else { &any[..] };
    MessageConfig {
        algorithm: draw.pick(algorithms),
        feedback: !draw.one_in(3),
        max_receive_window: draw.pick(&[1 << 17, 1 << 20, 16 << 20]),
        // Losses come in rows of packets, not of seconds, and Chicago may send few packets a minute.
        idle_timeout: Some(Duration::from_secs(1_800)),
        ..MessageConfig::default()
    }
}

impl Scenario {
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let links = [link(&mut draw), link(&mut draw)];
        Self {
            seed,
            configs: [config(&mut draw, &links), config(&mut draw, &links)],
            links,
            scripts: [script(&mut draw), script(&mut draw)],
            repeats: draw.one_in(2),
            cut_at: draw.one_in(20).then(|| Duration::from_millis(draw.below(3_000))),
            mtu: mtu(&mut draw),
        }
    }

    /// Runs it and checks every invariant.
    pub(crate) fn check(&self) {
        let replay = Replay(self);
        let mut world = World::new([&self.links[0], &self.links[1]], self.seed);
        (world.repeats, world.cut_at) = (self.repeats, self.cut_at);
        if !self.mtu.is_empty() {
            (world.limits, world.mtu) = (LONGEST, self.mtu.clone());
        }
        world.connect(self.configs.clone(), self.scripts.clone(), self.seed);
        let total: u64 = self.scripts.iter().map(|script| script.total).sum();
        // Chicago sends a lost unit again and again at its own pace, so the bound leaves it much.
        world.most_events = 5_000 + total / 4;
        let limit = Duration::from_secs(7_200);
        assert!(
            !world.run_until(limit),
            "something still happens after two hours: {}",
            states(&world.flows[0])
        );
        let [client, server] = &world.flows[0];
        for (reader, writer, script) in
            [(server, client, &self.scripts[0]), (client, server, &self.scripts[1])]
        {
            self.check_stream(reader, writer, script);
            let bound = 4 * (1 << 20) + 8 * reader.layer.stats().window_bytes as usize;
            assert!(reader.peak_memory_bytes < bound, "{} bytes of memory", reader.peak_memory_bytes);
        }
        drop(replay);
    }

    fn check_stream(&self, reader: &End, writer: &End, script: &Script) {
        let dead = |end: &End| matches!(end.layer.state(), LayerState::Failed(_));
        let over = |end: &End| dead(end) || end.layer.state() == LayerState::Drained;
        assert!(over(reader) && over(writer), "neither drained nor failed");
        let probes = |config: &MessageConfig| matches!(config.algorithm, Algorithm::Cubic | Algorithm::Bbr);
        if self.cut_at.is_none() && !self.links.iter().any(long_losses) && self.configs.iter().all(probes) {
            assert!(!dead(reader) && !dead(writer), "an end was left behind: {:?}", writer.layer.stats());
        }
        match reader.outcome {
            // The bytes were compared as they were read.
            Some(Read::Finished) => {
                assert_eq!((reader.read, script.ending), (script.total, Ending::Finish), "finished early");
            }
            Some(Read::Failed) => {
                assert!(reader.read <= script.total);
                assert!(
                    script.ending == Ending::Abort || (dead(reader) && self.cut_at.is_some()),
                    "failed without a reason: {:?}",
                    reader.layer.stats()
                );
            }
            other => panic!("the reader ended with {other:?}"),
        }
    }
}

fn states(flow: &[End; 2]) -> String {
    flow.iter()
        .map(|end| {
            format!(
                "\n{:?} read {} wrote {} {:?}",
                end.layer.state(),
                end.read,
                end.written,
                end.layer.stats()
            )
        })
        .collect()
}

/// Prints how to run a scenario again, if it fails.
struct Replay<'a>(&'a Scenario);

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Scenario { seed, links: [there, back], configs, scripts, cut_at, mtu, .. } = self.0;
            let [a, b] = configs;
            eprintln!("to server: {there}\nto client: {back}\ncut at {cut_at:?}, MTU {mtu:?}");
            eprintln!("client: {:?} feedback {} {:?}", a.algorithm, a.feedback, scripts[0]);
            eprintln!("server: {:?} feedback {} {:?}", b.algorithm, b.feedback, scripts[1]);
            eprintln!("replay: CURVECP_SEED={seed} cargo test -p curvecp --test it sim::whatever");
        }
    }
}
