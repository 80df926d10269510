//! A random network with random applications on whole endpoints, drawn from a seed, and what must hold in it.

use std::time::Duration;

use curvecp::congestion::Algorithm;
use curvecp::{CloseReason, MessageConfig, Read};
use kendall_linkmodel::{Loss, Settings};

use crate::application::Application;
use crate::draw::{Draw, long_losses};
use crate::endpoints::{EndpointWorld, Faults, Move, Plan};
use crate::script::Ending;

const SECOND: Duration = Duration::from_secs(1);

/// One to three connections of one or two clients with a server; everything follows from the seed.
#[derive(Debug)]
pub struct EndpointScenario {
    seed: u64,
    links: [Settings; 2],
    server: MessageConfig,
    plans: Vec<Plan>,
    faults: Faults,
}

fn config(draw: &mut Draw, algorithms: &[Algorithm]) -> MessageConfig {
    MessageConfig {
        algorithm: draw.pick(algorithms),
        feedback: !draw.one_in(3),
        max_receive_window: draw.pick(&[1 << 17, 1 << 20, 16 << 20]),
        // Losses come in rows of packets, not of seconds, and Chicago may send few packets a minute.
        idle_timeout: Some(1_800 * SECOND),
        ..MessageConfig::default()
    }
}

fn faults(draw: &mut Draw, clients: usize) -> Faults {
    let mut moves: Vec<Move> = (0..draw.pick(&[0, 0, 0, 1, 3]))
        .map(|_| Move {
            at: Duration::from_millis(draw.below(5_000)),
            client: draw.below(clients as u64) as usize,
            knows: draw.one_in(2),
        })
        .collect();
    moves.sort_by_key(|next| next.at);
    let outage = draw.one_in(6).then(|| {
        let from = Duration::from_millis(draw.below(2_000));
        [from, from + Duration::from_millis(draw.below(5_000))]
    });
    Faults {
        cut_at: draw.one_in(20).then(|| Duration::from_millis(draw.below(3_000))),
        outage,
        moves,
        replays_one_in: draw.one_in(3).then(|| draw.pick(&[2, 10, 50])),
        dead_addresses: draw.pick(&[0, 0, 0, 1, 2]),
        mtu: draw.mtu(),
    }
}

impl EndpointScenario {
    /// The scenario of a seed.
    pub fn from_seed(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let links = [draw.link(), draw.link()];
        let connections = draw.pick(&[1, 1, 1, 2, 3]);
        let clients = draw.pick(&[1, 2]).min(connections);
        let faults = faults(&mut draw, clients);
        // Chicago doubles its interval at each time-out without a bound, so a row of losses stops it for hours.
        let any = [
            Algorithm::Cubic,
            Algorithm::Cubic,
            Algorithm::Bbr,
            Algorithm::ChicagoPolled,
            Algorithm::Chicago,
        ];
        let is_rough = links.iter().any(long_losses) || faults.outage.is_some() || !faults.moves.is_empty();
        let algorithms = if is_rough { &any[..3] } else { &any[..] };
        let plan = |client: usize, draw: &mut Draw| Plan {
            client: client % clients,
            config: config(draw, algorithms),
            scripts: [draw.script(), draw.script()],
        };
        Self {
            seed,
            server: config(&mut draw, algorithms),
            plans: (0..connections).map(|client| plan(client, &mut draw)).collect(),
            links,
            faults,
        }
    }

    /// Runs it and checks every invariant. Returns a digest of all datagrams that were sent, and when.
    ///
    /// # Panics
    /// Where an invariant does not hold, after it has printed how to replay the scenario.
    pub fn check(&self) -> u64 {
        let replay = Replay(self);
        let [there, back] = &self.links;
        let mut world = EndpointWorld::new(
            [there, back],
            self.server.clone(),
            self.plans.clone(),
            self.faults.clone(),
            self.seed,
        );
        let total: u64 = self.plans.iter().flat_map(|plan| &plan.scripts).map(|script| script.total).sum();
        // Chicago sends a lost unit again and again at its own pace, so the bound leaves it much.
        world.most_events = 10_000 * self.plans.len() as u64 + total / 4;
        let is_over = world.run_until_over(7_200 * SECOND);
        assert!(is_over, "something still happens after two hours: {:#?}", world.connections);
        for (plan, [client, server]) in self.plans.iter().zip(&world.connections) {
            for application in [client, server] {
                let [memory, window] = application.peak;
                assert!(memory < 4 * (1 << 20) + 8 * window, "{memory} bytes of memory");
            }
            assert!(!client.connected || server.is_open(), "a server that answers has a connection");
            self.check_stream(plan, server, client);
            self.check_stream(plan, client, server);
            if self.is_calm(plan) {
                let reasons = [client.closed, server.closed];
                assert_eq!(reasons, [Some(CloseReason::Finished); 2], "an end was left behind");
            }
        }
        let sent = world.run_after_the_end(300 * SECOND);
        assert_eq!(sent, 0, "datagrams after the end");
        drop(replay);
        world.trace()
    }

    /// Whether nothing in this network excuses a connection that fails.
    fn is_calm(&self, plan: &Plan) -> bool {
        let probes = |config: &MessageConfig| matches!(config.algorithm, Algorithm::Cubic | Algorithm::Bbr);
        let loses = |link: &Settings| link.loss != Loss::None || link.corruption > 0.0;
        let [there, back] = &self.links;
        // Where some addresses are dead, the server gets three Hellos, which losses and other connections' queues may swallow.
        let few_hellos =
            self.faults.dead_addresses > 0 && (self.plans.len() > 1 || loses(there) || loses(back));
        // A client that has ended reports a new address once, if it knows of it.
        let is_found = |next: &Move| next.knows && !loses(there) && self.faults.outage.is_none();
        self.faults.cut_at.is_none()
            && !few_hellos
            && self.faults.moves.iter().all(|next| next.client != plan.client || is_found(next))
            && !long_losses(there)
            && !long_losses(back)
            && [&self.server, &plan.config].into_iter().all(probes)
    }

    /// A stream is delivered exactly and in order, or both sides know that it was not. Its bytes were compared as they were read.
    fn check_stream(&self, plan: &Plan, reader: &Application, writer: &Application) {
        let succeeds = writer.script.ending == Ending::Finish;
        let is_exact = reader.read == writer.script.total && writer.written == reader.read;
        assert!(reader.read <= writer.written);
        match reader.outcome {
            Some(Read::Finished) => assert!(succeeds && is_exact, "finished early: {reader:#?}"),
            Some(Read::Failed) => assert!(
                !succeeds || (reader.closed != Some(CloseReason::Finished) && !self.is_calm(plan)),
                "failed without a reason: {reader:#?}"
            ),
            None => assert!(!reader.is_open(), "neither delivered nor failed"),
            other => panic!("the reader ended with {other:?}"),
        }
        if writer.closed == Some(CloseReason::Finished) && succeeds {
            assert_eq!(reader.outcome, Some(Read::Finished), "the writer believes that all arrived");
        }
    }
}

/// Prints how to run a scenario again, if it fails.
struct Replay<'a>(&'a EndpointScenario);

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let EndpointScenario { seed, links: [there, back], server, plans, faults } = self.0;
            eprintln!("to server: {there}\nto client: {back}\n{faults:?}");
            eprintln!("server: {:?} feedback {}", server.algorithm, server.feedback);
            for Plan { client, config, scripts } in plans {
                eprintln!("client {client}: {:?} feedback {} {scripts:?}", config.algorithm, config.feedback);
            }
            eprintln!(
                "replay: CURVECP_SEED={seed} cargo test -p kendall-curvesim --test it endpoints::whatever"
            );
        }
    }
}
