//! What kendall reads is data. What it writes has no secrets, and goes only to the files that the user named.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

/// Every secret of these tests begins like this.
const SECRET: &str = "s3cret-";

fn kendall(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kendall"));
    command.args(arguments).current_dir(folder).env("XDG_STATE_HOME", folder.join("state"));
    command.env("KENDALL_TEST_ID", format!("{SECRET}of-the-environment")).output().unwrap()
}

/// A server that keeps the head of the last request.
fn server() -> (SocketAddr, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&heads);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let heads = Arc::clone(&heads);
            thread::spawn(move || answer(&stream, &heads));
        }
    });
    (address, kept)
}

fn answer(mut stream: &TcpStream, kept: &Mutex<String>) {
    let mut head = String::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        if !line.is_empty() {
            head += &format!("{line}\n");
        } else if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_ok() {
            *kept.lock().unwrap() = std::mem::take(&mut head);
        }
    }
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn assert_no_secret(output: &Output, folder: &Path) {
    for text in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(text);
        assert!(!text.contains(SECRET), "{text}");
    }
    let files = files(folder);
    assert!(files.len() > 3, "{files:?}");
    for file in files {
        assert!(!String::from_utf8_lossy(&fs::read(&file).unwrap()).contains(SECRET), "{}", file.display());
    }
}

const LINES: [&str; 7] = [
    "x-customer: s3cret-of-a-marked-header",
    "&voucher=s3cret-of-a-marked-parameter",
    "authorization: Bearer s3cret-of-the-line",
    "x-api-key: s3cret-of-a-file",
    "x-id: s3cret-of-the-environment",
    "cookie: session=s3cret-of-a-cookie",
    "/?page=1&token=s3cret-of-the-url",
];

#[test]
fn a_load_sends_secrets_and_keeps_none() {
    let (address, seen) = server();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("headers"), "X-Api-Key: s3cret-of-a-file\n").unwrap();
    let url =
        format!("http://{address}/?page=1&token=s3cret-of-the-url&voucher=s3cret-of-a-marked-parameter");
    let arguments = ["load", &url, "--rate", "200", "--requests", "20", "--record", "record", "--quiet"];
    let headers = [
        "--header",
        "Authorization: Bearer s3cret-of-the-line",
        "--header",
        "@headers",
        "--header",
        "X-Id: ${KENDALL_TEST_ID}",
        "--header",
        "Cookie: session=s3cret-of-a-cookie",
        "--header",
        "X-Customer: s3cret-of-a-marked-header",
        "--secret",
        "x-customer",
        "--secret",
        "voucher",
    ];
    let output = kendall(folder.path(), &[&arguments[..], &headers].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen = seen.lock().unwrap().clone();
    assert!(LINES.iter().all(|line| seen.contains(line)), "{seen}");
    assert_no_secret(&output, &folder.path().join("record"));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let marked = ["voucher=${VOUCHER}", "x-customer: ${X_CUSTOMER}", "--secret x-customer --secret voucher"];
    assert!(marked.iter().all(|part| shown.to_lowercase().contains(&part.to_lowercase())), "{shown}");
    for part in ["token=${TOKEN}", "authorization: ${AUTHORIZATION}", "@headers", "${KENDALL_TEST_ID}"] {
        assert!(shown.to_lowercase().contains(&part.to_lowercase()), "{part}: {shown}");
    }
}

#[test]
fn a_run_sends_secrets_and_keeps_none() {
    let (address, seen) = server();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("headers"), "X-Api-Key: s3cret-of-a-file\n").unwrap();
    let experiment = format!(
        "name = \"x\"\nrepeats = 1\nseed = 1\ndisturbed-over = \"100%\"\n[system]\nname = \"http\"\n\
         [workload]\nurl = \"http://{address}/?page=1&token=s3cret-of-the-url&voucher=s3cret-of-a-marked-parameter\"\n\
         header = '''\nAuthorization: Bearer s3cret-of-the-line\n@headers\nX-Id: ${{KENDALL_TEST_ID}}\n\
         Cookie: session=s3cret-of-a-cookie\nX-Customer: s3cret-of-a-marked-header'''\n\
         secret = '''\nx-customer\nvoucher'''\n[load]\nrate = 200\nduration = \"300ms\"\nwarmup = \"0s\"\n"
    );
    fs::write(folder.path().join("x.toml"), experiment).unwrap();
    let output = kendall(folder.path(), &["run", "x.toml", "--results", "results"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen = seen.lock().unwrap().clone();
    assert!(LINES.iter().all(|line| seen.contains(line)), "{seen}");
    assert_no_secret(&output, &folder.path().join("results"));
}

#[test]
fn a_secret_that_would_be_copied_or_is_missing_is_refused() {
    let (address, _) = server();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{address}/");
    let refused = |arguments: &[&str]| {
        let output =
            kendall(folder.path(), &[&["load", &url, "--rate", "9", "--requests", "1"], arguments].concat());
        assert!(!output.status.success());
        let why = String::from_utf8(output.stderr).unwrap();
        assert!(!why.contains(SECRET), "{why}");
        why
    };
    let file = folder.path().join("requests.toml");
    fs::write(&file, "[[request]]\nheaders = { Authorization = \"s3cret-of-a-request\" }\n").unwrap();
    let why = refused(&["--requests-file", "requests.toml"]);
    assert!(why.contains("requests.toml, line 1") && why.contains("Authorization"), "{why}");
    let why = refused(&["--header", "Authorization: ${KENDALL_NO_SUCH_VARIABLE}"]);
    assert!(why.contains("set KENDALL_NO_SUCH_VARIABLE"), "{why}");
    let why = refused(&["--header", "@none"]);
    assert!(why.contains("cannot read the headers in") && why.contains("none"), "{why}");
    let why = refused(&["--header", "s3cret-without-a-name"]);
    assert!(why.contains("name: value"), "{why}");
}

#[test]
fn messages_about_urls_receivers_and_experiments_show_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let output = kendall(folder.path(), arguments);
        let why = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && !why.contains(SECRET), "{why}");
        why
    };
    let load = ["--rate", "50", "--requests", "1", "--quiet"];
    let why = refused(&[&["load", "http://me:s3cret-of-a-user@127.0.0.1:1/"][..], &load].concat());
    assert!(why.contains("me:…@127.0.0.1:1") && why.contains("authorization"), "{why}");
    let receiver = ["--otlp", "http://me:s3cret-of-a-user@127.0.0.1:1/x?token=s3cret"];
    let why = refused(&[&["load", "http://127.0.0.1:1/"], &load[..], &receiver].concat());
    assert!(why.contains("to http://127.0.0.1:1/x"), "{why}");
    let experiment = "[system]\nname = \"http\"\n[workload]\nurl = \"http://127.0.0.1:1/\"\n";
    for header in ["\"Cookie: s3cret-of-an-open-text", "\"Cookie s3cret-without-a-colon\""] {
        let text = format!("{experiment}header = {header}\n[load]\nrate = 20\nduration = \"200ms\"\n");
        fs::write(folder.path().join("x.toml"), text).unwrap();
        let why = refused(&["run", "x.toml", "--results", "results"]);
        assert!(why.contains("x.toml, line 5"), "{why}");
        assert!(!folder.path().join("results").exists());
    }
}

#[test]
fn control_characters_of_a_record_do_not_reach_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.toml"), "name = \"x\"\n[system]\nname = \"\\u001b[2J\"\n").unwrap();
    let output = kendall(folder.path(), &["plan", "x.toml"]);
    let why = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && why.contains("[2J") && !why.contains('\u{1b}'), "{why}");
    let output = kendall(folder.path(), &["plan", "a\u{1b}[2J.toml"]);
    let why = String::from_utf8(output.stderr).unwrap();
    assert!(why.contains("a\\u{1b}[2J.toml") && !why.contains('\u{1b}'), "{why}");
}

#[test]
fn a_full_standard_output_is_an_error_of_every_kind_of_output() {
    for arguments in [&["completions", "bash"][..], &["solve", "--models"], &["doctor", "--json"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kendall"));
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = command.args(arguments).stdout(full).output().unwrap();
        let why = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{why}");
        assert!(why.contains("cannot write the output"), "{why}");
    }
}

#[test]
fn a_device_a_pipe_and_a_link_stay_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (folder.path().join("target.svg"), folder.path().join("link.svg"));
    fs::write(&target, "old").unwrap();
    symlink(&target, &link).unwrap();
    let draw = |to: &str| {
        let table = "rate_per_s,response_mean_s\n10,0.1\n20,0.12\n30,0.2\n40,0.4\n";
        fs::write(folder.path().join("points.csv"), table).unwrap();
        let output = kendall(folder.path(), &["fit", "points.csv", "--figure", to]);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (drawn, why) = draw("link.svg");
    assert!(drawn, "{why}");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("<svg"));
    assert!(draw("/dev/null").0);
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    fs::remove_file(&target).unwrap();
    let (drawn, why) = draw("link.svg");
    assert!(!drawn && why.contains("link.svg") && why.contains("which does not exist"), "{why}");
    let (drawn, why) = draw(".");
    assert!(!drawn && why.contains("a folder"), "{why}");
}

#[test]
fn a_pipe_and_a_device_are_written_through_as_typed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes"), "twelve bytes").unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let encrypt = |to: &str| {
        let output =
            kendall(folder.path(), &["recover", "encrypt", "notes", "--password", "abc", "--out", to]);
        assert!(output.status.success(), "{to}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    encrypt("regular");
    let encrypted = fs::read(folder.path().join("regular")).unwrap();
    let reader = thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe)
    });
    encrypt("pipe");
    assert_eq!(reader.join().unwrap().unwrap(), encrypted);
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    encrypt("/dev/null");
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    assert!(encrypt("/dev/stdout").starts_with(&encrypted));
}

#[test]
fn a_run_of_another_person_leads_no_write_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let experiment = "name = \"x\"\nrepeats = 1\nseed = 1\ndisturbed-over = \"100%\"\n[system]\nname = \"reverse\"\n\
                      [workload]\ndifficulty = 1000\n[load]\nrate = 100\nduration = \"200ms\"\nwarmup = \"0s\"\n";
    fs::write(folder.path().join("x.toml"), experiment).unwrap();
    let run = kendall(folder.path(), &["run", "x.toml", "--results", "results"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let runs: Vec<PathBuf> =
        fs::read_dir(folder.path().join("results/x")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let run = &runs[0];
    for name in ["report.html", "report.html.tmp", "live.json.tmp", "resume.log"] {
        let _ = fs::remove_file(run.join(name));
        symlink(&victim, run.join(name)).unwrap();
    }
    // Another user, or the same one after a change of the experiment.
    let resume = |state: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kendall"));
        command.args(["run", "--resume", run.to_str().unwrap()]).args(more).current_dir(folder.path());
        let output = command.env("XDG_STATE_HOME", folder.path().join(state)).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (resumed, why) = resume("another", &[]);
    let parts = ["was not started by this user", "kendall serve reverse", "experiment.toml", "--trust"];
    assert!(!resumed && parts.iter().all(|part| why.contains(part)), "{why}");
    let (resumed, why) = resume("another", &["--trust"]);
    assert!(resumed, "{why}");
    let (resumed, why) = resume("state", &[]);
    assert!(resumed, "{why}");
    for name in ["report.html", "report.html.tmp", "live.json.tmp", "resume.log"] {
        let _ = fs::remove_file(run.join(name));
        symlink(&victim, run.join(name)).unwrap();
    }
    let report = kendall(folder.path(), &["report", run.to_str().unwrap()]);
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(fs::symlink_metadata(run.join("report.html")).unwrap().is_file());
}
