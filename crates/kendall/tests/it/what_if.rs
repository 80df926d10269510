//! The commands of the what-if view print the numbers that it shows.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::web::{Web, kendall, results};

/// Two loads of a server with service times of 5 ms: 30 % and 50 % of its capacity.
const EXPERIMENT: &str = "name = \"loads\"\nseed = 5\ndisturbed-over = \"100%\"\n[system]\nname = \"hold\"\nworkers = 1\n\
    service = \"constant\"\nmean = \"5ms\"\n[load]\nrate = [60, 100]\nduration = \"4s\"\nwarmup = \"0s\"\n";

fn answer(web: &Web, query: &str) -> Value {
    let mut stream = TcpStream::connect(web.address()).unwrap();
    let head = format!(
        "GET /what-if/answer?{query}&detail=full HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        web.address()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap_or_else(|_| panic!("{query}: {text}"))
}

/// What the command of an answer prints as JSON.
fn printed(answer: &Value, folder: &Path) -> Value {
    let words = answer["command"].as_str().unwrap().strip_prefix("kendall ").unwrap();
    let shell = format!("\"$KENDALL\" {words} --json");
    let mut command = Command::new("sh");
    command.args(["-c", &shell]).env("KENDALL", env!("CARGO_BIN_EXE_kendall")).current_dir(folder);
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap_or_else(|_| panic!("{words}"))
}

fn near(shown: &Value, printed: &Value) {
    let [a, b] =
        [shown, printed].map(|value| value.as_f64().unwrap_or_else(|| panic!("{value} is not a number")));
    assert!((a / b - 1.0).abs() < 1e-9, "the view shows {a}, the command prints {b}");
}

#[test]
fn a_command_prints_the_numbers_of_the_view() {
    let folder = results();
    fs::write(folder.path().join("loads.toml"), EXPERIMENT).unwrap();
    assert!(kendall(folder.path()).args(["run", "loads.toml"]).status().unwrap().success());
    let run = fs::read_dir(folder.path().join("results/loads")).unwrap().next().unwrap().unwrap().path();
    let run = run.file_name().unwrap().to_str().unwrap();
    let web = Web::start(folder.path(), "127.0.0.1:0");

    let shown = answer(
        &web,
        &format!("run=loads/{run}&rate=150&more-delay=5ms&discipline=processor-sharing&duration=30"),
    );
    let said = &printed(&shown, folder.path())["distribution"];
    near(&shown["mean"]["value"], &said["mean_s"]["value"]);
    for pair in said["quantiles"].as_array().unwrap() {
        let of = shown["distribution"].as_array().unwrap().iter().find(|shown| shown[0] == pair[0]).unwrap();
        near(&of[1]["value"], &pair[1]["value"]);
        near(&of[1]["interval"][1], &pair[1]["interval"][1]);
    }
    let of_run = format!("run=loads/{run}&rate=120&law=M");
    for query in [&of_run, "rate=20&law=LN&scv=2&delay=30ms", "users=20&think=2&servers=2&delay=0.1"] {
        let shown = answer(&web, query);
        let said = printed(&shown, folder.path());
        near(&shown["mean"]["value"], &said["formula"]["answer"]["response"]["mean_s"]["value"]);
        let simulated = &said["simulation"]["answer"]["response"]["quantiles"];
        for (pair, quantile) in
            shown["simulated"].as_array().unwrap().iter().zip(simulated.as_array().unwrap())
        {
            near(&pair[1]["value"], &quantile["value_s"]["value"]);
        }
    }
}
