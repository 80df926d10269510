use super::*;
use crate::generator::Limit;
use kendall_evidence::PauseCount;
use kendall_probe::{Connections, Cost, Lock, MachineUse, Places, Timeline};

fn thread(name: &str, cpu_cores: f64) -> ThreadUse {
    ThreadUse { process: "server 1".into(), thread: name.into(), cpu_cores, waiting: 0.0, places: Vec::new() }
}

/// A server with two workers, and a generator, on four cores of which little is used.
fn idle() -> Summary {
    let threads = vec![thread("worker 2", 0.1), thread("worker 3", 0.1)];
    Summary {
        length_s: 10.0,
        cost: Cost { cpu_s: 0.05, samples: 1000, skipped: 0, every_s: 0.01 },
        cores: 4.0,
        machine: MachineUse { cores: 4.0, busy_cores: Some(0.3), ..MachineUse::default() },
        server: Some(Use { cpu_cores: 0.2, threads, ..Use::default() }),
        generator: Some(Use {
            cpu_cores: 0.06,
            threads: vec![thread("generator 9", 0.05), thread("kendall-probe 8", 0.01)],
            ..Use::default()
        }),
        timeline: Timeline::default(),
        missing: Vec::new(),
    }
}

/// A verdict with these limits and no others.
fn verdict(limits: impl IntoIterator<Item = Limit>) -> GeneratorVerdict {
    GeneratorVerdict { limits: limits.into_iter().collect(), ..GeneratorVerdict::default() }
}

/// What limits under a load with this verdict on its generator.
fn under(summary: &Summary, verdict: &GeneratorVerdict) -> Bottleneck {
    let answers = AnswersSeen { response_s: Some(0.01), ..AnswersSeen::default() };
    let load = LoadSeen { answers, send_lag_p99_s: 0.0001, verdict };
    bottleneck(summary, Some(&load)).unwrap()
}

fn with(change: impl FnOnce(&mut Summary, &mut Use)) -> Bottleneck {
    let mut summary = idle();
    let mut server = summary.server.take().unwrap();
    change(&mut summary, &mut server);
    summary.server = Some(server);
    under(&summary, &verdict([]))
}

fn at(place: ThreadState, share: f64, threads: f64) -> Option<Places> {
    Some(Places { looks: 100, found: vec![(place, share, threads)], ..Places::default() })
}

#[test]
fn each_limit_is_named_from_what_shows_it() {
    let cpu = with(|_, server| {
        server.cpu_cores = 3.8;
        server.threads.iter_mut().for_each(|thread| thread.cpu_cores = 0.95);
    });
    assert!(matches!(cpu, Bottleneck::Cpu { .. }), "{cpu}");
    let one = with(|_, server| {
        server.cpu_cores = 1.1;
        server.threads[0].cpu_cores = 0.97;
    });
    assert!(matches!(&one, Bottleneck::OneThread { thread, .. } if thread == "worker 2"), "{one}");
    let lock = with(|_, server| {
        let lock = Some(Lock { address: 0xbeef, share: 0.97, waiters: 5.0 });
        server.places = Some(Places { lock, ..at(ThreadState::Lock, 0.98, 5.2).unwrap() });
    });
    assert!(matches!(lock, Bottleneck::Lock { .. }), "{lock}");
    let disk = with(|_, server| server.places = at(ThreadState::Disk, 0.95, 1.3));
    assert!(matches!(disk, Bottleneck::Disk { .. }), "{disk}");
    let back_end = with(|_, server| server.places = at(ThreadState::BackEnd, 0.9, 3.0));
    assert!(matches!(back_end, Bottleneck::BackEnd { .. }), "{back_end}");
    let event_loop = with(|_, server| {
        let back_end = Some((4.0, 2.5, 0.95));
        server.connections = Some(Connections { back_end, ..Connections::default() });
    });
    assert!(matches!(event_loop, Bottleneck::BackEnd { .. }), "{event_loop}");
    let network = with(|_, server| {
        let connections =
            Connections { send_blocked: Some(0.9), unsent_bytes: 5e5, ..Connections::default() };
        server.connections = Some(connections);
    });
    assert!(matches!(network, Bottleneck::Network { .. }), "{network}");
    let run_queue = with(|summary, server| {
        summary.machine.busy_cores = Some(4.0);
        (server.cpu_cores, server.waiting_threads) = (0.5, 1.4);
    });
    assert!(matches!(run_queue, Bottleneck::RunQueue { .. }), "{run_queue}");
    // Two threads that would use two cores share them evenly with a program that has as many.
    let halved = with(|summary, server| {
        summary.machine.busy_cores = Some(4.0);
        (server.cpu_cores, server.waiting_threads) = (2.1, 1.9);
        (server.threads[0].cpu_cores, server.threads[0].waiting) = (0.6, 0.4);
    });
    assert!(matches!(halved, Bottleneck::RunQueue { .. }), "{halved}");
    let throttled = with(|_, server| server.throttled = Some(0.85));
    assert!(throttled.to_string().contains("quota"), "{throttled}");
    let none = with(|_, _| ());
    assert!(matches!(&none, Bottleneck::None { share, .. } if *share < 0.2), "{none}");
}

#[test]
fn a_generator_that_is_late_busy_or_in_the_way_is_named_before_all_else() {
    let mut summary = idle();
    summary.server.as_mut().unwrap().cpu_cores = 4.0;
    let found = under(&summary, &verdict([Limit::Late { lag_p99_s: 0.001, share: 0.2 }]));
    assert!(matches!(found, Bottleneck::Generator { why: GeneratorLimit::Late { .. } }), "{found}");
    let mut summary = idle();
    summary.generator.as_mut().unwrap().threads[0].cpu_cores = 0.97;
    let found = under(&summary, &verdict([Limit::Busy { core_share: 0.97 }]));
    assert!(matches!(found, Bottleneck::Generator { why: GeneratorLimit::Busy { .. } }), "{found}");
    // Its judge says that it had time to spare: it spins.
    let found = under(&summary, &verdict([]));
    assert!(matches!(found, Bottleneck::None { .. }), "{found}");
    let mut summary = idle();
    summary.machine.busy_cores = Some(3.9);
    summary.generator.as_mut().unwrap().cpu_cores = 2.4;
    summary.server.as_mut().unwrap().cpu_cores = 1.5;
    let found = under(&summary, &verdict([]));
    assert!(matches!(found, Bottleneck::Generator { why: GeneratorLimit::Crowding { .. } }), "{found}");
}

#[test]
fn on_a_machine_that_others_fill_neither_server_nor_generator_is_blamed() {
    let found = with(|summary, server| {
        summary.machine.busy_cores = Some(4.0);
        summary.generator.as_mut().unwrap().cpu_cores = 0.3;
        (server.cpu_cores, server.waiting_threads) = (0.2, 0.9);
    });
    assert!(matches!(found, Bottleneck::RunQueue { .. }), "{found}");
}

#[test]
fn a_server_that_shares_two_cores_with_its_generator_is_limited_by_them() {
    let found = with(|summary, server| {
        summary.cores = 2.0;
        (summary.machine.cores, summary.machine.busy_cores) = (2.0, Some(1.98));
        summary.generator.as_mut().unwrap().cpu_cores = 0.5;
        (server.cpu_cores, server.waiting_threads) = (1.45, 0.8);
    });
    assert!(matches!(found, Bottleneck::Cpu { .. }), "{found}");
}

#[test]
fn a_queue_for_a_lock_on_full_cores_is_the_cores() {
    let found = with(|_, server| {
        server.cpu_cores = 3.9;
        let lock = Some(Lock { address: 0xbeef, share: 1.0, waiters: 5.0 });
        server.places = Some(Places { lock, ..at(ThreadState::Lock, 1.0, 5.2).unwrap() });
    });
    assert!(matches!(found, Bottleneck::Cpu { .. }), "{found}");
}

/// Connections of which the given number were held back on average, in a share of the samples.
fn held_back(mean: f64, share: f64) -> Option<Connections> {
    let held_back = Some((mean, share));
    Some(Connections { held_back, send_blocked: Some(0.0), looks: 100, ..Connections::default() })
}

/// Pauses of 40 ms in the given number of a thousand answers, of which ten were the first of their connections.
fn pauses(paused: u64) -> AnswerPauses {
    AnswerPauses {
        first: PauseCount { answers: 10, paused: 0 },
        later: PauseCount { answers: 990, paused },
        paused_ns: 41_000_000 * paused,
        requests_ns: 42_000_000 * 1000,
        paused_otherwise: 0,
    }
}

#[test]
fn bytes_that_nagles_algorithm_holds_back_are_no_fault_of_the_network() {
    let mut summary = idle();
    // At 10 requests a second of 40 ms each, some bytes are held back at two fifths of the looks: that is all of the response.
    summary.server.as_mut().unwrap().connections = held_back(0.4, 0.4);
    let verdict = verdict([]);
    let under = |response_s, pauses| {
        let answers = AnswersSeen {
            response_s: Some(response_s),
            throughput_per_s: Some(10.0),
            pauses,
            ..AnswersSeen::default()
        };
        bottleneck(&summary, Some(&LoadSeen { answers, send_lag_p99_s: 0.0001, verdict: &verdict })).unwrap()
    };
    let found = under(0.041, Some(pauses(970)));
    assert!(matches!(found, Bottleneck::HeldBack { .. }), "{found}");
    let said = found.to_string();
    for part in [
        "Nagle",
        "TCP_NODELAY",
        "40.0 ms for each request",
        "98 % of the answers paused for 41.0 ms",
        "none of the first",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!said.contains("The network is the bottleneck"), "{said}");
    // Where a request takes a second for other reasons, 40 ms of it limit nothing.
    let found = under(1.0, None);
    assert!(matches!(found, Bottleneck::None { .. }), "{found}");
    // Without a load it limits where it is so most of the time.
    assert!(matches!(bottleneck(&summary, None), Some(Bottleneck::None { .. })));
    summary.server.as_mut().unwrap().connections = held_back(0.9, 0.9);
    assert!(matches!(bottleneck(&summary, None), Some(Bottleneck::HeldBack { .. })));
}

/// "2.0 of 2 cores busy" and "nothing is at its limit" are one statement too many.
#[test]
fn on_a_full_machine_something_is_at_its_limit() {
    for (server_cores, generator_cores, busy_cores) in
        [(0.7, 0.6, 2.0), (0.05, 0.02, 1.85), (1.0, 0.95, 2.0), (0.4, 0.1, 1.9)]
    {
        let found = with(|summary, server| {
            summary.cores = 2.0;
            (summary.machine.cores, summary.machine.busy_cores) = (2.0, Some(busy_cores));
            summary.generator.as_mut().unwrap().cpu_cores = generator_cores;
            server.cpu_cores = server_cores;
            server.threads.iter_mut().for_each(|thread| thread.cpu_cores = server_cores / 2.0);
        });
        assert!(
            !matches!(found, Bottleneck::None { .. }),
            "{server_cores} {generator_cores} {busy_cores}: {found}"
        );
        assert!(!found.to_string().contains("Nothing"), "{found}");
    }
}

#[test]
fn without_a_server_there_is_nothing_to_name() {
    let mut summary = idle();
    summary.server = None;
    assert_eq!(bottleneck(&summary, None), None);
}
