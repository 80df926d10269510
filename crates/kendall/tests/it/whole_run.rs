//! Whole runs: an experiment file in, records and a report out, with a real server under real load.

mod long_values;
mod machine_limits;
mod stopped;
mod watched;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

const EXPERIMENT: &str = r#"
name = "small"
question = "How long do small searches take?"
repeats = 2
seed = 5
# Other tests run beside this one.
disturbed-over = "100%"

[system]
name = "reverse"
workers = 1
discipline = "fifo"

[workload]
difficulty = 5000

[load]
rate = [50, 100]
duration = "700ms"

[[model]]
station = "M/G/1"

[[model]]
station = "M/M/1"
"#;

fn kendall() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kendall"))
}

fn folder_with(experiment: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.toml"), experiment).unwrap();
    folder
}

fn run(folder: &Path) -> Output {
    kendall().current_dir(folder).args(["run", "small.toml", "--json"]).output().unwrap()
}

/// The folder of the only run there is.
fn results(folder: &Path) -> PathBuf {
    let mut runs = fs::read_dir(folder.join("results/small")).unwrap();
    let run = runs.next().unwrap().unwrap().path();
    assert!(runs.next().is_none());
    run
}

fn trials(folder: &Path) -> Vec<PathBuf> {
    let mut trials: Vec<PathBuf> =
        fs::read_dir(results(folder).join("trials")).unwrap().map(|entry| entry.unwrap().path()).collect();
    trials.sort();
    trials
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_experiment_leaves_its_record_and_a_report() {
    let folder = folder_with(EXPERIMENT);
    let output = run(folder.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();

    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    for point in points {
        let measured = point["measured"]["response"]["mean_s"]["value"].as_f64().unwrap();
        let service = point["service"]["mean_s"].as_f64().unwrap();
        assert!(service > 0.0 && measured > service, "{measured}, {service}");
        for model in point["models"].as_array().unwrap() {
            assert!(model["formula"]["answer"].is_object(), "{model}");
            assert!(model["simulation"]["answer"].is_object(), "{model}");
        }
    }
    // Conservation and Little's law, in every trial.
    let lines = report["trials"].as_array().unwrap();
    assert_eq!(lines.len(), 4);
    for line in lines {
        let count = |name: &str| line["counts"][name].as_u64().unwrap();
        let ended: u64 = ["answered", "wrong", "refused", "timed_out", "unanswered"].map(count).iter().sum();
        assert_eq!(count("sent"), ended);
        assert_eq!(count("sent"), count("answered"), "{line}");
        assert!(line["little_gap"].as_f64().unwrap().abs() < 0.005, "{line}");
    }

    for trial in trials(folder.path()) {
        for file in ["requests.parquet", "resources.parquet", "latency.hlog", "answer.json"] {
            assert!(trial.join(file).exists(), "{file} is missing in {}", trial.display());
        }
    }
    let run = results(folder.path());
    let manifest: Value = serde_json::from_slice(&fs::read(run.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["seed"], 5);
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    for part in ["How long do small searches take?", "<svg", "M/G/1", "M/M/1"] {
        assert!(page.contains(part), "{part}");
    }
    for from_outside in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert!(!page.contains(from_outside), "the page loads nothing: {from_outside}");
    }

    // The folder is enough to print it again, and to run it again.
    let again = kendall().args(["report", "--json"]).arg(&run).output().unwrap();
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["points"], report["points"]);

    // The page leads to the record of every trial.
    let links: Vec<&str> =
        page.split("href=\"trials/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(links.len() >= 2 * 4, "{links:?}");
    for link in links {
        let file = run.join("trials").join(link.replace("%3D", "="));
        assert!(file.exists(), "{} is missing", file.display());
    }
}

#[cfg(feature = "png")]
#[test]
fn every_figure_of_a_report_is_written_as_svg_and_png() {
    let folder = folder_with(EXPERIMENT);
    assert!(run(folder.path()).status.success());
    let figures = folder.path().join("for/paper");
    let output =
        kendall().arg("report").arg(results(folder.path())).arg("--figures").arg(&figures).output().unwrap();
    if stderr(&output).contains("has no fonts") {
        return kendall_testbed::missing("a font, which figures as PNG need,");
    }
    assert!(output.status.success(), "{}", stderr(&output));
    let trials = fs::read_dir(&figures).unwrap().filter_map(|entry| {
        let entry = entry.unwrap();
        entry.file_type().unwrap().is_dir().then(|| entry.file_name().into_string().unwrap())
    });
    let trials: Vec<String> = trials.collect();
    let [trial] = &*trials else { panic!("the most informative trial: {trials:?}") };
    let of_trial = ["time", "requests", "quantiles", "laws"].map(|name| format!("{trial}/trial-{name}"));
    let of_run = ["response", "waiting", "quantiles", "slower", "ecdf", "services", "replay", "cores"];
    for name in of_run.map(str::to_owned).into_iter().chain(of_trial) {
        let svg = fs::read_to_string(figures.join(format!("{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
        let png = fs::read(figures.join(format!("{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
        // As wide as the drawing, at three pixels for one.
        let (_, rest) = svg.split_once(" width=\"").unwrap();
        let width: f64 = rest.split_once('"').unwrap().0.parse().unwrap();
        let pixels = u32::from_be_bytes(png[16..20].try_into().unwrap());
        assert_eq!(f64::from(pixels), 3.0 * width, "{name}");
    }
    // A folder that cannot be made is named.
    let output = kendall()
        .arg("report")
        .arg(results(folder.path()))
        .arg("--figures")
        .arg(folder.path().join("small.toml/x"))
        .output()
        .unwrap();
    assert!(
        !output.status.success() && stderr(&output).contains("cannot make the folder"),
        "{}",
        stderr(&output)
    );
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// The disturbance of a finished trial is set to what no machine can have had, and that of all others to none; what follows is
/// as after any disturbance, and depends on nothing else that this machine does meanwhile.
#[test]
fn a_disturbed_trial_is_marked_and_repeated_and_left_out_of_the_answer() {
    let folder = folder_with(EXPERIMENT);
    assert!(run(folder.path()).status.success());
    let (results, first) = (results(folder.path()), trials(folder.path()));
    assert_eq!(first.len(), 4);
    for (place, trial) in first.iter().enumerate() {
        let mut answer = read(&trial.join("answer.json"));
        assert!(answer["disturbance"]["foreign_share"].is_number(), "{}", answer["disturbance"]);
        let share = if place == 1 { 1.0 } else { 0.0 };
        answer["disturbance"]["foreign_share"] = share.into();
        answer["disturbance"]["steal_share"] = share.into();
        answer["disturbance"]["resolution_share"] = 0.01.into();
        fs::write(trial.join("answer.json"), answer.to_string()).unwrap();
    }
    let resumed = kendall().args(["run", "--json", "--resume"]).arg(&results).output().unwrap();
    assert!(resumed.status.success(), "{}", stderr(&resumed));
    assert!(stderr(&resumed).contains("1 trial was disturbed"), "{}", stderr(&resumed));

    // Once more, and asked the same.
    let disturbed = first[1].file_name().unwrap().to_string_lossy().into_owned();
    let again = results.join("trials").join(format!("{disturbed}+again-1"));
    assert_eq!(trials(folder.path()).len(), 5);
    let (before, after) = (read(&first[1].join("answer.json")), read(&again.join("answer.json")));
    assert_eq!((&before["seed"], &before["levels"]), (&after["seed"], &after["levels"]));

    // Every attempt stands in the report; the disturbed one is in no point, and says why.
    let report: Value = serde_json::from_slice(&resumed.stdout).unwrap();
    let lines = report["trials"].as_array().unwrap();
    let line = |id: &str| lines.iter().find(|line| line["id"] == id).unwrap();
    assert_eq!(lines.len(), 5);
    assert!(line(&disturbed)["point"].is_null());
    let why = line(&disturbed)["doubts"][0].as_str().unwrap();
    assert!(
        why.contains("it was disturbed: other programs took 100.0 %") && why.contains("another attempt"),
        "{why}"
    );
    let counted = line(&format!("{disturbed}+again-1"));
    assert!(counted["point"].is_number() && counted["response_s"].is_number(), "{counted}");
    for (place, point) in report["points"].as_array().unwrap().iter().enumerate() {
        let of_point = lines.iter().filter(|line| line["point"] == place);
        let sent: u64 = of_point.clone().map(|line| line["counts"]["sent"].as_u64().unwrap()).sum();
        assert_eq!(of_point.count(), 2);
        assert_eq!(point["measured"]["by"]["requests"], sent);
    }
}

/// Whatever MSER-5 finds: what is left out is what was due before, and the answer is of the rest.
#[test]
fn a_warm_up_that_is_found_is_counted_and_left_out() {
    let found = EXPERIMENT
        .replace("rate = [50, 100]", "rate = 1000")
        .replace("700ms\"", "700ms\"\nwarmup = \"auto\"");
    let folder = folder_with(&found);
    let output = run(folder.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut counted = 0;
    for (trial, line) in trials(folder.path()).iter().zip(report["trials"].as_array().unwrap()) {
        let answer = read(&trial.join("answer.json"));
        let left_out = &answer["left_out"];
        assert_eq!(&line["left_out"], left_out);
        let until_ns = left_out["until_ns"].as_i64().unwrap();
        let rows = kendall_archive::read_trial(trial).unwrap();
        let before = rows.iter().filter(|row| row.scheduled < until_ns).count();
        assert_eq!(left_out["requests"], before);
        counted += rows.len() - before;
        match answer["warmup_suggested_s"].as_f64() {
            // It lies in the first half, or there is not enough data.
            Some(cut_s) => {
                assert_eq!(left_out["by"], "found");
                assert!((cut_s - until_ns as f64 / 1e9).abs() < 1e-9 && cut_s < 0.4, "{cut_s}");
            }
            None => {
                assert_eq!((&left_out["by"], before), (&Value::from("untold"), 0));
                let doubts = line["doubts"].to_string();
                assert!(doubts.contains("too few data to find the end of the warm-up"), "{doubts}");
            }
        }
    }
    assert_eq!(report["points"][0]["measured"]["by"]["requests"], counted);
    // What it was run with is enough to run it again.
    let written = fs::read_to_string(results(folder.path()).join("experiment.toml")).unwrap();
    assert!(written.contains("warmup = \"auto\""), "{written}");
}

#[test]
fn users_come_and_go_as_their_stages_say() {
    let stages = EXPERIMENT.replace(
        "rate = [50, 100]\nduration = \"700ms\"",
        "arrivals = \"closed\"\nstages = \"300ms: 2, 600ms: 2→8, 300ms: 1\"\nthink = \"1ms\"",
    );
    let folder = folder_with(&stages);
    let output = run(folder.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for model in report["points"][0]["models"].as_array().unwrap() {
        assert!(model["formula"]["no_answer"].is_string(), "{model}");
        assert!(model["simulation"]["answer"].is_object(), "{model}");
    }
    for trial in trials(folder.path()) {
        let rows = kendall_archive::read_trial(&trial).unwrap();
        // Never more requests at a time than users; and all users of the ramp's end are seen at some time.
        let most = |from_ns: i64, to_ns: i64| {
            let in_flight = |at: i64| {
                let underway = |row: &&kendall_record::RequestRow| {
                    row.scheduled <= at && row.completed.is_none_or(|completed| completed > at)
                };
                rows.iter().filter(underway).count()
            };
            rows.iter()
                .map(|row| row.scheduled)
                .filter(|at| (from_ns..to_ns).contains(at))
                .map(in_flight)
                .max()
                .unwrap()
        };
        assert!(most(0, 300_000_000) <= 2);
        assert!((5..=8).contains(&most(700_000_000, 900_000_000)), "{}", most(700_000_000, 900_000_000));
        // Those who leave still wait for their last answer.
        assert_eq!(most(1_000_000_000, 1_200_000_000), 1);
    }
}

#[test]
fn an_overloaded_server_is_a_result_and_not_an_error() {
    // Such a range takes 2 to 300 ms, and 3,000 come a second. One at least has to be answered before the end.
    let overload = EXPERIMENT
        .replace("difficulty = 5000", "difficulty = 2_000_000")
        .replace("rate = [50, 100]", "rate = 3000\ndrain = \"500ms\"")
        .replace("repeats = 2", "repeats = 1");
    let folder = folder_with(&overload);
    let output = run(folder.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = &report["trials"][0]["counts"];
    assert!(counts["unanswered"].as_u64().unwrap() > 0, "{counts}");
    let formula = &report["points"][0]["models"][0]["formula"];
    let reason = formula["no_answer"].as_str().unwrap_or_default();
    assert!(reason.contains("unstable"), "{formula}");
}

#[test]
fn a_faulty_file_names_its_line_and_runs_nothing() {
    let folder = folder_with(&EXPERIMENT.replace("rate =", "ratee ="));
    let output = run(folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("line 18") && stderr(&output).contains("did you mean \"rate\"?"),
        "{}",
        stderr(&output)
    );
    assert!(!folder.path().join("results").exists());
}

const CASES: &str = r#"
name = "small"
question = "What does the order of service cost?"
notes = "Few are long."
repeats = 2
seed = 5
# Other tests run beside this one.
disturbed-over = "100%"

[system]
name = "reverse"
workers = 1
discipline = ["fifo", "gittins"]

[workload]
priority-lambda = 1

[load]
rate = 200
requests = 40

[[case]]
name = "many easy"
workload.difficulty = 1000

[[case]]
name = "few, hard"
workload.difficulty = 20_000
load.requests = 5

[[published]]
source = "a report"
measure = "weighted-response"
unit = "ms"
baseline = { discipline = "fifo" }
rows = [
  { case = "few, hard", discipline = "fifo", value = 20 },
  { case = "few, hard", discipline = "gittins", value = 10 },
]
"#;

#[test]
fn cases_and_published_figures_go_all_the_way_to_the_report() {
    let folder = folder_with(CASES);
    let output = run(folder.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let names: Vec<String> = trials(folder.path())
        .iter()
        .map(|trial| trial.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.len(), 8);
    assert!(names.iter().any(|name| name.ends_with("case=few,_hard,discipline=gittins")), "{names:?}");

    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let factors: Vec<&str> =
        report["factors"].as_array().unwrap().iter().map(|factor| factor["name"].as_str().unwrap()).collect();
    assert_eq!(factors, ["case", "discipline"]);
    for point in report["points"].as_array().unwrap() {
        let wanted = if point["settings"][0][1] == "many easy" { 80 } else { 10 };
        assert_eq!(point["measured"]["by"]["requests"], wanted);
        // Simulated as it was run.
        let simulated = &point["models"][0]["simulation"]["answer"];
        assert!(simulated["by"]["runs"].as_u64() >= Some(30), "{simulated}");
        for answer in [simulated, &point["measured"]] {
            let weighted_s = answer["weighted_response_s"]["value"].as_f64().unwrap();
            assert!(weighted_s > answer["response"]["mean_s"]["value"].as_f64().unwrap());
        }
    }
    // Ways to serve are asked the same.
    let seeds = |case: &str| {
        let trials = report["trials"].as_array().unwrap();
        let own = trials.iter().filter(|trial| trial["id"].as_str().unwrap().contains(case));
        let mut seeds: Vec<u64> = own.map(|trial| trial["seed"].as_u64().unwrap()).collect();
        seeds.sort_unstable();
        seeds.dedup();
        seeds.len()
    };
    assert_eq!((seeds("many_easy"), seeds("few,_hard")), (2, 2));

    let results = results(folder.path());
    let page = fs::read_to_string(results.join("report.html")).unwrap();
    for part in ["<p>Few are long.</p>", "a report: weighted response", "published ÷ fifo", "case many easy"]
    {
        assert!(page.contains(part), "{part}");
    }
    // The folder is enough to do a trial again.
    fs::remove_file(trials(folder.path())[0].join("answer.json")).unwrap();
    let output = kendall().args(["run", "--json", "--resume"]).arg(&results).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let again: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&again["factors"], &again["published"]), (&report["factors"], &report["published"]));
}
