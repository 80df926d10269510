//! A third-party server: loaded by its URL, started by a command in an experiment, and gone afterwards.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::served::Served;

fn kendall(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kendall")).args(arguments).current_dir(folder).output().unwrap()
}

fn has_nginx() -> bool {
    kendall_testbed::has_peer("nginx", "-v")
}

/// Writes the port into a file, so that a test can check that no process listens there afterwards.
const COMMAND: &str = r#"
echo {port} >> ports.txt
cat > {folder}/nginx.conf <<END
daemon off; worker_processes 1; pid {folder}/pid; error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server { listen 127.0.0.1:{port}; location / { return 200 'hello'; } location /busy { return 503; } }
}
END
nginx -p {folder} -e stderr -c {folder}/nginx.conf
"#;

#[test]
fn an_experiment_starts_a_server_measures_it_and_leaves_nothing_running() {
    if !has_nginx() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let requests =
        "{\"name\": \"a\", \"weight\": 3, \"path\": \"/a\"}\n{\"name\": \"b\", \"path\": \"/b\"}\n";
    fs::write(folder.path().join("mix.jsonl"), requests).unwrap();
    let experiment = format!(
        "repeats = 2\nseed = 1\ndisturbed-over = \"100%\"\n[system]\nname = \"http\"\ncommand = '''{COMMAND}'''\n\
         [workload]\nrequests-file = \"mix.jsonl\"\nexpect-text = \"hello\"\n\
         [load]\nrate = \"10%\"\nduration = \"1500ms\"\n"
    );
    fs::write(folder.path().join("x.toml"), experiment).unwrap();
    let output = kendall(folder.path(), &["run", "x.toml", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let point = &report["points"][0];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} in {point}"));
    // A tenth of the capacity was asked for, and by the utilisation law a tenth of the server was busy.
    let utilisation = number(&point["measured"]["utilisation"]["value"]);
    assert!((0.03..0.3).contains(&utilisation), "{utilisation}");
    assert!(number(&point["service"]["mean_s"]) > 0.0);
    assert_eq!(point["measured"]["classes"].as_array().unwrap().len(), 2);
    assert!(point["models"][0]["formula"]["answer"].is_object(), "{}", point["models"]);
    assert!(point["replay"].is_null());
    assert!(report["notes"].as_str().unwrap().contains("sends no timestamps"), "{}", report["notes"]);
    for trial in report["trials"].as_array().unwrap() {
        assert_eq!(trial["counts"]["sent"], trial["counts"]["answered"], "{trial}");
        assert!(number(&trial["server_cpu_cores"]) > 0.0, "the workers of the server are counted");
    }
    let ports = fs::read_to_string(folder.path().join("ports.txt")).unwrap();
    // One to find out what it can do, one for lone requests, one for each trial.
    assert_eq!(ports.lines().count(), 4);
    for port in ports.lines() {
        assert!(TcpStream::connect(("127.0.0.1", port.parse().unwrap())).is_err(), "{port} is still served");
    }
}

#[test]
fn a_command_that_is_no_server_is_an_error_with_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let with = |command: &str| {
        let experiment = format!(
            "[system]\nname = \"http\"\ncommand = \"{command}\"\n[load]\nrate = 10\nduration = \"100ms\"\n"
        );
        fs::write(folder.path().join("x.toml"), experiment).unwrap();
        let output = kendall(folder.path(), &["run", "x.toml"]);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let fault = with("echo no such page >&2; exit 3");
    assert!(fault.contains("no such page") && fault.contains("exit status: 3"), "{fault}");
}

#[test]
fn faults_on_the_command_line_say_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mix.toml"), "[[request]]\npath = '/'\nweight = -1\n").unwrap();
    let fault = |arguments: &[&str]| {
        let fixed = ["load", "--rate", "10", "--duration", "100ms"];
        let output = kendall(folder.path(), &[&fixed, arguments].concat());
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let url = "http://127.0.0.1:1/";
    assert!(fault(&[url, "--requests-file", "mix.toml"]).contains("mix.toml, line 1: its weight is -1"));
    assert!(fault(&[url, "--header", "no colon"]).contains("name: value"));
    assert!(fault(&[url, "--http", "4"]).contains("1, 2 or 3"));
    assert!(fault(&[url, "--http", "3"]).contains("write https://"));
    assert!(fault(&["https://127.0.0.1:1/", "--ca", "x", "--insecure"]).contains("exclude each other"));
    assert!(
        fault(&["reverse://127.0.0.1:1", "--method", "PUT"]).contains("--method does not apply to reverse")
    );
    assert!(fault(&["ftp://127.0.0.1:1"]).contains("unknown system"));
}

/// The servers of the experiments answer with the status that the files expect, also where root starts them: nginx then serves as another
/// user, who may not read a private folder.
#[test]
fn the_servers_of_the_experiments_answer_as_their_files_expect() {
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let files = [
        ("nginx", "-v", "http/quickstart.toml"),
        ("nginx", "-v", "validate/nginx-gzip.toml"),
        ("nginx", "-v", "validate/nginx-index.toml"),
        ("python3", "--version", "validate/python-threads.toml"),
    ];
    for (peer, version, file) in files {
        if !kendall_testbed::has_peer(peer, version) {
            continue;
        }
        let text = fs::read_to_string(experiments.join(file)).unwrap();
        let experiment: toml::Table = text.parse().unwrap();
        let server = Served::new(&[
            "http",
            &format!("--command={}", experiment["system"]["command"].as_str().unwrap()),
        ]);
        let workload = &experiment["workload"];
        let port = server.address.rsplit_once(':').unwrap().1;
        let url = workload["url"].as_str().unwrap().replace("{port}", port);
        let mut arguments =
            vec!["load", &url, "--users", "1", "-d", "300ms", "--expect-status", "200", "--quiet", "--json"];
        if let Some(header) = workload.get("header") {
            arguments.extend(["--header", header.as_str().unwrap()]);
        }
        let output = kendall(Path::new("."), &arguments);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let statuses = &answer["run"]["statuses"];
        assert!(
            statuses["200"].as_u64() > Some(0) && statuses.as_object().unwrap().len() == 1,
            "{file}: {statuses}"
        );
    }
}
