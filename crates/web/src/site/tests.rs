//! Tests a site over real connections, with runs made for the purpose.

mod entrance;
mod what_if;

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kendall_archive::Manifest;
use kendall_archive::live::{Live, LiveState, Process, Sample, Samples};
use tempfile::TempDir;

use crate::analysis::Analysis;
use crate::events::MOST_WATCHERS;
use crate::{Server, Site, WebError};

/// A site that runs until it is dropped.
struct Served {
    address: SocketAddr,
    url: String,
    folder: TempDir,
    reports: Arc<AtomicUsize>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), WebError>>>,
}

fn site(folder: &Path, listen: &str) -> Site {
    Site {
        results: folder.into(),
        listen: listen.parse().unwrap(),
        token: None,
        program: "/bin/false".into(),
        systems: &[],
    }
}

/// An analysis that counts the reports that it writes, and cannot compare.
fn counting(reports: &Arc<AtomicUsize>) -> Analysis {
    let reports = Arc::clone(reports);
    Analysis {
        write_report: Box::new(move |folder| {
            reports.fetch_add(1, Ordering::Relaxed);
            fs::write(folder.join("report.html"), "<p>a report").map_err(|error| error.to_string())
        }),
        compare: Box::new(|runs| Err(format!("<{}> cannot be compared", runs[1].0))),
    }
}

fn serve(folder: TempDir, listen: &str) -> Served {
    let reports = Arc::default();
    let mut server = Server::bind(site(folder.path(), listen)).unwrap();
    server.analysis = counting(&reports);
    let (address, url) = (server.address, server.url());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let thread = thread::spawn(move || server.serve_until(async { drop(stopped.await) }));
    Served { address, url, folder, reports, stop: Some(stop), thread: Some(thread) }
}

fn served() -> Served {
    serve(tempfile::tempdir().unwrap(), "127.0.0.1:0")
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, None | Some(Ok(Ok(())))), "{ended:?}");
    }
}

/// An answer: its status, its head and its body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Served {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends a request with these additional lines, and reads everything that comes back.
    fn ask(&self, method: &str, path: &str, lines: &[&str]) -> Answer {
        let mut stream = self.connect();
        let host = if lines.iter().any(|line| line.starts_with("Host:")) {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        write!(stream, "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\n{lines}\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_lowercase(), body: body.into() }
    }

    fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[])
    }

    /// The cookie of a browser that opened the URL that kendall printed.
    fn cookie(&self) -> String {
        let (_, token) = self.url.split_once("?token=").unwrap();
        format!("Cookie: kendall-{}={token}", self.address.port())
    }

    /// A finished run, in its folder.
    fn run(&self, experiment: &str, stamp: &str) -> PathBuf {
        run(self.folder.path(), experiment, stamp, "2026-11-21T04:10:05Z")
    }
}

fn run(results: &Path, experiment: &str, stamp: &str, started_utc: &str) -> PathBuf {
    let folder = results.join(experiment).join(stamp);
    fs::create_dir_all(folder.join("trials/001-rate=20")).unwrap();
    fs::write(folder.join("trials/001-rate=20/answer.json"), "{}").unwrap();
    // It asks git for a revision, which takes a moment.
    static HERE: OnceLock<Manifest> = OnceLock::new();
    let mut manifest = HERE.get_or_init(|| Manifest::here("", 1)).clone();
    manifest.experiment = experiment.into();
    manifest.started_utc = started_utc.into();
    manifest.ended_utc = Some(started_utc.into());
    manifest.write(&folder).unwrap();
    let text = "name = \"x\"\nquestion = \"How <long>?\"\n[system]\nname = \"reverse\"\n[load]\nrate = [\"20%\", 40]\n";
    fs::write(folder.join("experiment.toml"), text).unwrap();
    folder
}

/// The live state of a run in this process.
fn live() -> Live {
    Live {
        process: Process::here(),
        state: LiveState::Running,
        doing: "finding".into(),
        trials_planned: 4,
        trials_done: 1,
        left_s: None,
        elapsed_s: 1.0,
        trial: None,
        samples: Samples::default(),
        trials: VecDeque::new(),
    }
}

fn with_samples(mut live: Live, count: u32) -> Live {
    for _ in 0..count {
        let at_s = live.samples.end() as f64 * 0.5;
        live.samples.push(Sample { at_s, p99_s: Some(0.25), ..Sample::default() });
    }
    live
}

/// Events as they arrive, each with its number and its data.
fn events(site: &Served, path: &str, lines: &str) -> mpsc::Receiver<(String, serde_json::Value)> {
    let mut stream = site.connect();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n{lines}\r\n", site.address).unwrap();
    let (say, hear) = mpsc::channel();
    thread::spawn(move || {
        let mut id = String::new();
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if let Some(mark) = line.strip_prefix("id: ") {
                mark.clone_into(&mut id);
            } else if let Some(data) = line.strip_prefix("data: ") {
                let event = serde_json::from_str(data).unwrap();
                if say.send((id.clone(), event)).is_err() {
                    return;
                }
            }
        }
    });
    hear
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_thousand_runs_are_listed_and_searched_quickly_and_read_once() {
    let site = served();
    for i in 0..1000 {
        let at = format!("2026-{:02}-{:02}T00:{:02}:{:02}Z", 1 + i % 12, 1 + i % 28, i % 60, i / 60);
        run(site.folder.path(), &format!("experiment-{}", i % 7), &format!("run-{i:04}"), &at);
    }
    let began = Instant::now();
    let first = site.get("/");
    let reading = began.elapsed();
    assert!(first.status == 200 && first.body.contains("1000 runs, page 1 of 25"), "{}", first.body);
    assert_eq!(first.body.matches("<li class=\"run ").count(), crate::runs::ON_A_PAGE);
    // All were read; a page after that reads only changed files. Generous, since tests share the machine.
    thread::sleep(Duration::from_millis(1100));
    let began = Instant::now();
    let found = site.get("/list?q=EXPERIMENT-3+run-0003");
    let again = began.elapsed();
    println!("1000 runs: first look {reading:?}, next look {again:?}");
    assert!(reading < Duration::from_secs(10) && again < Duration::from_secs(3), "{reading:?}, {again:?}");
    assert!(
        found.body.contains("1 of 1000 runs") && found.body.contains("experiment-3/run-0003"),
        "{}",
        found.body
    );
    // The newest first, whatever the names are.
    let months: Vec<&str> =
        first.body.match_indices("caption\">2026-").map(|(at, _)| &first.body[at + 9..at + 19]).collect();
    assert!(months.is_sorted_by(|a, b| a >= b) && months.len() == crate::runs::ON_A_PAGE, "{months:?}");
    // A new run appears a second later, and a removed one disappears.
    run(site.folder.path(), "fresh", "run", "2027-01-01T00:00:00Z");
    fs::remove_dir_all(site.folder.path().join("experiment-3/run-0003")).unwrap();
    thread::sleep(Duration::from_millis(1100));
    let list = site.get("/list").body;
    assert!(list.contains("1000 runs") && list.find("fresh/run") < list.find("experiment-"), "{list}");
    assert!(site.get("/list?q=run-0003").body.contains("No run has all these words"));
}

#[test]
fn a_run_says_what_it_is_and_its_text_is_escaped() {
    let site = served();
    site.run("plain", "one");
    for path in ["/", "/runs/plain/one/"] {
        let page = site.get(path);
        assert!(page.status == 200 && page.body.contains("How &#60;long&#62;?"), "{}", page.body);
        assert!(
            page.body.contains("reverse · rate: 20%, 40") && page.body.contains("1 trial"),
            "{}",
            page.body
        );
        assert!(page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
        assert!(!page.body.contains("style=") && !page.body.contains("<script>"), "all within the policy");
    }
    for path in
        ["/runs/plain/two/", "/runs/none/one/", "/nothing", "/runs/plain/one/none.json", "/assets/x/none"]
    {
        assert_eq!(site.get(path).status, 404, "{path}");
    }
    for name in ["page.css", "list.js", "live.js", "what-if.js", "uplot.js"] {
        let asset = site.get(&format!("/assets/{}/{name}", super::build()));
        assert!(asset.status == 200 && asset.body.len() > 1000, "{name}");
    }
}

#[test]
fn nothing_outside_of_the_results_is_handed_out() {
    let site = served();
    let run = site.run("e", "r");
    let secret = tempfile::tempdir().unwrap();
    fs::write(secret.path().join("secret"), "hidden").unwrap();
    std::os::unix::fs::symlink(secret.path(), run.join("link")).unwrap();
    std::os::unix::fs::symlink(secret.path().join("secret"), run.join("secret")).unwrap();
    let known = site.get("/runs/e/r/trials/001-rate=20/answer.json");
    assert!(
        known.status == 200 && known.body == "{}" && known.head.contains("application/json"),
        "{}",
        known.head
    );
    let absolute = format!("/runs/e/r/{}/secret", secret.path().display());
    for path in [
        "/runs/e/r/../../../../../../etc/passwd",
        "/runs/e/r/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/runs/e/r/..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/runs/%2e%2e/%2e%2e/etc/passwd",
        "/runs/e/..%2f..%2f../x",
        "/runs/e/r/%2Fetc%2Fpasswd",
        "/runs/e/r//etc/passwd",
        "/runs/e/r/link/secret",
        "/runs/e/r/secret",
        "/runs/e/r/%00",
        "/picture/%2e%2e/%2e%2e",
        &absolute,
    ] {
        let answer = site.get(path);
        assert!(answer.status == 404 || answer.status == 400, "{path}: {}", answer.status);
        assert!(!answer.body.contains("hidden") && !answer.body.contains("root:"), "{path}");
    }
}

#[test]
fn a_report_is_written_once_where_it_is_missing_or_old() {
    let site = served();
    let run = site.run("e", "r");
    let written = || site.reports.load(Ordering::Relaxed);
    for _ in 0..3 {
        let report = site.get("/runs/e/r/report.html");
        assert!(report.body == "<p>a report" && !report.head.contains("connect-src"), "{}", report.head);
        assert!(
            report.head.contains("sandbox allow-scripts allow-downloads; default-src 'none'"),
            "{}",
            report.head
        );
    }
    assert_eq!(written(), 1);
    let answer = fs::File::create(run.join("trials/001-rate=20/answer.json")).unwrap();
    answer.set_modified(std::time::SystemTime::now() + Duration::from_secs(2)).unwrap();
    site.get("/runs/e/r/report.html");
    assert_eq!(written(), 2, "a trial has been done since");
}

#[test]
fn a_picture_that_is_opened_as_a_page_can_do_nothing() {
    let site = served();
    let run = site.run("e", "r");
    let report = "<div class=\"panel\"><svg viewBox=\"0 0 2 2\" width=\"2\" height=\"2\"></svg>";
    fs::write(run.join("report.html"), report).unwrap();
    let picture = site.get("/picture/e/r");
    assert!(picture.status == 200 && picture.head.contains("image/svg+xml"), "{}", picture.head);
    for part in ["sandbox;", "form-action 'none'", "frame-ancestors 'none'"] {
        assert!(picture.head.contains(part), "{}", picture.head);
    }
    assert_eq!(picture.head.matches("content-security-policy").count(), 1);
}

#[test]
fn who_watches_gets_all_first_then_what_is_new_and_goes_on_where_it_was() {
    let site = served();
    let run = site.run("e", "r");
    let live_report = with_samples(live(), 3);
    live_report.write(&run).unwrap();
    let all = events(&site, "/events/e/r", "");
    let (mark, first) = all.recv_timeout(PATIENCE).unwrap();
    assert_eq!(first["state"], "running");
    assert_eq!(first["live"]["samples"]["at_s"].as_array().unwrap().len(), 3);
    let live_report = with_samples(live_report, 2);
    live_report.write(&run).unwrap();
    let (_, next) = all.recv_timeout(PATIENCE).unwrap();
    let samples = &next["live"]["samples"];
    assert_eq!((samples["first"].as_u64(), samples["at_s"].as_array().unwrap().len()), (Some(3), 2));
    // After a lost connection, by the browser's header or by the page's URL.
    for (path, lines) in [
        ("/events/e/r".to_owned(), format!("Last-Event-ID: {mark}\r\n")),
        (format!("/events/e/r?since={mark}"), String::new()),
    ] {
        let (_, event) = events(&site, &path, &lines).recv_timeout(PATIENCE).unwrap();
        assert_eq!(event["live"]["samples"], *samples, "{path}");
    }
    // With a mark of another process, or an invalid one, everything is sent.
    for mark in ["1-1.4", "nonsense", "", "9.9.9"] {
        let lines = format!("Last-Event-ID: {mark}\r\n");
        let (_, event) = events(&site, "/events/e/r", &lines).recv_timeout(PATIENCE).unwrap();
        assert_eq!(event["live"]["samples"]["at_s"].as_array().unwrap().len(), 5, "{mark}");
    }
    // A killed run cannot write its end, but its process has ended.
    let mut manifest = Manifest::read(&run).unwrap();
    manifest.ended_utc = None;
    manifest.write(&run).unwrap();
    let mut killed = live_report;
    killed.process.started_ticks += 1;
    killed.write(&run).unwrap();
    let state = loop {
        let (_, event) = all.recv_timeout(PATIENCE).unwrap();
        if event["state"] != "running" {
            break event["state"].clone();
        }
    };
    assert_eq!(state, "interrupted");
}

#[test]
fn too_many_who_watch_are_told_to_come_again() {
    let site = served();
    live().write(&site.run("e", "r")).unwrap();
    let watching: Vec<_> = (0..MOST_WATCHERS).map(|_| events(&site, "/events/e/r", "")).collect();
    for one in &watching {
        one.recv_timeout(PATIENCE).unwrap();
    }
    let refused = site.get("/events/e/r");
    assert!(refused.status == 503 && refused.head.contains("retry-after"), "{}", refused.head);
    assert_eq!(site.get("/").status, 200, "the rest is served on");
}

#[test]
fn it_stops_within_two_seconds_whoever_is_connected() {
    let mut site = served();
    live().write(&site.run("e", "r")).unwrap();
    let watching = events(&site, "/events/e/r", "");
    watching.recv_timeout(PATIENCE).unwrap();
    let mut slow = site.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHos").unwrap();
    let idle = site.connect();
    let began = Instant::now();
    drop(site.stop.take());
    site.thread.take().unwrap().join().unwrap().unwrap();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(matches!(watching.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected)));
    drop((slow, idle));
}

#[test]
fn what_cannot_be_compared_is_said_with_its_reason() {
    let site = served();
    site.run("e", "a");
    site.run("e", "b");
    let page = site.get("/compare?run=e%2Fa&run=e%2Fb");
    assert!(page.status == 200 && page.body.contains("&#60;B&#62; cannot be compared"), "{}", page.body);
    for path in ["/compare?run=e/a&run=e/a", "/compare?run=e/a&run=../b", "/compare?run=e/a&run=e/none"] {
        assert!(site.get(path).body.contains("two different runs"), "{path}");
    }
    assert!(site.get("/compare").body.contains("Compare two runs"));
}

/// The default analysis of a site.
#[test]
fn a_folder_without_a_run_has_no_report_and_is_not_compared() {
    let site = served();
    let [one, other] = ["a", "b"].map(|stamp| site.run("e", stamp));
    let analysis = Analysis::of(&[]);
    let why = (analysis.write_report)(&one).unwrap_err();
    assert!(why.contains("experiment.toml, line 4"), "{why}");
    let why = (analysis.compare)(&[("A".into(), one), ("B".into(), other)]).unwrap_err();
    assert!(why.contains("experiment.toml, line 4"), "{why}");
}

#[test]
fn an_address_in_use_a_run_and_a_short_token_are_refused_in_words() {
    let site = served();
    let folder = site.folder.path();
    let again = Server::bind(self::site(folder, &site.address.to_string())).unwrap_err();
    assert!(again.to_string().contains("--listen"), "{again}");
    let run = site.run("e", "r");
    let one = Server::bind(self::site(&run, "127.0.0.1:0")).unwrap_err();
    assert!(one.to_string().contains("is one run"), "{one}");
    let short = Site { token: Some("short".into()), ..self::site(folder, "127.0.0.1:0") };
    assert!(Server::bind(short).unwrap_err().to_string().contains("16 characters"));
    let none = Server::bind(self::site(&folder.join("none"), "127.0.0.1:0")).unwrap_err();
    assert!(none.to_string().contains("folder that holds results"), "{none}");
    let beside = Server::bind(self::site(folder, "127.0.0.1:0")).unwrap();
    let url = beside.run_url(&run).unwrap();
    assert!(url.starts_with("http://127.0.0.1:") && url.contains("/runs/e/r/?token="), "{url}");
    assert_eq!(beside.run_url(Path::new("/etc")), None);
}
