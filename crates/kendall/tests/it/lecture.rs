//! `kendall solve` as a teacher types it: several stations, sweeps, letters of the books, figures for slides.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::served::kendall;

fn solve(words: &[&str]) -> Output {
    kendall().arg("solve").args(words).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// `kendall solve M/M/1 M/D/1 M/M/1/PS --rho 0.1..0.95 --figure lecture.pdf`, with each format that a name can end in.
#[test]
fn several_stations_stand_in_one_table_and_one_figure() {
    let folder = tempfile::tempdir().unwrap();
    for (name, begins) in
        [("lecture.pdf", &b"%PDF-"[..]), ("lecture.png", b"\x89PNG"), ("lecture.svg", b"<svg")]
    {
        let file = folder.path().join(name);
        for style in ["paper", "screen", "slides"] {
            let figure = ["--figure", file.to_str().unwrap(), "--style", style];
            let words = [&["M/M/1", "M/D/1", "M/M/1/PS", "--rho", "0.1..0.95"][..], &figure].concat();
            let output = solve(&words);
            if stderr(&output).contains("no fonts") {
                kendall_testbed::missing("a font");
                continue;
            }
            let table = stdout(&output);
            assert!(fs::read(&file).unwrap().starts_with(begins), "{name}");
            // Of M/M/1 at 95 % the mean is 20 services, and so it is where they share; with constant services 10.5.
            let row =
                table.lines().find(|line| line.starts_with("95.0 %")).unwrap_or_else(|| panic!("{table}"));
            let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
            assert_eq!(cells, ["95.0 %", "20.0 s", "10.5 s", "20.0 s"], "{table}");
            assert!(table.lines().all(|line| line.chars().count() <= 100 || line.contains(": ")), "{table}");
            assert!(stderr(&output).contains("multiples of the mean service time"));
        }
    }
}

#[test]
fn a_pdf_is_one_that_a_reader_can_show() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lecture.pdf");
    let output = solve(&["M/M/1", "--rho", "0.1..0.9", "--figure", file.to_str().unwrap()]);
    if stderr(&output).contains("no fonts") {
        return kendall_testbed::missing("a font");
    }
    stdout(&output);
    let pdf = fs::read(&file).unwrap();
    let text = String::from_utf8_lossy(&pdf);
    assert!(text.contains("/Type /Page") && text.contains("/MediaBox") && text.trim_end().ends_with("%%EOF"));
    // The table of references says where each object begins.
    let begin: usize = text.rsplit_once("startxref\n").unwrap().1.lines().next().unwrap().parse().unwrap();
    assert!(pdf[begin..].starts_with(b"xref"));
}

#[test]
fn a_figure_of_no_known_ending_is_refused_before_anything_is_computed() {
    let output = solve(&["M/M/1", "--rho", "0.5", "--figure", "lecture.jpeg"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("ends in .svg, .png or .pdf"), "{}", stderr(&output));
}

#[test]
fn the_letters_of_the_books_say_the_same_as_the_words() {
    let letters = stdout(&solve(&["M/M/6", "--lambda", "20/s", "--mu", "4.2", "--only", "formula"]));
    let words =
        stdout(&solve(&["M/M/6", "--arrival-rate", "20", "--service-rate", "4.2", "--only", "formula"]));
    assert_eq!(letters, words);
    let servers = ["M/M/1", "--servers", "6", "--lambda", "20", "--mu", "4.2", "--only", "formula"];
    assert_eq!(stdout(&solve(&servers)), words);
    let users = ["M/M/1", "--users", "5", "--think-time", "1s", "--mu", "4.2", "--only", "formula", "--json"];
    let json: Value = serde_json::from_slice(&solve(&users).stdout).unwrap();
    assert_eq!(json["notation"], "M/M/1/∞/5");
}

#[test]
fn any_quantity_can_be_swept() {
    for (words, first, last) in [
        (&["M/M/1", "--lambda", "4", "--servers", "1..4", "--mu", "5"][..], "1", "4"),
        (&["M/G/1", "--rho", "0.8", "--service-scv", "0..4:1"], "0", "4"),
        (&["M/M/1/∞/5", "--users", "1..10", "--think-time", "1s", "--mu", "2"], "1", "10"),
        (&["M/M/2", "--lambda", "10", "--service-time", "20ms..180ms:20ms"], "0.02", "0.18"),
    ] {
        let words = [words, &["--only", "formula"]].concat();
        let table = stdout(&solve(&words));
        let rows: Vec<&str> =
            table.lines().filter(|line| line.starts_with(|letter: char| letter.is_ascii_digit())).collect();
        let value = |row: &&str| row.split_whitespace().next().unwrap().to_owned();
        assert!(rows.len() >= 4, "{table}");
        assert_eq!(
            (value(&rows[0]).parse::<f64>().unwrap(), value(rows.last().unwrap()).parse::<f64>().unwrap()),
            (first.parse().unwrap(), last.parse().unwrap()),
            "{table}"
        );
    }
}

#[test]
fn what_no_formula_answers_is_simulated_and_marked() {
    let words = ["M/M/2", "M/LN/2/SRPT", "M/G/2", "--lambda", "10", "--mu", "8", "--service-scv", "1"];
    let output = solve(&[&words[..], &["--customers", "20000", "--precision", "20%"]].concat());
    // The variation is said of M, too, and says there what the letter says.
    let table = stdout(&output);
    let mean = table.lines().find(|line| line.starts_with("response time, mean")).unwrap();
    assert!(mean.contains('~'), "{table}");
    assert!(table.contains("~ by simulation"), "{table}");
}

#[test]
fn stations_one_after_the_other_need_no_file() {
    let words =
        ["M/M/1 -> M/M/2", "--arrival-rate", "8", "--service-rate", "10,5", "--only", "formula", "--json"];
    let json: Value = serde_json::from_slice(&solve(&words).stdout).unwrap();
    // Burke (1956): 1/(10 − 8) s at the first, and M/M/2 at 80 %, 0.2/(1 − 0.64) s, at the second.
    let mean = json["formula"]["answer"]["response_s"].as_f64().unwrap();
    assert!((mean - (0.5 + 0.2 / 0.36)).abs() < 1e-9, "{json}");
    let output = solve(&["M/M/1 -> M/M/2", "--rho", "0.5"]);
    assert!(stderr(&output).contains("give --arrival-rate"), "{}", stderr(&output));
}

/// A file takes the keys of the command line.
#[test]
fn a_file_knows_the_notation_and_the_options_of_a_station() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("net.toml");
    let text = "[[station]]\nname = \"web\"\nnotation = \"M/M/4\"\narrival-rate = \"80/s\"\nservice-time = \"20ms\"\n";
    fs::write(&file, text).unwrap();
    let by_file = stdout(&solve(&[path(&file), "--only", "formula"]));
    let by_words =
        stdout(&solve(&["M/M/4", "--arrival-rate", "80", "--service-time", "20ms", "--only", "formula"]));
    let mean = |table: &str| {
        let line = table.lines().find(|line| line.starts_with("response time, mean")).unwrap();
        line.split_whitespace().skip(3).take(2).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(mean(&by_file), mean(&by_words));
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

#[test]
fn what_cannot_be_is_said_with_the_option() {
    for (words, part) in [
        (&["M/M/1", "M/M/2", "--rho", "0.1..0.9", "--servers", "1..3"][..], "both ranges"),
        (&["M/M/1", "M/M/2", "--lambda", "1,2,3", "--mu", "5"], "has 3 values, and there are 2 stations"),
        (&["M/M/1", "M/M/2", "--rho", "0.5", "--trace", "t.csv"], "--trace needs one station"),
        (&["M/M/1", "lam=3", "--rho", "0.5"], "is an input of a model"),
        (&["M/M/1", "M/M", "--rho", "0.5"], "\"M/M\" is not a station"),
        (&["M/M/1/∞/5", "--rho", "0.5"], "give --think-time"),
        (&["M/M/1", "--rho", "0.5", "--lambda", "3"], "cannot be used with"),
    ] {
        let output = solve(words);
        assert!(!output.status.success() && stderr(&output).contains(part), "{words:?}: {}", stderr(&output));
    }
}
