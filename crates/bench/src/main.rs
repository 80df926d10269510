//! Speed on this machine: how many digests a second each engine tests, how many passwords file recovery tries, how many keys
//! it derives and how fast it moves files, how near the server of hash reversal comes to that and how soon it changes its
//! mind, how late the generator sends, what a request costs it and whether what it says is so, how true an emulated link is, how
//! fast CurveCP is beside QUIC and how it shares a link with TCP, how many customers a second the simulator serves, and how soon
//! a report is there and answers its reader. Prints, and writes `docs/benchmarks.md`.
//!
//! `kendall-bench accuracy` measures instead how right predictions are, and writes `docs/accuracy.md`. `kendall-bench experiments` runs
//! the experiments of the repository, and writes `docs/results.md`.
//!
//! Everything is compared within one run, because the machine may be shared: medians of several rounds, and
//! ratios between the sides of the same round.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{self, ExitCode};

use kendall_archive::{Machine, utc_now};

mod accuracy;
mod chat;
mod cluster;
mod common;
// The course's client, as the tests of `reverse` have it.
#[allow(dead_code, reason = "the tests use all of it")]
#[path = "../../reverse/tests/it/course.rs"]
mod course;
mod curve;
mod curve_links;
mod digest;
mod experiment_file;
mod experiments;
mod formulas;
mod generator;
mod link;
mod measure;
mod page;
mod password;
#[allow(dead_code, reason = "the tests use all of it")]
#[path = "../../reverse/tests/it/peer.rs"]
mod peer;
mod peers;
mod recover;
mod remote;
mod server;
mod simulator;
mod textsearch;
mod tools;
mod trial;
mod truth;

use common::ROUNDS;

type Section = fn(&mut String);
const SECTIONS: [(&str, Section); 19] = [
    ("digest", digest::section),
    ("password", password::section),
    ("recover", recover::section),
    ("recover-copy", recover::copy::section),
    ("cluster", cluster::section),
    ("server", server::section),
    ("generator", generator::section),
    ("textsearch", textsearch::section),
    ("tools", tools::section),
    ("trial", trial::section),
    ("truth", truth::section),
    ("link", link::section),
    ("curve", curve::section),
    ("curve-links", curve_links::section),
    ("remote", remote::section),
    ("chat", chat::section),
    ("formulas", formulas::section),
    ("simulator", simulator::section),
    ("page", page::section),
];

fn main() -> ExitCode {
    // An end of a link that a section has made.
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.split_first().map(|(word, rest)| (word.as_str(), rest)) {
        Some((curve_links::ends::WORD, rest)) => {
            curve_links::ends::run(rest);
            return ExitCode::SUCCESS;
        }
        Some((curve::first_byte::WORD, rest)) => {
            curve::first_byte::run(rest);
            return ExitCode::SUCCESS;
        }
        Some((accuracy::WORD, rest)) => return accuracy::run(rest),
        Some((experiments::WORD, rest)) => return experiments::run(rest),
        _ => {}
    }
    // With names of sections only those are measured, and nothing is written.
    let names = arguments;
    if let Some(unknown) = names.iter().find(|name| SECTIONS.iter().all(|(section, _)| section != name)) {
        let known = SECTIONS.map(|(section, _)| section).join(", ");
        eprintln!("{unknown:?} is not a section of the benchmark; write some of {known}, or nothing for all");
        process::exit(2);
    }
    let page = page(&names);
    if !names.is_empty() {
        return ExitCode::SUCCESS;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks.md");
    fs::write(&path, page).expect("docs/benchmarks.md can be written");
    ExitCode::SUCCESS
}

fn page(names: &[String]) -> String {
    let machine = Machine::here();
    let mut page = format!(
        "# Benchmarks\n\nWritten by `make bench` on {}.\n\n{} × {}, kernel {}, kendall {}. \
         Medians of {ROUNDS} rounds; both sides of a ratio ran in the same rounds.\n",
        &utc_now()[..10],
        machine.cores,
        machine.cpu,
        machine.kernel,
        env!("CARGO_PKG_VERSION"),
    );
    let mut shown = 0;
    let wanted = |name: &str| names.is_empty() || names.iter().any(|one| one == name);
    for (_, section) in SECTIONS.iter().filter(|(name, _)| wanted(name)) {
        section(&mut page);
        print!("{}", &page[shown..]);
        shown = page.len();
    }
    page
}
