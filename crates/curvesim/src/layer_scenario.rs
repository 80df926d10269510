//! A random network with random applications, drawn from a seed, and what must hold in it.

use std::time::Duration;

use curvecp::congestion::Algorithm;
use curvecp::{LayerState, MessageConfig, Read};
use kendall_linkmodel::Settings;

use crate::draw::{Draw, long_losses};
use crate::layers::{LONGEST, LayerEnd, LayerWorld};
use crate::script::{Ending, Script};

/// A connection over a network; everything follows from the seed.
#[derive(Debug)]
pub struct LayerScenario {
    seed: u64,
    links: [Settings; 2],
    configs: [MessageConfig; 2],
    scripts: [Script; 2],
    repeats: bool,
    cut_at: Option<Duration>,
    /// Bytes of the longest packet that the path carries, from an instant on; the ends send long messages where there is one.
    mtu: Vec<(Duration, u32)>,
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

impl LayerScenario {
    /// The scenario of a seed.
    pub fn from_seed(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let links = [draw.link(), draw.link()];
        Self {
            seed,
            configs: [config(&mut draw, &links), config(&mut draw, &links)],
            links,
            scripts: [draw.script(), draw.script()],
            repeats: draw.one_in(2),
            cut_at: draw.one_in(20).then(|| Duration::from_millis(draw.below(3_000))),
            mtu: draw.mtu(),
        }
    }

    /// Runs it and checks every invariant.
    ///
    /// # Panics
    /// Where an invariant does not hold, after it has printed how to replay the scenario.
    pub fn check(&self) {
        let replay = Replay(self);
        let mut world = LayerWorld::new([&self.links[0], &self.links[1]], self.seed);
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

    fn check_stream(&self, reader: &LayerEnd, writer: &LayerEnd, script: &Script) {
        let dead = |end: &LayerEnd| matches!(end.layer.state(), LayerState::Failed(_));
        let over = |end: &LayerEnd| dead(end) || end.layer.state() == LayerState::Drained;
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

fn states(flow: &[LayerEnd; 2]) -> String {
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
struct Replay<'a>(&'a LayerScenario);

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let LayerScenario { seed, links: [there, back], configs, scripts, cut_at, mtu, .. } = self.0;
            let [a, b] = configs;
            eprintln!("to server: {there}\nto client: {back}\ncut at {cut_at:?}, MTU {mtu:?}");
            eprintln!("client: {:?} feedback {} {:?}", a.algorithm, a.feedback, scripts[0]);
            eprintln!("server: {:?} feedback {} {:?}", b.algorithm, b.feedback, scripts[1]);
            eprintln!(
                "replay: CURVECP_SEED={seed} cargo test -p kendall-curvesim --test it layers::whatever"
            );
        }
    }
}
