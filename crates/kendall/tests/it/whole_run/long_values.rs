//! A factor whose values are whole commands: letters stand for them, on the terminal, on the page and in names of folders.

use std::fs;
use std::path::Path;

use super::{folder_with, kendall, results, trials};

/// A server of HTTP, in Python.
const SERVER: &str = r#"
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// A command of 250 characters that starts it.
fn command(file: &Path, mark: &str) -> String {
    format!("{:x<250}", format!("exec python3 {} {{port}} # {mark}", file.display()))
}

/// A text as TOML.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap()
}

#[test]
fn a_value_of_250_characters_is_shown_once() {
    let server = tempfile::NamedTempFile::new().unwrap();
    fs::write(server.path(), SERVER).unwrap();
    let [a, b] = ["a", "b"].map(|mark| quoted(&command(server.path(), mark)));
    let folder = folder_with(&format!(
        "name = \"small\"\nquestion = \"Which server?\"\nrepeats = 2\nseed = 5\ndisturbed-over = \"100%\"\n\n\
         [system]\nname = \"http\"\ncommand = [{a}, {b}]\n\n[workload]\nurl = \"http://127.0.0.1:{{port}}/\"\n\n\
         [load]\nrate = [20, 40]\nduration = \"600ms\"\n\n[[expect]]\np50 = \"<10s\"\nat = {{ command = {b} }}\n"
    ));
    let words = ["run", "small.toml", "--allow", "undecided"];
    let output = kendall().current_dir(folder.path()).args(words).output().unwrap();
    let [shown, said] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{said}\n{shown}");
    assert!(
        shown.contains("command A: exec python3") && shown.contains("command B: exec python3"),
        "{shown}"
    );
    assert!(said.contains("command=A, rate=20"), "{said}");
    // A busy machine adds doubts to the line of a trial.
    let trial = |line: &str| widest(line.split("; ").next().unwrap()) <= 120;
    assert!(widest(&shown) <= 100 && said.lines().all(trial), "{said}\n{shown}");
    let trials = trials(folder.path());
    assert!(trials.iter().any(|trial| trial.to_str().unwrap().ends_with("-command=A,rate=20")), "{trials:?}");
    // On the page a command stands under its letter, and in the text of the experiment.
    let page = fs::read_to_string(results(folder.path()).join("report.html")).unwrap();
    assert!(page.contains("<dt>command A</dt>") && page.contains("Short names"));
    for text in [&shown, &page] {
        for mark in ["# axxx", "# bxxx"] {
            let copies = text.replace("\n        ", "").matches(mark).count();
            assert!((1..=3).contains(&copies), "{mark}: {copies} copies");
        }
    }
    let run = results(folder.path());
    let compare = ["compare", run.to_str().unwrap(), "--by", "command", "--metric", "mean"];
    let compared = String::from_utf8(kendall().args(compare).output().unwrap().stdout).unwrap();
    assert!(compared.contains("B (2 runs) against A (2 runs)"), "{compared}");
    assert!(compared.contains("command A: exec python3") && widest(&compared) <= 100, "{compared}");
}
