//! The what-if view's answers, over real connections.

mod in_browser;

use std::fs;
use std::path::{Path, PathBuf};

use kendall_analysis::recorded_loads;
use kendall_archive::TrialWriter;
use kendall_prediction::{Predictor, QUANTILES, Question};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Discipline, Law, Servers, Station};
use kendall_stats::random::{Purpose, exponential, stream};
use serde_json::{Value, json};

use super::{Answer, Served, run, served};

fn asked(site: &Served, query: &str) -> Answer {
    site.get(&format!("/what-if/answer?{query}"))
}

fn answer(site: &Served, query: &str) -> Value {
    let answer = asked(site, query);
    assert_eq!(answer.status, 200, "{query}: {}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn quantile(found: &Value, list: &str, p: f64) -> Value {
    let pairs = found[list].as_array().unwrap();
    pairs.iter().find(|pair| number(&pair[0]) == p).unwrap()[1].clone()
}

/// The record of a single load: 30 requests per second, exponential service of 10 ms, one server.
fn record(results: &Path) -> PathBuf {
    let folder = run(results, "load", "one", "2026-11-21T04:10:05Z");
    fs::remove_dir_all(folder.join("trials")).unwrap();
    fs::remove_file(folder.join("experiment.toml")).unwrap();
    let mut writer = TrialWriter::create(&folder).unwrap();
    let mut rng = stream(5, Purpose::Arrivals, 0);
    let (mut now_s, mut free_s) = (0.0, 0.0_f64);
    let ns = |time_s: f64| (time_s * 1e9) as i64;
    for index in 0..3_000 {
        now_s += exponential(&mut rng) / 30.0;
        free_s = free_s.max(now_s) + 0.01 * exponential(&mut rng);
        let row = RequestRow::due(index, ns(now_s)).sent_at(ns(now_s), 1);
        writer.append(&row.ended(Outcome::Answered, ns(free_s))).unwrap();
    }
    writer.finish_without_stamps(0).unwrap();
    let exact = |value: f64| json!({ "value": value });
    let answer = json!({
        "seed": 5, "offered_per_s": 30.0,
        "run": {
            "start_ns": 0, "wall_s": 100.0, "sending_s": 100.0, "sent": 3000, "ended": [3000, 0, 0, 0, 0],
            "lag": { "p50_ns": 1, "p99_ns": 2, "max_ns": 3 }, "waited_for_connection": 0, "own_failures": 0, "max_in_flight": 9,
            "generator_cpu_s": 0.1
        },
        "clients": {
            "response": { "mean_s": exact(0.0143), "quantiles": [{ "p": 0.99, "value_s": exact(0.066) }] },
            "throughput_per_s": exact(30.0), "in_system": exact(0.43), "lost": exact(0.0)
        }
    });
    fs::write(folder.join("answer.json"), answer.to_string()).unwrap();
    folder
}

#[test]
fn a_bare_station_has_the_numbers_of_the_formula() {
    let site = served();
    let query = "rate=12&service=100ms&servers=2&law=LN&scv=3&delay=5ms&detail=full&curve=1";
    let found = answer(&site, query);
    let service = Law::LogNormal { mean_s: 0.1, scv: 3.0 };
    let station = Station::new(Arrivals::poisson(12.0), service, Servers::new(2).unwrap());
    let theory = kendall_theory::formula(&station).unwrap().delayed(0.005, 1.0);
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} is not {b}");
    near(number(&found["mean"]["value"]), theory.response.mean_s.value);
    for p in [0.5, 0.99] {
        let expected = theory.response.quantile(p).unwrap().value;
        near(number(&quantile(&found, "distribution", p)["value"]), expected);
    }
    let simulated =
        kendall_simulation::simulate(&station, kendall_simulation::StopRule::default(), 1).unwrap();
    let expected = simulated.response.quantile(0.99).unwrap().value + 0.005;
    near(number(&quantile(&found, "simulated", 0.99)["value"]), expected);
    assert_eq!(
        found["command"],
        "kendall solve M/LN/2 --arrival-rate 12 --service-time 0.1 --service-scv 3 --delay 0.005"
    );
    // The address gives the same answer, and a preview the same formula. A busy machine computes fewer points of the curve in its time.
    let again = answer(&site, &format!("{}&detail=full&curve=1", &found["address"].as_str().unwrap()[9..]));
    let without_curve = |answer: &Value| {
        let mut answer = answer.clone();
        answer["curve"] = Value::Null;
        answer
    };
    assert_eq!(without_curve(&again), without_curve(&found));
    let preview = answer(&site, &query.replace("full&curve=1", "preview"));
    assert_eq!((&preview["mean"], &preview["curve"]), (&found["mean"], &Value::Null));
}

#[test]
fn a_run_has_the_numbers_of_the_predictor() {
    let site = served();
    let folder = record(site.folder.path());
    let query = "run=load%2Fone&rate=120&servers=2&discipline=processor-sharing&more-delay=20ms&duration=50";
    let found = answer(&site, &format!("{query}&detail=full&curve=1"));
    let predictor = Predictor::new(&recorded_loads(&[&folder], None).unwrap().observed.unwrap(), 1);
    let truth = predictor
        .predict(&Question {
            servers: Some(2),
            discipline: Some(Discipline::ProcessorSharing),
            more_delay_s: 0.02,
            ..Question::at(120.0, 6_000)
        })
        .unwrap();
    let near = |a: &Value, b: f64| assert!((number(a) / b - 1.0).abs() < 1e-9, "{a} is not {b}");
    near(&found["mean"]["value"], truth.mean_s.value);
    for (p, estimate) in &truth.quantiles {
        let shown = quantile(&found, "distribution", *p);
        let (low, high) = estimate.interval.unwrap();
        near(&shown["value"], estimate.value);
        near(&shown["interval"][0], low);
        near(&shown["interval"][1], high);
    }
    assert_eq!(truth.quantiles.len(), QUANTILES.len());
    assert_eq!(found["measured"][0]["quantiles"], json!([[0.99, 0.066]]));
    assert!(found["curve"].as_array().unwrap().len() > 8, "{}", found["curve"]);
    let words = format!(
        "kendall predict {} --rate 120 --with-servers 2 --discipline processor-sharing --more-delay 0.02 --duration 50",
        folder.canonicalize().unwrap().display()
    );
    assert_eq!(found["command"], words);
    let overload = answer(&site, "run=load%2Fone&rate=1000");
    assert!(overload["unstable"].as_str().unwrap().contains("exceeds the capacity"), "{overload}");
    // With another law it is the station that the run is likeliest to be, beside the same measurements.
    let other = answer(&site, "run=load%2Fone&rate=60&law=D");
    let service_s = number(&other["answered"]["service"]);
    assert!((0.008..0.012).contains(&service_s), "{other}");
    assert!(other["command"].as_str().unwrap().starts_with("kendall solve M/D/1"), "{other}");
    assert_eq!(other["measured"], found["measured"]);
    // Users need a curve through several means, which one load does not have.
    let users = answer(&site, "run=load%2Fone&users=5");
    assert!(users["no_answer"][0].as_str().unwrap().contains("a single load has no curve"), "{users}");
}

#[test]
fn an_invalid_question_is_refused_with_its_reason() {
    let site = served();
    site.run("e", "r");
    for (query, status, part) in [
        ("rate=fast", 400, "rate: must be a positive rate"),
        ("rate=1&rate=2", 400, "rate is given twice"),
        ("run=none%2Fr", 404, "run: there is no run none/r here"),
        ("run=..%2F..", 400, "run: must be EXPERIMENT/INSTANT"),
        ("law=H2&scv=0.5", 422, "scv: a law of kind H2 cannot have"),
        ("run=e%2Fr", 422, "experiment.toml"),
    ] {
        let refused = asked(&site, query);
        assert_eq!(refused.status, status, "{query}: {}", refused.body);
        assert!(refused.head.contains("application/json"), "{}", refused.head);
        let why: Value = serde_json::from_str(&refused.body).unwrap();
        assert!(why["error"].as_str().unwrap().contains(part), "{query}: {why}");
    }
    assert_eq!(site.ask("POST", "/what-if/answer?rate=1", &[]).status, 403);
}

#[test]
fn the_page_is_linked_from_the_list_and_from_a_run() {
    let site = served();
    site.run("e", "a b");
    assert!(site.get("/").body.contains("href=\"/what-if\""));
    assert!(site.get("/runs/e/a%20b/").body.contains("href=\"/what-if?run=e%2Fa%20b\""));
    let page = site.get("/what-if?run=e%2Fa%20b");
    assert!(page.status == 200 && page.body.contains("as measured"), "{}", page.body);
    assert!(!page.body.contains("style=") && !page.body.contains("<script>"), "all within the policy");
    let bare = site.get("/what-if?run=%22%3E%3Cb%3E");
    assert!(bare.status == 200 && !bare.body.contains("<b>\""), "{}", bare.body);
}
