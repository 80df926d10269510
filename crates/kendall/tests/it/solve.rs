//! `kendall solve` and the other commands that need no server, as a user types them.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn kendall(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kendall")).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_station_is_answered_by_formula_and_by_simulation_with_units() {
    let output = kendall(&["solve", "M/M/6", "--arrival-rate", "20", "--service-rate", "4.2"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for line in [
        "utilisation",
        "response time, mean",
        "response time, p50",
        "response time, p90",
        "response time, p99",
    ] {
        assert!(text.contains(line), "{line} is missing in:\n{text}");
    }
    assert!(
        text.contains("P(wait)") && text.contains("waiting time, mean") && text.contains(" ms"),
        "{text}"
    );
}

/// The formula's value lies in the simulation's interval; the seed is fixed, so this holds always or never.
#[test]
fn json_has_both_answers_and_they_agree() {
    let output = kendall(&[
        "solve",
        "M/M/6",
        "--arrival-rate",
        "20",
        "--service-rate",
        "4.2",
        "--seed",
        "2",
        "--json",
    ]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mean = |way: &str| json[way]["answer"]["response"]["mean_s"].clone();
    // M/M/6 with a = 20/4.2, by the Erlang C formula.
    let exact = mean("formula")["value"].as_f64().unwrap();
    assert!((exact - 0.335_2).abs() < 0.0001, "{exact}");
    let interval = &mean("simulation")["interval"];
    let (low, high) = (interval[0].as_f64().unwrap(), interval[1].as_f64().unwrap());
    assert!(low < exact && exact < high, "{exact} is not in [{low}, {high}]");
}

#[test]
fn an_unstable_station_says_so_and_exits_with_3() {
    let output = kendall(&["solve", "M/M/6", "--arrival-rate", "20", "--service-rate", "1.63"]);
    assert_eq!(output.status.code(), Some(3));
    let text = stdout(&output);
    assert!(text.contains("unstable") && text.contains("2.04"), "{text}");
}

#[test]
fn bad_input_says_what_to_write() {
    let cases: [(&[&str], &str); 17] = [
        (&["solve", "M/M"], "arrivals/service/servers"),
        (&["solve", "M/M/1", "--arrival-rate", "1"], "--service-rate"),
        (&["solve", "M/M/1", "--arrival-rate", "-1", "--service-rate", "2"], "positive"),
        (&["solve", "M/G/1", "--arrival-rate", "1", "--service-rate", "2"], "--service-scv"),
        (&["solve", "M/M/1/∞/5", "--arrival-rate", "1", "--service-rate", "2"], "--think-time"),
        (&["run", "no-such-file.toml"], "no-such-file.toml"),
        (&["solve", "M/M/1", "--bounds", "--arrival-rate", "1", "--service-rate", "2"], "closed population"),
        (
            &["solve", "M/M/1", "--arrival-rate", "1", "--service-rate", "2", "--breakdown", "up=1"],
            "up and repair",
        ),
        (&["solve", "no-such-file.toml"], "no-such-file.toml"),
        (&["solve"], "STATION|FILE.toml|MODEL"),
        (&["solve", "closed"], "--models"),
        (&["solve", "mm1", "lam=1", "nu=2"], "no input \"nu\""),
        (&["solve", "mm1", "lam=1", "nu=2"], "need \"mu\""),
        (&["solve", "mm1", "lam=2", "mu=1"], "unstable"),
        (&["solve", "mm1", "lam=2", "mu=3", "--service-rate", "3"], "key=value"),
        (&["solve", "M/M/1", "lam=2"], "--arrival-rate"),
        (&["solve", "--batch", "no-such-file.csv"], "no-such-file.csv"),
    ];
    for (arguments, saying) in cases {
        let output = kendall(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(stderr(&output).contains(saying), "{arguments:?} says:\n{}", stderr(&output));
    }
}

#[test]
fn classes_have_rows_of_their_own() {
    let classes =
        ["--class", "name=urgent,share=0.2,weight=10,service-time=0.02", "--class", "name=other,share=0.8"];
    let station = ["solve", "M/M/1/PRP", "--arrival-rate", "10", "--service-time", "0.08", "--json"];
    let output = kendall(&[station.as_slice(), classes.as_slice()].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let classes = json["simulation"]["answer"]["classes"].as_array().unwrap();
    let mean = |class: &Value| class["response"]["mean_s"]["value"].as_f64().unwrap();
    assert_eq!((&classes[0]["name"], &classes[1]["name"]), (&"urgent".into(), &"other".into()));
    // Urgent requests are never delayed by others: M/M/1 of the urgent alone, 1/(50 − 2). Seed and length are fixed: this holds always
    // or never.
    assert!((mean(&classes[0]) / (1.0 / 48.0) - 1.0).abs() < 0.02, "{classes:?}");
    assert!(mean(&classes[1]) > 0.08);
}

#[test]
fn recorded_services_and_arrivals_are_simulated_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let services = file("services", "# seconds\n0.5\n0.5\n".into());
    let arrivals = file("arrivals", (0..5000).map(|second| format!("{second}\n")).collect());
    let solve = |more: &[&str]| kendall(&[&["solve", "G/G/1", "--json"], more].concat());
    let output = solve(&["--arrivals", &arrivals, "--services", &services]);
    let json: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let answer = &json["simulation"]["answer"];
    assert_eq!(
        answer["response"]["mean_s"]["value"], 0.5,
        "no request waits if each is done before the next arrives"
    );
    assert_eq!(answer["p_wait"]["value"], 0.0);

    let odd = file("odd", "0.5\n-1\n".into());
    assert!(stderr(&solve(&["--arrivals", &arrivals, "--services", &odd])).contains("line 2"));
    assert!(stderr(&solve(&["--arrivals", &odd, "--services", &services])).contains("line 2"));
    let named = kendall(&["solve", "M/M/1", "--arrival-rate", "1", "--services", &services]);
    assert!(stderr(&named).contains("write G"), "{}", stderr(&named));
}

#[test]
fn a_precision_that_is_asked_for_is_reached() {
    let half_width = |precision: &str| {
        let station = ["solve", "M/M/1", "--arrival-rate", "1", "--service-rate", "2", "--json"];
        let output = kendall(&[station.as_slice(), &["--precision", precision]].concat());
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mean = &json["simulation"]["answer"]["response"]["mean_s"];
        let end = |i: usize| mean["interval"][i].as_f64().unwrap();
        (end(1) - end(0)) / 2.0 / mean["value"].as_f64().unwrap()
    };
    assert!(half_width("0.3%") <= 0.003);
    assert!(half_width("0.05") > 0.003, "nor is it run for longer than asked");
}

/// Every row of the reference table goes through the command; and comes back with its value.
#[test]
fn a_table_of_questions_is_answered_row_by_row() {
    let table = include_str!("../../../theory/testdata/queueing.tsv");
    let output = fed(&["solve", "--batch", "-"], table);
    let answers = stdout(&output);
    let given: Vec<Vec<&str>> = table.lines().map(|line| line.split('\t').collect()).collect();
    let answered: Vec<Vec<&str>> = answers.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(answered.len(), given.len());
    assert_eq!(
        answered[0],
        ["model", "inputs", "quantity", "value", "tolerance", "source", "reason", "expected"]
    );
    for (given, answered) in given.iter().zip(&answered).skip(1) {
        assert_eq!((&answered[..3], answered[7]), (&given[..3], given[3]), "what was given is kept");
        assert_eq!(answered[6], "", "{answered:?}");
        let (value, expected): (f64, f64) = (answered[3].parse().unwrap(), answered[7].parse().unwrap());
        let tolerance = match given[4].split_once(' ') {
            Some(("rel", relative)) => relative.parse::<f64>().unwrap() * expected.abs(),
            Some(("abs", absolute)) => absolute.parse().unwrap(),
            _ => 0.0,
        };
        assert!((value - expected).abs() <= tolerance, "{answered:?}");
    }
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_row_without_a_value_shows_in_the_exit_status() {
    let header = "model,inputs,quantity\n";
    let good = "mm1,\"{\"\"lam\"\": 1, \"\"mu\"\": 2}\",R_mean\n";
    let all = fed(&["solve", "--batch", "-"], &format!("{header}{good}{good}"));
    assert!(all.status.success() && stderr(&all).is_empty(), "{}", stderr(&all));
    let one = fed(&["solve", "--batch", "-"], &format!("{header}unknown,{{}},R_mean\n{good}"));
    assert_eq!(one.status.code(), Some(1));
    assert!(stderr(&one).contains("1 of 2 rows"), "{}", stderr(&one));
    assert!(stdout(&one).ends_with("R_mean,1.0,\n"), "{}", stdout(&one));
}

#[test]
fn a_model_tells_all_that_it_knows() {
    let words = kendall(&["solve", "mmm", "lam=20", "mu=4.2", "m=6"]);
    let object = kendall(&["solve", "mmm", r#"{"lam": 20, "mu": 4.2, "m": 6}"#]);
    assert!(words.status.success(), "{}", stderr(&words));
    assert_eq!(stdout(&words), stdout(&object));
    assert!(stdout(&words).contains("response time, mean      0.33520993"), "{}", stdout(&words));
    let json = kendall(&["solve", "mm1", "lam=1", "mu=2", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["quantities"]["R_mean"], &json["quantities"]["P_N_ge_2"]), (&1.0.into(), &0.25.into()));
    let list = stdout(&kendall(&["solve", "--models"]));
    assert!(list.contains("mg1_ps\n") && list.contains("takes lam, mu"), "{list}");
}

#[test]
fn a_trace_tells_of_single_customers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    let trace = path.to_str().unwrap();
    let station =
        ["solve", "M/M/2/5", "--arrival-rate", "30", "--service-time", "0.1", "--customers", "5000"];
    let classes = ["--class", "name=a,share=0.5", "--class", "name=b,share=0.5"];
    let output = kendall(&[&station[..], &classes, &["--trace", trace, "--trace-customers", "300"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let text = fs::read_to_string(&path).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 301);
    let column = |name: &str| rows[0].iter().position(|head| *head == name).unwrap();
    let (outcome, class) = (column("outcome"), column("class"));
    for row in &rows[1..] {
        let second = |name: &str| row[column(name)].parse::<f64>().unwrap();
        assert!(["a", "b"].contains(&row[class]), "{row:?}");
        match row[outcome] {
            "served" => {
                let parts = second("waiting_s") + second("service_s");
                assert!((parts - second("response_s")).abs() < 1e-9, "{row:?}");
            }
            "lost" => assert_eq!((row[column("started_s")], second("response_s")), ("", 0.0), "{row:?}"),
            other => panic!("{other}"),
        }
    }
    let nowhere = folder.path().join("none").join("trace.csv");
    let refused = kendall(&[&station[..], &["--trace", nowhere.to_str().unwrap()]].concat());
    assert!(!refused.status.success() && stderr(&refused).contains("cannot write"), "{}", stderr(&refused));
}

/// One server, and customers who are as impatient as they are long to serve. Seed and length are fixed, so this holds
/// always or never.
#[test]
fn conditions_are_simulated() {
    let station =
        ["solve", "M/M/1", "--arrival-rate", "1", "--service-time", "1", "--patience", "M:1", "--json"];
    let json: Value = serde_json::from_slice(&kendall(&station).stdout).unwrap();
    // One leaves at the rate n where n are present, as from infinitely many servers, so p(0) = 1/e; and 1 − p(0) per second
    // are served (Palm 1957).
    let lost = (-1f64).exp();
    let seen = json["simulation"]["answer"]["lost"]["value"].as_f64().unwrap();
    assert!((seen - lost).abs() < 0.005, "{seen} lost, not {lost}");
    assert_eq!(json["conditions"]["counts"]["turned_away"], 0);
    let text = stdout(&kendall(&station[..station.len() - 1]));
    assert!(text.contains("left impatiently"), "{text}");
}

#[test]
fn approximations_and_bounds_stand_beside_the_answers() {
    let station = ["solve", "M/H2/4", "--arrival-rate", "2.8", "--service-time", "1", "--service-scv", "5.5"];
    let text = stdout(&kendall(&[&station[..], &["--approximations"]].concat()));
    for name in ["Allen and Cunneen", "Kimura", "Whitt 1993", "between M/D/m and M/M/m"] {
        assert!(text.contains(name), "{text}");
    }
    let closed = ["solve", "M/M/1/∞/20", "--think-time", "1", "--service-time", "0.1", "--bounds", "--json"];
    let only = kendall(&[&closed[..], &["--only", "formula"]].concat());
    let json: Value = serde_json::from_slice(&only.stdout).unwrap();
    assert!(json["simulation"].is_null());
    let throughput = json["formula"]["answer"]["throughput_per_s"]["value"].as_f64().unwrap();
    for bounds in ["throughput_per_s", "balanced_throughput_per_s"] {
        let end = |i: usize| json["bounds"][bounds][i].as_f64().unwrap();
        assert!(end(0) <= throughput && throughput <= end(1), "{bounds}: {json}");
    }
}

#[test]
fn every_option_stands_in_the_documentation() {
    let help = stdout(&kendall(&["solve", "--help"]));
    let documentation = include_str!("../../../../docs/solve.md");
    let options = help.split_whitespace().filter_map(|word| word.strip_prefix("--"));
    let mut seen = 0;
    for option in options.map(|word| word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())) {
        seen += 1;
        let known =
            ["help", "version", "log"].contains(&option) || documentation.contains(&format!("--{option}"));
        assert!(known, "--{option} is missing in docs/solve.md");
    }
    assert!(seen > 20, "{help}");
}

/// The output of a command that reads this.
fn fed(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kendall"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

#[test]
fn a_closed_population_is_simulated() {
    let output = kendall(&["solve", "M/M/4/∞/20", "--think-time", "5", "--service-time", "0.2"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("simulation"), "{}", stdout(&output));
}

#[test]
fn the_machine_is_described_and_completions_are_written() {
    let doctor = kendall(&["doctor", "--json"]);
    let json: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert!(json.as_array().unwrap().iter().any(|offer| offer["name"] == "cores"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&kendall(&["completions", shell])).contains("kendall"), "{shell}");
    }
}

#[test]
fn every_command_explains_itself() {
    for command in ["solve", "run", "report", "load", "serve", "doctor", "completions"] {
        let output = kendall(&[command, "--help"]);
        assert!(output.status.success() && stdout(&output).contains("Usage:"), "{command}");
    }
    for system in ["reverse", "recover", "textsearch", "hold", "chat", "http"] {
        let help = stdout(&kendall(&["serve", system, "--help"]));
        assert!(help.starts_with(&format!("Serve {system}: ")), "{help}");
    }
    assert!(stdout(&kendall(&["serve", "reverse", "--help"])).contains("--discipline"));
}

#[test]
fn a_quantile_that_cannot_be_is_an_error_wherever_one_is_taken() {
    let station = ["solve", "M/M/2", "--arrival-rate", "10", "--service-time", "0.1", "--precision"];
    let load = ["load", "reverse://127.0.0.1:1", "--precision", "5%", "--precision-of"];
    let expect = ["load", "reverse://127.0.0.1:1", "--requests", "1", "--rate", "1", "--expect"];
    for quantile in ["p0", "p100", "p101", "p200", "pfoo"] {
        for (command, asked) in [
            (&station[..], format!("{quantile}=5%")),
            (&load, quantile.to_owned()),
            (&expect, format!("{quantile}<5ms")),
        ] {
            let output = kendall(&[command, &[asked.as_str()]].concat());
            let why = stderr(&output);
            assert!(!output.status.success() && why.contains(&asked), "{command:?} {asked}: {why}");
        }
    }
}

#[test]
fn what_would_be_no_work_or_work_without_end_is_refused_before_it_begins() {
    let station = ["solve", "M/M/2", "--arrival-rate", "10", "--service-time", "0.1"];
    let cases: [(&[&str], &str); 8] = [
        (&["--customers", "0"], "--customers"),
        (&["--customers", "99999999999999"], "--customers"),
        (&["--customers", "10", "--replications", "0"], "--replications"),
        (&["--customers", "10", "--replications", "4000000000"], "--replications"),
        (&["--batch-size", "0"], "from 1 to 1,000,000"),
        (&["--batch-size", "4000000000"], "from 1 to 1,000,000"),
        (&["--batch-size", "geometric:1e300"], "from 1 to 1,000,000"),
        (&["--trace", "trace.csv", "--trace-customers", "0"], "--trace-customers"),
    ];
    for (more, words) in cases {
        let output = kendall(&[&station[..], more].concat());
        let why = stderr(&output);
        assert!(!output.status.success() && why.contains(words), "{more:?}: {why}");
    }
}

#[test]
fn a_service_time_of_years_is_unstable_within_bounds() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("services"), "0.1\n4e9\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kendall"));
    command.args(["solve", "M/G/1", "--services", "services", "--arrival-rate", "0.5", "--customers", "500"]);
    let output = command.current_dir(folder.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{printed}");
    assert!(printed.contains("unstable"), "{printed}");
}
