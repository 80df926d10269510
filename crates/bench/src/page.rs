//! How soon a report of a million requests is there, and how soon its page answers a reader, in Chromium.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

#[path = "../../report/tests/it/page/made.rs"]
mod made;

use kendall_testbed::browser::{self, Page};

const REQUESTS: u64 = 1_000_000;
/// Marks of each plot on a page that thins nothing.
const MARKS: u32 = 100_000;

const EXPERIMENT: &str = r#"
name = "million"
repeats = 1
disturbed-over = "100%"

[system]
name = "hold"
service = "exponential"
mean = "10us"
workers = 2

[load]
arrivals = "closed"
users = 64
requests = 1000000
"#;

pub(crate) fn section(page: &mut String) {
    page.push_str("\n## The page of a report\n\n");
    let folder = tempfile::tempdir().expect("a folder");
    let run = record(folder.path());
    let (took_s, resident_mb) = report(&run);
    let report = run.join("report.html");
    let bytes = fs::metadata(&report).map_or(0, |file| file.len());
    let _ = writeln!(
        page,
        "`kendall report` of one trial of {REQUESTS} requests, one run: {took_s:.2} s, {resident_mb:.0} MB (at most 5 s and 500 MB); \
         its page has {:.2} MB.",
        bytes as f64 / 1e6
    );
    let Some(browser) = browser::browser() else {
        page.push_str("No Chromium here, so the page was not opened.\n");
        return;
    };
    let _ = writeln!(
        page,
        "\nIn a headless Chromium, ms; at most 1000 to open and 100 to answer. The slowest plot counts.\n\n\
         | page | plots | opened | value under the cursor | zoom |\n| --- | --- | --- | --- | --- |"
    );
    let made = folder.path().join("made.html");
    fs::write(&made, raw()).expect("it can be written");
    for (name, file) in [
        (format!("{REQUESTS} requests, thinned as a report does"), report),
        (format!("{MARKS} requests in each plot, every one drawn"), made),
    ] {
        let opened = browser.open(&format!("file://{}", file.display()));
        let opened_ms = opened.number("performance.getEntriesByType('navigation')[0].loadEventEnd");
        let (plots, hover, zoom) = answers(&opened);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let _ = writeln!(page, "| {name} | {plots} | {opened_ms:.0} | {:.0} | {:.0} |", ms(hover), ms(zoom));
    }
}

/// Runs the experiment; its folder.
fn record(folder: &Path) -> PathBuf {
    let file = folder.join("million.toml");
    fs::write(&file, EXPERIMENT).expect("it can be written");
    let results = folder.join("results");
    let status = kendall()
        .arg("run")
        .arg(&file)
        .arg("--results")
        .arg(&results)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.expect("kendall starts").success(), "the run ends well");
    let run = fs::read_dir(results.join("million")).expect("it left a folder").next();
    run.expect("of one run").expect("which is read").path()
}

/// How long `kendall report` takes, and the most memory it has.
fn report(run: &Path) -> (f64, f64) {
    let start = Instant::now();
    let mut child = kendall()
        .arg("report")
        .arg(run)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("kendall starts");
    let (mut most_kb, status) = (0.0, PathBuf::from(format!("/proc/{}/status", child.id())));
    while child.try_wait().expect("it is our child").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kb: Option<f64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most_kb = f64::max(most_kb, kb.unwrap_or(0.0));
        thread::sleep(Duration::from_millis(5));
    }
    (start.elapsed().as_secs_f64(), most_kb / 1e3)
}

fn kendall() -> Command {
    Command::new(crate::common::kendall())
}

/// How many plots a page shows, and the longest that one of them took to say what is under the cursor, and to zoom.
fn answers(page: &Page) -> (usize, Duration, Duration) {
    page.eval("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    page.eval("window.panels = [...document.querySelectorAll('.panel')].filter((one) => one.checkVisibility() && one.querySelector('script.plot'))");
    let plots = page.number("panels.length") as usize;
    let (mut hover, mut zoom) = (Duration::ZERO, Duration::ZERO);
    for plot in 0..plots {
        page.eval(&format!("panels[{plot}].scrollIntoView({{ block: 'center' }})"));
        page.wait(&format!("panels[{plot}].querySelector('canvas')"));
        frame(page);
        let place = page.eval(&format!(
            "{{ const {{ left, top, right, bottom }} = panels[{plot}].querySelector('.u-over').getBoundingClientRect();
                [left, top, right, bottom]; }}"
        ));
        let [left, top, right, bottom] = [0, 1, 2, 3].map(|edge| place[edge].as_f64().expect("a number"));
        let at = |share: f64| (left + share * (right - left), f64::midpoint(top, bottom));
        page.point(at(0.4));
        hover = hover.max(painted(page, &|| page.point(at(0.5))));
        page.eval(&format!("panels[{plot}].querySelector('.plot-live').focus({{ preventScroll: true }})"));
        zoom = zoom.max(painted(page, &|| page.key("+")));
    }
    (plots, hover, zoom)
}

/// How long it takes until what is done is seen.
fn painted(page: &Page, action: &dyn Fn()) -> Duration {
    let start = Instant::now();
    action();
    frame(page);
    start.elapsed()
}

fn frame(page: &Page) {
    page.eval("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))");
}

/// A page with a scatter, a line and a Gantt chart, each of as many requests.
fn raw() -> String {
    let due = || (0..MARKS).map(|index| f64::from(index) * 10.0 / f64::from(MARKS));
    let heights =
        || (0..MARKS).map(|index: u32| f64::from(index.wrapping_mul(2_654_435_761)) / f64::from(u32::MAX));
    let points = json!({"shape": "dot", "x": made::numbers(due()), "y": made::numbers(heights())});
    let line = json!({"x": made::numbers(due()), "y": made::numbers(heights())});
    let spans = json!({"lane": made::short_numbers((0..MARKS).map(|lane| lane as f32)), "from": made::numbers(due()),
                       "to": made::numbers(due().map(|due| due + 0.01))});
    let mut gantt = made::plot("spans", &[made::layer("served", "shade3", "spans", spans)]);
    gantt["y"] = made::axis((0.0, f64::from(MARKS)));
    made::page(&made::figure(&[
        made::plot("scatter", &[made::layer("requests", "replayed", "points", points)]),
        made::plot("line", &[made::layer("times", "formula model0", "line", line)]),
        gantt,
    ]))
}
