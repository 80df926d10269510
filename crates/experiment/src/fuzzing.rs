//! What must hold for any experiment file, and for traces of arrivals.

use std::path::PathBuf;

use kendall_linkmodel::Transport;
use kendall_station::{Arrivals, Discipline, Servers};
use kendall_system::{Home, Kind, Parameter, StationShape, Subcommands, System, no_limits};
use kendall_testbed::fuzz::{Target, with_file};

use crate::load::trace::{self, Reading, Ties};
use crate::parse;

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "experiment-file", seeds: file_seeds, run: file },
    Target { name: "experiment-trace", seeds: trace_seeds, run: read_trace },
];

static SYSTEMS: [System; 1] = [System {
    name: "search",
    about: "a system for these cases",
    default_port: 1,
    home: Home::Here,
    server: &[Parameter {
        name: "workers",
        help: "",
        kind: Kind::Whole { least: 1, most: 64 },
        default: Some("1"),
    }],
    workload: &[Parameter { name: "wait", help: "", kind: Kind::Time, default: Some("1ms") }],
    station: |_| StationShape::unlimited(Servers::MIN, Discipline::Fifo),
    transport: |_| Transport::TCP,
    load: |_, _, _| Err("not loaded".into()),
    serve: |_, _| Err("not served".into()),
    limits: no_limits,
    subcommands: Subcommands::NONE,
}];

/// An experiment has combinations, a bounded number, each with a load or a fault in words. A fault names its line.
fn file(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match parse("file.toml", "file", text, PathBuf::from("/nowhere"), &SYSTEMS) {
        Err(fault) => assert!(fault.to_string().starts_with("file.toml"), "{fault}"),
        Ok(experiment) => {
            let combinations = experiment.combinations();
            assert!((1..=10_000).contains(&combinations.len()));
            for combination in combinations.iter().take(20) {
                let _ = experiment.load(combination).is_ok();
            }
        }
    }
}

fn file_seeds() -> Vec<Vec<u8>> {
    vec![
        b"name = \"sweep\"\nquestion = \"How long?\"\nrepeats = 4\nseed = 7\n[system]\nname = \"search\"\nworkers = [1, 2]\n          [workload]\nwait = \"1ms\"\n[load]\nrate = [\"20%\", \"95%\", 30]\nduration = \"2s\"\n[[model]]\nstation = \"M/G/1\"\n"
            .to_vec(),
        b"[system]\nname = \"search\"\n[load]\nusers = [1, 10]\nthink = \"10ms\"\nrequests = 100\n[link]\nsettings =           \"delay=5ms rate=10mbit\"\n[[expect]]\nthat = \"p99<50ms\"\n[published]\npoints = [{ rate = 5, mean = \"1ms\" }]\n"
            .to_vec(),
    ]
}

/// A trace ascends from 0 on and has an instant for each line at most.
fn read_trace(input: &[u8]) {
    for (column, ties) in [(None, Ties::Even), (Some("at"), Ties::Random)] {
        let trace = with_file("trace", input, |path| trace::read(path, Reading { column, ties, speed: 2.0 }));
        match trace {
            Err(why) => assert!(!why.is_empty()),
            Ok(Arrivals::Trace { instants_s }) => {
                assert!(
                    instants_s.is_sorted() && instants_s.iter().all(|at_s| at_s.is_finite() && *at_s >= 0.0)
                );
                assert!(instants_s.len() <= input.len());
            }
            Ok(other) => panic!("{other:?} is not a trace"),
        }
    }
}

fn trace_seeds() -> Vec<Vec<u8>> {
    let logged = |at: &str| format!("127.0.0.1 - - [{at}] \"GET / HTTP/1.1\" 200 5\n");
    vec![
        b"# seconds\n0.5\n1\n".to_vec(),
        (logged("21/Nov/2026:16:30:01 +0000") + &logged("21/Nov/2026:16:30:00 +0100")).into(),
        b"at,b\n2026-11-21T16:30:00Z,1\n2026-11-21T16:30:00.5Z,2\n".to_vec(),
        b"{\"at\": 1795278600.5}\n{\"at\": 1795278600}\n".to_vec(),
    ]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
