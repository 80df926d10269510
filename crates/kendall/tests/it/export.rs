//! A run in the formats of other tools, and its numbers computed again by a program that shares nothing with kendall.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use kendall_stats::number::{TimeUnit, time};
use serde_json::Value;
use tempfile::TempDir;

use crate::served::{Served, kendall};

/// The second rate is more than the first by so much that their trials differ in every number.
const EXPERIMENT: &str = r#"
name = "exported"
question = "How long are requests held?"
repeats = 2
seed = 11
# Other tests run beside this one.
disturbed-over = "100%"

[system]
name = "hold"
mean = "2ms"

[load]
rate = [60, 200]
duration = "1500ms"
warmup = "100ms"

[[expect]]
mean = "<1s"
throughput = ">10000/s"

[[model]]
station = "M/M/1"
"#;
const WARMUP_NS: &str = "100000000";

/// Python, whose standard library is enough.
fn python() -> Option<Command> {
    kendall_testbed::has_peer("python3", "--version").then(|| Command::new("python3"))
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// One run for all tests, with everything that it was asked to write.
struct Run {
    folder: TempDir,
    report: Value,
    results: PathBuf,
}

static RUN: LazyLock<Run> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("exported.toml"), EXPERIMENT).expect("the folder takes a file");
    let output = kendall()
        .current_dir(folder.path())
        .args([
            "run",
            "exported.toml",
            "--json",
            "--export",
            "csv=out/requests.csv",
            "--export",
            "openmetrics",
        ])
        .args(["--junit", "junit.xml"])
        .output()
        .expect("kendall starts");
    // Ten thousand a second are not even asked for.
    assert_eq!(output.status.code(), Some(4), "{}", words(&output));
    let report = serde_json::from_slice(&output.stdout).expect("the report is JSON");
    let results = fs::read_dir(folder.path().join("results/exported")).expect("there are results");
    let results = results.map(|entry| entry.expect("an entry").path()).next().expect("there is one run");
    Run { folder, report, results }
});

impl Run {
    fn trials(&self) -> Vec<&str> {
        let lines = self.report["trials"].as_array().expect("trials");
        lines
            .iter()
            .filter(|line| !line["point"].is_null())
            .map(|line| line["id"].as_str().expect("a name"))
            .collect()
    }

    fn answer(&self, trial: &str) -> Value {
        json(&self.results.join("trials").join(trial).join("answer.json"))
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .expect("JSON")
}

fn near(ours: &Value, theirs: &Value, what: &str) {
    let (ours, theirs) = (ours.as_f64().expect(what), theirs.as_f64().expect(what));
    assert!((ours - theirs).abs() <= 1e-9 * theirs.abs(), "{what}: {ours} and {theirs}");
}

#[test]
fn a_program_of_its_own_computes_the_same_numbers_from_the_requests_alone() {
    let Some(mut python) = python() else { return };
    let run = &*RUN;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/recompute.py");
    let csv = run.folder.path().join("out/requests.csv");
    let output = python.arg(script).arg(csv).arg(WARMUP_NS).output().expect("python3 starts");
    assert!(output.status.success(), "{}", words(&output));
    let again: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let page =
        fs::read_to_string(run.results.join("report.html")).expect("there is a page").replace('\u{a0}', " ");
    let trials = run.trials();
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        let (answer, again) = (run.answer(trial), &again[trial]);
        let measured = &answer["measured"]["answer"];
        near(&again["mean_response_s"], &measured["response"]["mean_s"]["value"], "mean");
        near(&again["throughput_per_s"], &measured["throughput_per_s"]["value"], "throughput");
        near(&again["in_system"], &measured["in_system"]["value"], "in the system");
        let quantiles = measured["response"]["quantiles"].as_array().expect("quantiles");
        assert!(
            quantiles.len() >= 4
                && quantiles.len() == again["quantiles_s"].as_object().expect("quantiles").len()
        );
        for quantile in quantiles {
            let p = quantile["p"].to_string();
            near(&again["quantiles_s"][&p], &quantile["value_s"]["value"], &p);
        }
        assert_eq!(again["requests"], measured["by"]["requests"]);
        assert_eq!(again["outcomes"]["answered"], answer["run"]["ended"][0]);
        let mean_s = again["mean_response_s"].as_f64().expect("a mean");
        assert!(page.contains(&format!("mean response {}", time(mean_s))), "{trial}: {mean_s} s");
    }
    // What the page says of a point is the mean of its trials.
    for (at, point) in run.report["points"].as_array().expect("points").iter().enumerate() {
        let lines = run.report["trials"].as_array().expect("trials").iter();
        let own: Vec<f64> = lines
            .filter(|line| line["point"] == at)
            .map(|line| {
                again[line["id"].as_str().expect("a name")]["mean_response_s"].as_f64().expect("a mean")
            })
            .collect();
        let mean_s = own.iter().sum::<f64>() / own.len() as f64;
        near(&Value::from(mean_s), &point["measured"]["response"]["mean_s"]["value"], "mean of a point");
        let cell = format!("<td class=\"edge\">{} ± ", TimeUnit::for_s(mean_s).number(mean_s));
        assert!(page.contains(&cell), "{cell}");
    }
}

#[test]
fn libraries_of_tables_read_the_requests_where_they_are_installed() {
    if python().is_none() {
        return;
    }
    let run = &*RUN;
    let out = run.folder.path().join("tables");
    let export =
        kendall().arg("export").arg(&run.results).args(["--format", "parquet", "--out"]).arg(&out).output();
    let export = export.expect("kendall starts");
    assert!(export.status.success(), "{}", words(&export));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/requests.py");
    for library in ["pandas", "polars", "duckdb"] {
        let output = Command::new("python3")
            .arg(script)
            .arg(library)
            .arg(out.join("requests.parquet"))
            .output()
            .expect("python3 starts");
        // Debian has no packages of them that read Parquet, so nothing can require them, not even where all else must be.
        if output.status.code() == Some(77) {
            kendall_testbed::left_out(&format!(
                "{library}, of which Debian has no package, is not installed for python3"
            ));
            continue;
        }
        assert!(output.status.success(), "{library}: {}", words(&output));
        let table: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
        let mut trials = run.trials();
        trials.sort_unstable();
        let table = table.as_array().expect("a row a trial");
        assert_eq!(
            table.iter().map(|row| row["trial"].as_str().expect("a name")).collect::<Vec<_>>(),
            trials,
            "{library}"
        );
        for row in table {
            let answer = run.answer(row["trial"].as_str().expect("a name"));
            let mean_ms =
                answer["measured"]["answer"]["response"]["mean_s"]["value"].as_f64().expect("a mean") * 1e3;
            near(&row["mean_ms"], &Value::from(mean_ms), library);
        }
    }
}

/// A schema of docs/schema, which is one by its own meta-schema.
fn published(name: &str, schemas: &mut boon::Schemas) -> boon::SchemaIndex {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(format!("{name}.schema.json"));
    let mut compiler = boon::Compiler::new();
    compiler.enable_format_assertions();
    let url = format!("file:///{name}.schema.json");
    compiler.add_resource(&url, json(&path)).expect("it is JSON");
    compiler.compile(&url, schemas).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_record_is_as_its_published_schema_says() {
    let run = &*RUN;
    let holds = |schema: &str, value: &Value, what: &str| {
        let mut schemas = boon::Schemas::new();
        let schema = published(schema, &mut schemas);
        if let Err(error) = schemas.validate(value, schema) {
            panic!("{what}: {error:#}");
        }
        // And nothing may be missing or unknown.
        for (name, _) in value.as_object().expect("an object") {
            let mut renamed = value.clone();
            let fields = renamed.as_object_mut().expect("an object");
            let own = fields.remove(name).expect("it is there");
            fields.insert(format!("{name}_"), own);
            assert!(schemas.validate(&renamed, schema).is_err(), "{what} without {name}");
        }
    };
    holds("manifest", &json(&run.results.join("manifest.json")), "the manifest of a run");
    for trial in run.trials() {
        holds("answer", &run.answer(trial), trial);
    }
    let mut wrong = run.answer(run.trials()[0]);
    wrong["measured"]["answer"]["response"]["mean_s"]["value"] = Value::from("1 ms");
    let mut schemas = boon::Schemas::new();
    let schema = published("answer", &mut schemas);
    assert!(schemas.validate(&wrong, schema).is_err());

    let folder = tempfile::tempdir().expect("a temporary folder");
    let (load, target) = (folder.path().join("load"), Served::new(&["hold", "--mean", "1ms"]));
    let output = kendall()
        .args([
            "load",
            &format!("hold://{}", target.address),
            "--rate",
            "200",
            "--duration",
            "700ms",
            "--expect",
            "p50<1s",
            "--json",
            "--record",
        ])
        .arg(&load)
        .args(["--export", "csv", "--export", "hdr", "--junit"])
        .arg(folder.path().join("junit.xml"))
        .output()
        .expect("kendall starts");
    assert!(output.status.success(), "{}", words(&output));
    holds("manifest", &json(&load.join("manifest.json")), "the manifest of a load");
    holds("answer", &json(&load.join("answer.json")), "a recorded load");
    holds("answer", &serde_json::from_slice(&output.stdout).expect("JSON"), "what a load prints");
    let rows = fs::read_to_string(load.join("export/requests.csv")).expect("it was written").lines().count()
        as u64
        - 1;
    assert_eq!(json(&load.join("answer.json"))["run"]["sent"], rows);
    let junit = fs::read_to_string(folder.path().join("junit.xml")).expect("it was written");
    assert!(
        junit.contains("tests=\"1\"") && junit.contains("failures=\"0\"") && junit.contains("p50 &lt; 1 s"),
        "{junit}"
    );
}

#[test]
fn every_format_is_written_where_it_is_asked_for() {
    let run = &*RUN;
    let out = run.folder.path().join("all");
    let mut export = kendall();
    export.arg("export").arg(&run.results).arg("--out").arg(&out);
    for format in ["csv", "json", "parquet", "hdr", "openmetrics"] {
        export.args(["--format", format]);
    }
    let output = export.output().expect("kendall starts");
    assert!(output.status.success(), "{}", words(&output));
    let text =
        |path: &Path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(text(&out.join("requests.csv")), text(&run.folder.path().join("out/requests.csv")));
    // The command names the folder as it was given, which is not how the run itself named it.
    let but_its_command = |mut report: Value| {
        report.as_object_mut().expect("an object").remove("command").expect("it is there");
        report
    };
    assert_eq!(but_its_command(json(&out.join("answers.json"))), but_its_command(run.report.clone()));
    let parquet = fs::read(out.join("requests.parquet")).expect("it was written");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let metrics = text(&out.join("metrics.txt"));
    assert_eq!(metrics, text(&run.results.join("export/metrics.txt")));
    for trial in run.trials() {
        let counted = run.answer(trial)["measured"]["answer"]["by"]["requests"].as_u64().expect("a number");
        let lines = text(&out.join("hdr").join(format!("{trial}.hgrm")));
        let total = format!("Total count    = {counted:12}]");
        assert!(lines.contains(&total), "{trial}: {lines}");
        let log = text(&out.join("hdr").join(format!("{trial}.hlog")));
        assert!(log.starts_with("#") && log.contains("Tag=response"), "{log}");
    }
    let counted: u64 = run
        .trials()
        .iter()
        .map(|trial| run.answer(trial)["measured"]["answer"]["by"]["requests"].as_u64().expect("a number"))
        .sum();
    let counts = metrics.lines().filter(|line| line.starts_with("kendall_response_seconds_count"));
    let exported: f64 =
        counts.map(|line| line.rsplit(' ').next().expect("a value").parse::<f64>().expect("a number")).sum();
    assert_eq!(exported, counted as f64);
    let junit = text(&run.folder.path().join("junit.xml"));
    let tree = roxmltree::Document::parse(&junit).expect("it is well-formed");
    let cases = tree.descendants().filter(|node| node.has_tag_name("testcase")).count();
    let failures = tree.descendants().filter(|node| node.has_tag_name("failure")).count();
    assert_eq!((cases, failures), (4, 2), "{junit}");

    for (arguments, says) in [
        (["--format", "xml"], "is not a format; the formats are csv"),
        (["--format", "csv=x"], "is not a format"),
    ] {
        let refused =
            kendall().arg("export").arg(&run.results).args(arguments).output().expect("kendall starts");
        assert!(!refused.status.success() && words(&refused).contains(says), "{}", words(&refused));
    }
    let nowhere = kendall().args(["export", "/nowhere", "--format", "csv"]).output().expect("kendall starts");
    assert!(words(&nowhere).contains("/nowhere"), "{}", words(&nowhere));
}

#[test]
fn a_page_shows_the_trial_that_is_asked_for() {
    let run = &*RUN;
    let trial = run.trials()[1];
    let copy = run.folder.path().join("copy");
    copy_folder(&run.results, &copy);
    let report = |name: &str| {
        kendall().arg("report").arg(&copy).args(["--trial", name]).output().expect("kendall starts")
    };
    let output = report(trial);
    assert!(output.status.success(), "{}", words(&output));
    let page = fs::read_to_string(copy.join("report.html")).expect("there is a page");
    assert_eq!(page.matches("<div class=\"trial\"").count(), 1);
    assert!(page.contains(&format!("data-trial=\"{trial}\"")));
    let unknown = report("999-nothing");
    assert!(!unknown.status.success() && words(&unknown).contains("\"999-nothing\""), "{}", words(&unknown));
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_folder(&path, &to);
        } else {
            fs::copy(&path, &to).expect("a file can be copied");
        }
    }
}
