//! Tests what is read from experiment files, and the messages of their faults.

use std::path::PathBuf;
use std::time::Duration;

use kendall_experiment::{Experiment, Probing, parse};
use kendall_linkmodel::Transport;
use kendall_station::{Discipline, Servers};
use kendall_system::{Home, Kind, Parameter, Settings, StationShape, Subcommands, System, Value, no_limits};

static SYSTEMS: [System; 1] = [System {
    name: "search",
    about: "a system for these tests",
    default_port: 1,
    home: Home::Here,
    server: &[Parameter {
        name: "workers",
        help: "",
        kind: Kind::Whole { least: 1, most: 64 },
        default: Some("1"),
    }],
    workload: &[Parameter {
        name: "difficulty",
        help: "",
        kind: Kind::Whole { least: 1, most: 1_000_000 },
        default: Some("100"),
    }],
    station: |settings: &Settings| {
        let servers = Servers::new(settings.whole("workers").unwrap() as u32).unwrap();
        StationShape::unlimited(servers, Discipline::Fifo)
    },
    transport: |_| Transport::TCP,
    load: |_, _, _| Err("not loaded in these tests".into()),
    serve: |_, _| Err("not served in these tests".into()),
    limits: no_limits,
    subcommands: Subcommands::NONE,
}];

const GOOD: &str = r#"
name = "sweep"
question = "How long?"
repeats = 4
seed = 7

[system]
name = "search"
workers = [1, 2]

[workload]
difficulty = 1_000

[load]
rate = ["20%", "95%", 30]
duration = "2s"

[[model]]
station = "M/G/1"

[[model]]
station = "M/M/1"
"#;

fn read(text: &str) -> Result<Experiment, String> {
    parse("x.toml", "x", text, PathBuf::new(), &SYSTEMS).map_err(|fault| fault.to_string())
}

#[test]
fn a_list_is_a_factor_and_every_combination_is_made() {
    let experiment = read(GOOD).unwrap();
    let factors: Vec<_> = experiment.factors().into_iter().map(|factor| factor.name).collect();
    assert_eq!(factors, ["workers", "rate"]);
    let combinations = experiment.combinations();
    assert_eq!(combinations.len(), 6);
    assert_eq!(combinations[0].levels, [("workers", Value::Whole(1)), ("rate", Value::Share(0.2))]);
    assert_eq!(combinations[5].levels, [("workers", Value::Whole(2)), ("rate", Value::Number(30.0))]);
    assert_eq!(combinations[5].workload.whole("difficulty"), Some(1000));
    assert_eq!((experiment.repeats, experiment.seed, experiment.models.len()), (4, Some(7), 2));
}

const TRUSTED: &str = r#"
precision = "4%"
precision-of = "p99"
repeats-at-most = 12
time-at-most = "20m"
disturbed-over = "5%"
keep-awake = true

[system]
name = "search"
workers = [1, 2]

[load]
rate = 30
duration = "2s"

[[expect]]
p99 = "<50ms"
"p99.9" = "<= 1.5s"
at = { workers = 2 }

[[expect]]
errors = "<1%"
throughput = ">20/s"
"#;

#[test]
fn a_precision_and_expectations_are_read_and_written_out() {
    let experiment = read(TRUSTED).unwrap();
    let precision = experiment.precision.clone().unwrap();
    assert_eq!((precision.relative, precision.repeats_at_most, experiment.repeats), (0.04, 12, 6));
    assert_eq!(precision.time_at_most, Some(std::time::Duration::from_secs(1200)));
    assert!((experiment.disturbed_over - 0.05).abs() < 1e-12);
    assert!(experiment.keep_awake);
    let of = |combination: usize| {
        let combination = &experiment.combinations()[combination];
        let expected = experiment.expected.iter().filter(|expected| expected.holds_for(combination));
        expected.map(|expected| expected.expectation.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(of(0), ["errors < 1 %", "throughput > 20/s"]);
    assert_eq!(of(1), ["p99 < 50 ms", "p99.9 < 1.5 s", "errors < 1 %", "throughput > 20/s"]);
    let written = experiment.to_toml();
    let again = read(&written).unwrap();
    assert_eq!((again.precision.as_ref(), &again.expected), (Some(&precision), &experiment.expected));
    assert_eq!(again.to_toml(), written);
}

#[test]
fn faults_of_trust_name_what_is_wrong() {
    let fault = |from: &str, to: &str| read(&TRUSTED.replace(from, to)).unwrap_err();
    assert!(fault("\"4%\"", "\"400%\"").contains("precision must be a share"));
    assert!(fault("\"p99\"", "\"errors\"").contains("precision-of must be mean"));
    for quantile in ["p0", "p100", "p101", "p200", "pfoo"] {
        let why = fault("\"p99\"", &format!("{quantile:?}"));
        assert!(why.contains("precision-of must be mean") && why.contains(quantile), "{why}");
    }
    assert!(fault("precision = \"4%\"", "").contains("has no effect without a precision"));
    assert!(fault("= true", "= \"yes\"").contains("keep-awake must be true or false"));
    assert!(fault("at-most = 12", "at-most = 3").contains("less than the 6 repeats"));
    assert!(fault("workers = 2", "workers = 3").contains("no workers 3"));
    assert!(fault("p99 = \"<50ms\"", "p99 = \"50ms\"").contains("p99 must be a limit"));
    assert!(fault("errors =", "erors =").contains("cannot be expected"));
}

#[test]
fn written_out_it_reads_back_the_same() {
    let experiment = read(GOOD).unwrap();
    let written = experiment.to_toml();
    let again = read(&written).unwrap();
    assert_eq!(again.combinations(), experiment.combinations());
    assert_eq!(again.models, experiment.models);
    assert_eq!(again.to_toml(), written);
    assert!(written.contains("timeout = \"30s\""), "defaults are written out: {written}");
}

#[test]
fn a_file_that_says_little_gets_defaults() {
    let experiment = read("[system]\nname = \"search\"\n[load]\nrate = 5\nrequests = 10\n").unwrap();
    assert_eq!((experiment.name.as_str(), experiment.repeats, experiment.seed), ("x", 3, None));
    assert_eq!(experiment.combinations().len(), 1);
}

#[test]
fn faults_name_their_line_and_the_nearest_key() {
    let cases: &[(&str, &str, &str, &[&str])] = &[
        (
            "rate =",
            "ratee =",
            "line 15",
            &["unknown key \"ratee\" in [load]", "did you mean \"rate\"?", "^^^^^"],
        ),
        ("difficulty =", "dificulty =", "line 12", &["did you mean \"difficulty\"?"]),
        ("repeats = 4", "repets = 4", "line 4", &["at the top of the file", "did you mean \"repeats\"?"]),
        ("\"search\"", "\"serch\"", "line 8", &["unknown system", "did you mean \"search\"?"]),
        ("workers = [1, 2]", "workers = [1, 0]", "line 9", &["workers must be a whole number from 1 to 64"]),
        ("workers = [1, 2]", "workers = [1, 1]", "line 9", &["twice"]),
        ("workers = [1, 2]", "workers = []", "line 9", &["at least one value"]),
        ("workers = [1, 2]", "workers = true", "line 9", &["not a boolean"]),
        ("\"95%\"", "\"-95%\"", "line 15", &["positive rate"]),
        ("\"2s\"", "\"2 parsecs\"", "line 16", &["duration must be a time"]),
        ("duration = \"2s\"", "warmup = \"0s\"", "line 14", &["the load has no end"]),
        ("\"M/M/1\"", "\"M/Q/1\"", "line 22", &["\"Q\" is not a law"]),
        (
            "[[model]]\nstation = \"M/M/1\"",
            "[[model]]\nstaton = \"M/M/1\"",
            "line 22",
            &["did you mean \"station\"?"],
        ),
        ("\"sweep\"", "\"../sweep\"", "line 2", &["folder's name"]),
        ("seed = 7", "seed = -7", "line 5", &["seed must be a whole number"]),
        ("seed = 7", "seed = ", "line 5", &[]),
        (
            "rate = [\"20%\", \"95%\", 30]",
            "arrivals = \"trace\"\ntrace = \"no-such-file.txt\"",
            "line 16",
            &["no-such-file.txt"],
        ),
    ];
    faulty(GOOD, cases);
}

/// Each fault: the file with one thing changed, the line it must name, and what it must say.
fn faulty(good: &str, cases: &[(&str, &str, &str, &[&str])]) {
    for (old, new, line, sayings) in cases {
        let text = good.replacen(old, new, 1);
        assert_ne!(text, good, "{old:?} stands in the file");
        let fault = read(&text).unwrap_err();
        assert!(fault.starts_with(&format!("x.toml, {line}: ")), "{new:?} gives:\n{fault}");
        for saying in *sayings {
            assert!(fault.contains(saying), "{new:?}: {saying:?} is not in:\n{fault}");
        }
    }
}

const CASES: &str = r#"
[system]
name = "search"
workers = [1, 2]

[load]
rate = 5
requests = 10

[[case]]
name = "many easy"
workload.difficulty = 300
load.requests = 50

[[case]]
name = "one big"
[case.workload]
difficulty = 9000
[case.load]
requests = 1
"#;

#[test]
fn cases_are_a_factor_of_linked_values() {
    let experiment = read(CASES).unwrap();
    let factors: Vec<_> = experiment.factors().into_iter().map(|factor| factor.name).collect();
    assert_eq!(factors, ["case", "workers"]);
    let combinations = experiment.combinations();
    let seen: Vec<_> = combinations
        .iter()
        .map(|combination| {
            let difficulty = combination.workload.whole("difficulty").unwrap();
            (combination.levels[0].1.to_string(), difficulty, combination.load.whole("requests").unwrap())
        })
        .collect();
    let (easy, big) = (("many easy".to_owned(), 300, 50), ("one big".to_owned(), 9000, 1));
    assert_eq!(seen, [easy.clone(), easy, big.clone(), big]);

    let written = experiment.to_toml();
    let again = read(&written).unwrap();
    assert_eq!(again.combinations(), combinations);
    assert_eq!(again.to_toml(), written);

    // One case only is not a factor, but its values hold.
    let only = read(CASES.split("[[case]]\nname = \"one big\"").next().unwrap()).unwrap();
    assert_eq!(only.factors().len(), 1);
    assert_eq!(only.combinations()[0].load.whole("requests"), Some(50));
}

#[test]
fn faults_of_cases_name_their_line_and_the_nearest_key() {
    faulty(
        CASES,
        &[
            (
                "load.requests = 50",
                "laod.requests = 50",
                "line 13",
                &["in [[case]]", "did you mean \"load\"?"],
            ),
            (
                "load.requests = 50",
                "load.reqests = 50",
                "line 13",
                &["in [case.load]", "did you mean \"requests\"?"],
            ),
            ("load.requests = 50", "load.requests = [5, 6]", "line 13", &["write a case for each"]),
            (
                "load.requests = 50",
                "system.workers = 2",
                "line 13",
                &["workers has several values in [system]"],
            ),
            ("load.requests = 50", "load.rate = \"-1\"", "line 13", &["positive rate"]),
            ("load.requests = 50", "load.users = 3", "line 13", &["users: has no effect with poisson"]),
            ("\"one big\"", "\"many easy\"", "line 16", &["there are two cases \"many easy\""]),
            ("name = \"one big\"", "", "line 15", &["a case needs a name"]),
            ("name = \"many easy\"", "name = \"\"", "line 11", &["not empty"]),
        ],
    );
}

const PUBLISHED: &str = r#"
notes = """
Why it is so.

And what follows."""

[system]
name = "search"
workers = [1, 2]

[load]
rate = 5
requests = 10

[[case]]
name = "easy"

[[case]]
name = "hard"
workload.difficulty = 900

[[published]]
source = "a report, table 2"
measure = "mean-response"
unit = "ms"
baseline = { workers = 1 }
rows = [
  { case = "easy", workers = 1, value = 6.71 },
  { case = "hard", workers = 1, value = 3765.03 },
  { case = "hard", workers = 2, value = 1_976_092 },
]
"#;

#[test]
fn published_figures_name_levels_of_the_experiment() {
    let experiment = read(PUBLISHED).unwrap();
    assert_eq!(experiment.notes, "Why it is so.\n\nAnd what follows.");
    let table = &experiment.published[0];
    assert_eq!((table.measure.name(), table.unit.as_str()), ("mean-response", "ms"));
    assert_eq!(table.baseline, [("workers", Value::Whole(1))]);
    let hard = ("case", Value::Word("hard".to_owned()));
    assert_eq!(table.rows[2].levels, [hard, ("workers", Value::Whole(2))]);
    assert_eq!(table.rows[2].value, 1_976_092.0);

    let written = experiment.to_toml();
    let again = read(&written).unwrap();
    assert_eq!((&again.published, &again.notes), (&experiment.published, &experiment.notes));
    assert_eq!(again.to_toml(), written);
}

#[test]
fn faults_of_published_figures_name_their_line() {
    let faults: &[(&str, &str, &str, &[&str])] = &[
        ("source =", "sauce =", "line 23", &["in [[published]]", "did you mean \"source\"?"]),
        ("\"mean-response\"", "\"mean-respone\"", "line 24", &["did you mean \"mean-response\"?"]),
        ("\"ms\"", "\"/s\"", "line 25", &["its units are \"s\", \"ms\""]),
        ("\"mean-response\"", "\"idle\"\nclass = \"a\"", "line 25", &["no idle of a class"]),
        ("{ workers = 1 }", "{ workers = 3 }", "line 26", &["this experiment has no workers 3; it has 1, 2"]),
        ("case = \"hard\"", "case = \"hrad\"", "line 29", &["no case hrad; did you mean \"hard\"?"]),
        ("case = \"hard\", ", "", "line 29", &["does not say for which case"]),
        ("workers = 2, value", "wokers = 2, value", "line 30", &["did you mean \"workers\"?"]),
        (", value = 3765.03", "", "line 29", &["a row needs a value"]),
        ("3765.03", "0", "line 29", &["more than 0"]),
        ("\"a report, table 2\"", "3", "line 23", &["source must be a text"]),
        ("unit = \"ms\"\n", "", "line 22", &["need a unit"]),
    ];
    faulty(PUBLISHED, faults);
}

#[test]
fn trials_are_watched_as_asked_and_by_default() {
    let with = |probe: &str| read(&format!("{GOOD}\n{probe}")).map(|experiment| experiment.probing);
    let every_ms = |ms| Some(Duration::from_millis(ms));
    let watched = |every, profile_hz| Ok(Probing { every, profile_hz });
    assert_eq!(with(""), watched(every_ms(10), None));
    assert_eq!(with("[probe]\nevery = \"off\""), watched(None, None));
    assert_eq!(with("[probe]\nevery = \"50ms\"\nprofile = 499"), watched(every_ms(50), Some(499)));
    assert_eq!(with("[probe]\nprofile = true"), watched(every_ms(10), Some(99)));
    for probe in ["[probe]\nevery = \"off\"", "[probe]\nevery = \"20ms\"\nprofile = true"] {
        let experiment = read(&format!("{GOOD}\n{probe}")).unwrap();
        assert_eq!(read(&experiment.to_toml()).unwrap().probing, experiment.probing);
    }
    for (probe, said) in [
        ("[probe]\nevery = \"1us\"", "1ms or longer"),
        ("[probe]\nevery = true", "every must be"),
        ("[probe]\nprofile = \"yes\"", "profile must be true"),
        ("[probe]\nprofile = 100000", "from 1 to 1000"),
        ("[probe]\nevry = \"10ms\"", "did you mean \"every\""),
        ("[probe]\nevery = \"off\"\nprofile = true", "set every to a time"),
    ] {
        let fault = with(probe).unwrap_err();
        assert!(fault.contains(said) && fault.contains("line"), "{fault}");
    }
}
