//! What server, generator and machine used, on a page and on a screen.

use kendall_analysis::Bottleneck;
use kendall_analysis::{Finding, Report, RequestSplit, Resources, Severity, SplitPart, SplitPlace, findings};
use kendall_probe::{
    Cost, Line, Lock, MachineUse, Places, Profile, Role, Summary, ThreadState, ThreadUse, Timeline, Use,
};
use kendall_report::{page, resources};

use crate::sample;

fn summary() -> Summary {
    let thread = |name: &str, cpu_cores| ThreadUse {
        process: "server 1".into(),
        thread: name.into(),
        cpu_cores,
        waiting: 0.1,
        places: vec![(ThreadState::Running, 0.8), (ThreadState::Lock, 0.2)],
    };
    let line = |role, thread: &str| Line {
        role,
        thread: thread.into(),
        cpu_cores: vec![0.1, 0.9, 0.8, 0.2],
        waiting_threads: vec![0.0, 0.3, 0.1, 0.0],
    };
    let lock = Some(Lock { address: 0xbeef, share: 0.4, waiters: 1.2 });
    Summary {
        length_s: 4.0,
        cost: Cost { cpu_s: 0.016, samples: 400, skipped: 0, every_s: 0.01 },
        cores: 2.0,
        machine: MachineUse { cores: 2.0, busy_cores: Some(1.2), ..MachineUse::default() },
        server: Some(Use {
            cpu_cores: 0.71,
            threads: vec![thread("worker <2>", 0.5), thread("accept 3", 0.21)],
            memory_peak_bytes: Some(34e6),
            run_queue_wait_s: Some((12e-6, 3e-3)),
            places: Some(Places {
                looks: 40,
                found: vec![(ThreadState::Lock, 0.4, 1.2)],
                lock,
                ..Places::default()
            }),
            ..Use::default()
        }),
        generator: Some(Use { cpu_cores: 0.3, ..Use::default() }),
        timeline: Timeline {
            bin_s: 1.0,
            lines: vec![
                line(Role::Server, ""),
                line(Role::Server, "worker <2>"),
                line(Role::Generator, ""),
                line(Role::Generator, "main"),
            ],
        },
        missing: vec!["pressure: this kernel does not report it".into()],
    }
}

fn split() -> RequestSplit {
    let part = |at, time_s, share| SplitPart { at, time_s, share };
    RequestSplit {
        request_s: 0.01,
        throughput_per_s: 230.0,
        parts: vec![part(SplitPlace::OnCpu, 0.003, 0.3), part(SplitPlace::Lock, 0.005, 0.5)],
        unseen_s: 0.002,
        looks: 40,
        unknown: vec!["Queues within the server are not seen.".into()],
    }
}

fn watched() -> Report {
    let mut report = sample::report();
    let folded = vec![("worker;main;hash".to_owned(), 90), ("worker;main".to_owned(), 10)];
    let profile = Profile { hz: 99, samples: 100, lost: 0, cost_s: 0.01, notes: vec![], folded };
    let limit = Some(Bottleneck::Lock { share: 0.9, waiters: 3.0, used_cores: 0.7, cores: 2.0 });
    let one = |at: usize, trial: &str| Resources {
        trial: trial.into(),
        point: Some(at),
        summary: summary(),
        limit: limit.clone(),
        split: Some(split()),
        profile: Some(profile.clone()),
    };
    report.resources = vec![one(0, "001"), one(5, "002")];
    report.resources[1].summary.server.as_mut().unwrap().cpu_cores = 1.9;
    report
}

#[test]
fn a_page_shows_resources_over_time_by_trial_and_by_function() {
    let page = page(&watched());
    for part in [
        "<h2>Resources</h2>",
        "Cores used over time in trial 002 at 230/s",
        "34 MB",
        "hash: 90 %, 90 samples",
        "0.40 % of a core at 100 readings a second",
        "One request&#39;s time in the server: 10.0 ms",
        "waiting for a lock",
        "From 40 samples",
        "Not seen: pressure",
        "worker &#60;2&#62;",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let page = sample::without_script(&page);
    assert!(!page.contains("NaN") && !page.contains("worker <2>"));
    let bare = kendall_report::page(&sample::report());
    assert!(!bare.contains("Resources"), "a report of trials that were not watched says nothing of them");
}

#[test]
fn the_limit_is_named_at_the_point_where_the_server_used_most() {
    let found = findings(&watched());
    let limits: Vec<_> = found.iter().filter(|finding| matches!(finding, Finding::Limited { .. })).collect();
    assert_eq!(limits.len(), 1);
    let said = limits[0].to_string();
    assert!(said.starts_with("At 230/s: A lock is the bottleneck: 90 % of the time"), "{said}");
    assert_eq!(limits[0].severity(), Severity::Note);
}

#[test]
fn a_report_with_resources_reads_back_as_written() {
    let report = watched();
    assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
}

#[test]
fn the_screen_shows_what_could_be_read_and_names_the_rest() {
    let text = resources::text(&summary(), None);
    for part in ["0.710 of 2.0 cores", "p99 3.0", "34 MB at most", "running 80 %, lock 20 %", "40"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(text.contains("Not measured: pressure") && !text.contains("NaN"), "{text}");
}
