//! How many accounts users can register, each of them on the disk before it is acknowledged.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{ROUNDS, kendall, median};

/// The cases of [`EXPERIMENT`], and how many registrations a second each is to sustain.
const CASES: [(&str, f64); 3] =
    [("tls-kept", 8_000.0), ("plain-per-request", 6_000.0), ("tls-per-request", 3_300.0)];
const EXPERIMENT: &str = r#"
name = "chat"
# A retried trial would ask for the same names, which are taken then.
disturbed-over = "100%"
repeats = ROUNDS

[load]
arrivals = "closed"
users = 50
duration = "5s"
warmup = "1s"

[workload]
client-stretch = "off"

[system]
name = "chat"
limits = "off"
throwaway = "on"
store = "sqlite:STORE"

[[case]]
name = "tls-kept"
workload.connect = "kept"
workload.fingerprint = "trial"
system.tls = "on"

[[case]]
name = "plain-per-request"
workload.connect = "per-request"

[[case]]
name = "tls-per-request"
workload.connect = "per-request"
workload.fingerprint = "trial"
system.tls = "on"
"#;

pub(crate) fn section(page: &mut String) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("chat.toml");
    let store = folder.path().join("accounts.db").display().to_string();
    let text = EXPERIMENT.replace("ROUNDS", &ROUNDS.to_string()).replace("STORE", &store);
    fs::write(&file, text).expect("the folder can be written");
    let mut command = Command::new(kendall());
    command.arg("run").arg(&file).arg("--results").arg(folder.path().join("results"));
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("kendall is built");
    let _ = writeln!(
        page,
        "\n## Chat\n\n\
         Registrations with OPAQUE in SQLite, which flushes before each is acknowledged: 50 users without think time, for 5 s in each \
         round. The clients leave out the stretch of the password, which would keep the generator busy. The generator is one thread \
         beside the server, on the same two processors.\n"
    );
    if !status.success() {
        let _ = writeln!(page, "The run ended with {status}; its figures are those of the trials before.\n");
    }
    page.push_str(
        "| | registrations/s | wanted | server's CPU, µs | generator's CPU, µs | of its thread |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let trials = trials(&folder.path().join("results/chat"));
    for (case, wanted) in CASES {
        if !trials.iter().any(|(name, _)| name.ends_with(case)) {
            let _ = writeln!(page, "| {case} | not measured | {wanted:.0} | | | |");
            continue;
        }
        let of_case = |field: &str| {
            let of = trials.iter().filter(|(name, _)| name.ends_with(case));
            median(of.filter_map(|(_, answer)| answer.pointer(field)?.as_f64()))
        };
        let per_s = of_case("/clients/throughput_per_s/value");
        let generator = of_case("/run/generator_cpu_s") / of_case("/run/wall_s");
        let _ = writeln!(
            page,
            "| {case} | {per_s:.0} | {wanted:.0} | {:.0} | {:.0} | {:.0} % |",
            of_case("/resources/summary/server/cpu_cores") / per_s * 1e6,
            generator / per_s * 1e6,
            generator * 100.0,
        );
    }
}

/// The answers of all trials of the only run in a folder, by the names of their folders.
fn trials(runs: &Path) -> Vec<(String, Value)> {
    let within =
        |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let trials = within(runs).flat_map(|run| within(&run.join("trials")).collect::<Vec<_>>());
    let read = |trial: std::path::PathBuf| {
        let answer = fs::read(trial.join("answer.json")).ok()?;
        Some((trial.file_name()?.to_string_lossy().into_owned(), serde_json::from_slice(&answer).ok()?))
    };
    trials.filter_map(read).collect()
}
