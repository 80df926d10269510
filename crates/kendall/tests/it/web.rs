//! The live page in a real browser, with real runs: watched to their end, stopped, taken up again, and through a server that
//! goes away meanwhile.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use kendall_testbed::browser::{Page, browser};

/// Trials of two seconds, so that there is something to watch; as many as a test asks for.
fn experiment(trials: u32) -> String {
    format!(
        r#"
name = "watched"
question = "How long do small searches take while the page is open?"
repeats = {trials}
seed = 5
# Other tests run beside this one.
disturbed-over = "100%"

[system]
name = "reverse"
workers = 1

[workload]
difficulty = 5000

[load]
rate = 80
duration = "2s"
warmup = "0s"

[[model]]
station = "M/G/1"
"#
    )
}

/// How long anything may take on a busy machine of two cores.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that is ended by its id when a test ends, however it does.
struct Process(Child);

impl Process {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn kendall(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kendall"));
    command
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY");
    command
}

/// Begins a run in a folder; it goes on when this returns.
fn run(folder: &Path, trials: u32) -> Process {
    fs::write(folder.join("watched.toml"), experiment(trials)).unwrap();
    Process(kendall(folder).args(["run", "watched.toml"]).spawn().unwrap())
}

/// The folder of the only run there is, once it speaks of itself.
fn folder_of_run(folder: &Path) -> PathBuf {
    let until = Instant::now() + PATIENCE;
    loop {
        let mut runs = fs::read_dir(folder.join("results/watched")).into_iter().flatten().flatten();
        if let Some(run) = runs.next().filter(|run| run.path().join("live.json").exists()) {
            return run.path();
        }
        assert!(Instant::now() < until, "the run does not begin");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The page of a folder's results.
pub(crate) struct Web {
    process: Process,
    /// With the token.
    entrance: String,
    /// The same without it.
    url: String,
    _stdout: ChildStdout,
}

impl Web {
    pub(crate) fn start(folder: &Path, listen: &str) -> Self {
        let mut command = kendall(folder);
        command.args(["web", "results", "--listen", listen]);
        let mut process = Process(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut stdout = process.0.stdout.take().unwrap();
        let entrance = address(&mut stdout);
        let (url, _) = entrance.split_once("?token=").expect("it has a token");
        Self { process, url: url.to_owned(), entrance, _stdout: stdout }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.url.trim_start_matches("http://").trim_end_matches('/').parse().unwrap()
    }

    fn page_of(&self, run: &Path) -> String {
        format!("{}runs/watched/{}/", self.url, run.file_name().unwrap().to_str().unwrap())
    }
}

/// The address that is printed first.
fn address(stdout: &mut impl Read) -> String {
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    line.trim().strip_prefix("Watch at ").unwrap_or_else(|| panic!("{line:?}")).to_owned()
}

pub(crate) fn results() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("results")).unwrap();
    folder
}

/// Waits until an expression is true, for longer than a page may take for anything: a run takes its time.
fn patiently(page: &Page, expression: &str) {
    let until = Instant::now() + PATIENCE;
    while !page.is_true(expression) {
        assert!(
            Instant::now() < until,
            "still not so: {expression}: {}",
            page.text("document.body.innerText")
        );
        thread::sleep(Duration::from_millis(50));
    }
}

const STATE: &str = "document.getElementById('state')?.textContent";
const POINTS: &str = "Number(document.getElementById('plot-rate').dataset.points ?? 0)";

/// The expression for how many pixels of a plot's canvas have one of its colours, by the name that the style has for it.
fn coloured(plot: &str, name: &str) -> String {
    format!(
        "(() => {{
            const figure = document.getElementById('{plot}'), canvas = figure.querySelector('canvas');
            const probe = document.createElement('canvas').getContext('2d');
            probe.fillStyle = getComputedStyle(figure).getPropertyValue('{name}').trim();
            probe.fillRect(0, 0, 1, 1);
            const colour = probe.getImageData(0, 0, 1, 1).data;
            const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            let count = 0;
            for (let i = 0; i < pixels.length; i += 4)
                if (pixels[i + 3] > 200 && [0, 1, 2].every((c) => Math.abs(pixels[i + c] - colour[c]) < 24)) count++;
            return count;
        }})()"
    )
}

#[test]
fn a_run_is_watched_to_its_end_and_through_what_happens_meanwhile() {
    let Some(browser) = browser() else { return };
    let folder = results();
    let mut running = run(folder.path(), 4);
    let run = folder_of_run(folder.path());
    let web = Web::start(folder.path(), "127.0.0.1:0");
    let listen = web.address().to_string();

    // The list shows it, and leads to it.
    let list = browser.open(&web.url);
    patiently(&list, "document.querySelector('.run.running')");
    assert_eq!(
        list.text("document.querySelector('.run h2 a').getAttribute('href')"),
        web.page_of(&run).replace(web.url.trim_end_matches('/'), "")
    );

    // It moves, and is drawn.
    let page = browser.open(&web.page_of(&run));
    patiently(&page, &format!("{STATE} === 'running' && {POINTS} >= 2"));
    let before = page.number("document.getElementById('progress').value");
    patiently(&page, &format!("document.getElementById('progress').value > {before} && {POINTS} >= 4"));
    for (plot, name) in [("plot-rate", "--ink"), ("plot-response", "--m0"), ("plot-cpu", "--m0")] {
        patiently(&page, &format!("{} > 20", coloured(plot, name)));
    }
    patiently(&page, "document.getElementById('p99').textContent.endsWith('s')");
    patiently(&page, "/^\\d+:\\d\\d$/.test(document.getElementById('left').textContent)");

    // A page that is loaded again shows the earlier state.
    let points = page.number(POINTS);
    page.reload();
    patiently(&page, &format!("{POINTS} >= {points}"));
    assert_eq!(page.complaints(), Vec::<String>::new());

    // The server goes away, and another comes in its place.
    drop(web);
    page.wait("!document.getElementById('lost').hidden");
    let web = Web::start(folder.path(), &listen);
    patiently(&page, "document.getElementById('lost').hidden");
    let points = page.number(POINTS);
    patiently(&page, &format!("{POINTS} > {points} || {STATE} === 'done'"));

    // To its end, with a report.
    patiently(&page, &format!("{STATE} === 'done' && document.getElementById('stop').hidden"));
    assert!(running.ended().success());
    patiently(&page, "document.getElementById('doing').textContent === '4 trials'");
    assert_eq!(page.number("document.querySelectorAll('#trials tr').length"), 4.0);
    let shown = page.number(POINTS);
    assert!(shown >= 8.0, "{shown}");
    let live: Value = serde_json::from_slice(&fs::read(run.join("live.json")).unwrap()).unwrap();
    assert_eq!(
        shown,
        live["samples"]["at_s"].as_array().unwrap().len() as f64,
        "no sample was lost with the connection"
    );
    let requests = page.requests();
    page.navigate(&format!("{}report.html", web.page_of(&run)));
    assert!(
        page.text("document.body.innerText")
            .contains("How long do small searches take while the page is open?")
    );
    let report = page.requests();
    assert!(requests.iter().chain(&report).all(|url| url.starts_with(&web.url)), "{requests:?} {report:?}");

    // In the list there is a picture of it now.
    patiently(&list, "document.querySelector('.run.done img')");
    patiently(&list, "document.querySelector('.run.done img').naturalWidth > 100");
    for width in [1280, 390] {
        for page_of in [web.url.clone(), web.page_of(&run), format!("{}compare", web.url)] {
            list.size(width, 900);
            list.navigate(&page_of);
            let over =
                list.number("document.documentElement.scrollWidth - document.documentElement.clientWidth");
            assert!(over <= 0.0, "{page_of} is {over} pixels too wide at {width}");
        }
    }
    // That it could not reach the server while there was none is as it should be.
    let other = |complaint: &String| !complaint.contains("net::ERR_");
    list.navigate(&format!(
        "{}compare?run=watched/{stamp}&run=watched/none",
        web.url,
        stamp = run.file_name().unwrap().to_str().unwrap()
    ));
    assert!(list.text("document.querySelector('.doubts').innerText").contains("two different runs"));
    assert_eq!(list.complaints().into_iter().filter(other).collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_run_is_stopped_and_taken_up_again_by_its_buttons() {
    let Some(browser) = browser() else { return };
    let folder = results();
    let mut running = run(folder.path(), 4);
    let run = folder_of_run(folder.path());
    let mut web = Web::start(folder.path(), "127.0.0.1:0");
    let page = browser.open(&web.entrance);
    assert_eq!(page.text("location.search"), "", "the token does not stay in the address");
    page.navigate(&web.page_of(&run));
    patiently(&page, "document.querySelectorAll('#trials tr').length >= 1");
    page.eval("document.querySelector('#stop button').click()");
    patiently(&page, &format!("{STATE} === 'interrupted' && !document.getElementById('resume').hidden"));
    assert_eq!(running.ended().code(), Some(130));
    page.eval("document.getElementById('resume').click()");
    patiently(&page, "document.body.innerText.includes('run --resume')");
    page.eval("document.querySelector('form button').click()");
    patiently(&page, &format!("{STATE} === 'running'"));
    patiently(&page, &format!("{STATE} === 'done'"));
    let manifest: Value = serde_json::from_slice(&fs::read(run.join("manifest.json")).unwrap()).unwrap();
    assert!(manifest["ended_utc"].is_string(), "{manifest}");
    patiently(&page, "document.getElementById('doing').textContent === '4 trials'");
    assert_eq!(page.complaints(), Vec::<String>::new());

    // A browser that stays connected does not keep it from stopping.
    web.process.signal(Signal::TERM);
    assert!(web.process.ended().success());
}

/// What a report from another person may try.
const HOSTILE: &str = r#"<!doctype html><title>A report</title><p id="said">starting</p><script>
(async () => {
  const tries = {
    read: async () => (await fetch("/")).text(),
    reread: () => new Promise((come, fail) => {
      const asked = new XMLHttpRequest();
      asked.onload = () => come(asked.responseText);
      asked.onerror = fail;
      asked.open("GET", "/runs/");
      asked.send();
    }),
    post: async () => {
      await fetch(location.pathname.replace("/runs/", "/stop/").replace("/report.html", ""), { method: "POST", mode: "no-cors" });
      return "sent";
    },
    form: async () => {
      const form = document.createElement("form");
      form.method = "post";
      form.action = location.pathname.replace("/runs/", "/stop/").replace("/report.html", "");
      document.body.append(form);
      form.submit();
      await new Promise((wake) => setTimeout(wake, 300));
      throw "nothing happened";
    },
    open: async () => { const other = window.open("/"); if (!other) throw "none"; return other.document.title; },
    opener: async () => window.opener.document.title,
    above: async () => { if (window.top === window) throw "none"; return window.top.document.title; },
    frame: async () => {
      const frame = document.createElement("iframe");
      frame.src = "/";
      document.body.append(frame);
      await new Promise((wake) => setTimeout(wake, 300));
      return frame.contentDocument.title.length > 0 ? "read" : Promise.reject("empty");
    },
    worker: () => navigator.serviceWorker.register("report.html").then(() => "registered"),
    cookie: async () => document.cookie || Promise.reject("none"),
    storage: async () => localStorage.length,
    token: async () => /token=/.test(document.referrer + location.href) ? "seen" : Promise.reject("none"),
    image: () => new Promise((come, fail) => {
      const image = new Image();
      image.onload = () => come("loaded");
      image.onerror = fail;
      image.src = "/favicon.ico";
    }),
  };
  const done = [];
  for (const [name, attempt] of Object.entries(tries)) {
    try { await attempt(); done.push(name); } catch {}
  }
  document.getElementById("said").textContent = "did: " + done.join(" ");
})();
</script>"#;

#[test]
fn a_report_from_another_person_reaches_nothing() {
    let Some(browser) = browser() else { return };
    let folder = results();
    let mut running = run(folder.path(), 30);
    let run = folder_of_run(folder.path());
    let web = Web::start(folder.path(), "127.0.0.1:0");
    let page = browser.open(&web.entrance);
    page.navigate(&web.page_of(&run));
    patiently(&page, "document.querySelectorAll('#trials tr').length >= 1");
    // Newer than every trial, so that it is shown as it is.
    let report = run.join("report.html");
    fs::write(&report, HOSTILE).unwrap();
    let later = std::time::SystemTime::now() + Duration::from_secs(3600);
    fs::File::open(&report).unwrap().set_modified(later).unwrap();
    page.eval("document.getElementById('report').click()");
    patiently(&page, "document.getElementById('said')?.textContent.startsWith('did:')");
    assert_eq!(page.text("document.getElementById('said').textContent"), "did: ");
    assert_eq!(page.text("String(self.origin)"), "null");
    assert!(running.0.try_wait().unwrap().is_none(), "it was not stopped");
    running.signal(Signal::INT);
    assert_eq!(running.ended().code(), Some(130));
}

/// The data of events as they come.
fn events(address: SocketAddr, run: &Path) -> mpsc::Receiver<Value> {
    let mut stream = TcpStream::connect(address).unwrap();
    let path = format!("/events/watched/{}", run.file_name().unwrap().to_str().unwrap());
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let (say, hear) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        let data = lines.filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok());
        data.map_while(|event| say.send(event).ok()).for_each(drop);
    });
    hear
}

#[test]
fn ten_who_watch_see_the_same_and_the_page_beside_a_run_stays() {
    let folder = results();
    fs::write(folder.path().join("watched.toml"), experiment(2)).unwrap();
    let mut command = kendall(folder.path());
    command.args(["run", "watched.toml", "--web"]).stderr(Stdio::piped());
    let mut running = Process(command.spawn().unwrap());
    let stderr = BufReader::new(running.0.stderr.take().unwrap());
    // Read to its end, so that the run never waits for a reader.
    let (say, said) = mpsc::channel();
    thread::spawn(move || {
        stderr.lines().map_while(Result::ok).map_while(|line| say.send(line).ok()).for_each(drop)
    });
    let url = loop {
        let line = said.recv_timeout(PATIENCE).expect("it says where to watch");
        if let Some(url) = line.strip_prefix("Watch at ") {
            break url.to_owned();
        }
    };
    let (address, _) = url.trim_start_matches("http://").split_once('/').unwrap();
    let address: SocketAddr = address.parse().unwrap();
    let run = folder_of_run(folder.path());
    let path = format!("/runs/watched/{}/?token=", run.file_name().unwrap().to_str().unwrap());
    assert!(url.contains(&path), "{url}");

    let all: Vec<_> = (0..10).map(|_| events(address, &run)).collect();
    let seen: Vec<usize> = all
        .iter()
        .map(|one| {
            let mut samples = 0;
            loop {
                let event = one.recv_timeout(PATIENCE).expect("events go on to the end");
                let fresh = &event["live"]["samples"];
                // Each gets all, each once.
                assert_eq!(fresh["first"].as_u64(), Some(samples as u64));
                samples += fresh["at_s"].as_array().unwrap().len();
                if event["state"] == "done" {
                    return samples;
                }
            }
        })
        .collect();
    assert!(seen[0] >= 3 && seen.iter().all(|&samples| samples == seen[0]), "{seen:?}");

    // The page stays after the end, until Ctrl-C.
    loop {
        let line = said.recv_timeout(PATIENCE).expect("it says that the page stays");
        if line.contains("The page stays") {
            break;
        }
    }
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("watched/"), "{page}");
    running.signal(Signal::INT);
    assert!(running.ended().success());
    assert!(TcpStream::connect(address).is_err(), "the page ended with the run");
}
