//! The what-if view in a real browser, with mouse and keyboard and on a narrow screen, and its commands in a terminal.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::web::{Web, kendall, patiently, results};
use kendall_testbed::browser::{Held, Page, browser};

/// Two loads of a server with service times of 5 ms: 30 % and 50 % of its capacity.
const EXPERIMENT: &str = r#"
name = "loads"
question = "How long do requests wait?"
seed = 5
# Other tests run beside this one.
disturbed-over = "100%"

[system]
name = "hold"
workers = 1
service = "constant"
mean = "5ms"

[load]
rate = [60, 100]
duration = "4s"
warmup = "0s"

[[model]]
station = "M/D/1"
"#;

const SETTLED: &str = "document.getElementById('answer').dataset.detail === 'full' && \
    document.getElementById('answer').getAttribute('aria-busy') === 'false'";

fn measured_run(folder: &Path) -> PathBuf {
    fs::write(folder.join("loads.toml"), EXPERIMENT).unwrap();
    let output = kendall(folder).args(["run", "loads.toml"]).status().unwrap();
    assert!(output.success(), "{output}");
    fs::read_dir(folder.join("results/loads")).unwrap().next().unwrap().unwrap().path()
}

fn settled(page: &Page) {
    patiently(page, SETTLED);
}

/// Waits until the view has left its last answer and has the next one.
fn changed(page: &Page, expression: &str) {
    patiently(page, &format!("{expression} && {SETTLED}"));
}

fn command(page: &Page) -> String {
    page.text("document.getElementById('command').textContent")
}

/// The full answer that the page's address has.
fn answer(page: &Page) -> Value {
    page.eval(
        "fetch('/what-if/answer' + location.search + '&detail=full&curve=1').then((reply) => reply.json())",
    )
}

/// What the command prints as JSON.
fn printed(command: &str, folder: &Path) -> Value {
    let words = command.strip_prefix("kendall ").unwrap_or_else(|| panic!("not a command: {command}"));
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("\"$KENDALL\" {words} --json")])
        .env("KENDALL", env!("CARGO_BIN_EXE_kendall"))
        .current_dir(folder)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{command}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn near(shown: &Value, printed: &Value, what: &str) {
    let [shown, printed] =
        [shown, printed].map(|value| value.as_f64().unwrap_or_else(|| panic!("{what}: {value}")));
    assert!(
        (shown / printed - 1.0).abs() < 1e-9,
        "{what}: the page shows {shown}, the command prints {printed}"
    );
}

/// The estimate at a share, in a list of shares and estimates.
fn at(pairs: &Value, p: f64) -> &Value {
    let pairs = pairs.as_array().unwrap();
    &pairs.iter().find(|pair| pair[0].as_f64() == Some(p)).unwrap_or_else(|| panic!("no {p} in {pairs:?}"))[1]
}

/// The place of a load on the response plot, in pixels of the view.
fn place(page: &Page, share: f64) -> (f64, f64) {
    page.eval("document.getElementById('response').scrollIntoView({ block: 'center' })");
    let of = |expression: &str| {
        page.number(&format!("document.querySelector('#response svg').getBoundingClientRect().{expression}"))
    };
    (of("left") + 62.0 + share * (of("width") - 76.0), of("top") + 120.0)
}

#[test]
fn a_station_is_changed_by_mouse_and_keyboard_and_its_address_is_shared() {
    let Some(browser) = browser() else { return };
    let folder = results();
    let web = Web::start(folder.path(), "127.0.0.1:0");
    let page = browser.open(&web.url);
    page.eval("document.querySelector('a[href=\"/what-if\"]').click()");
    patiently(&page, "location.pathname === '/what-if'");
    settled(&page);
    assert_eq!(command(&page), "kendall solve M/M/3 --arrival-rate 20 --service-time 0.1");
    assert_eq!(page.text("document.getElementById('servers').value"), "3");
    assert!(page.number("document.querySelectorAll('#response path.line').length") >= 3.0);
    assert!(
        page.text("document.querySelector('#distribution svg').getAttribute('aria-label')")
            .contains("99 % at most")
    );
    assert!(page.number("document.querySelectorAll('#distribution path.span').length") > 0.0, "its band");

    // The mouse drags the marker to half of the axis, which ends at 1.1 times the capacity of 30/s.
    page.drag(place(&page, 0.6), place(&page, 0.5), Held::Nothing);
    changed(&page, "Math.abs(Number(document.getElementById('rate').value) - 16.5) < 0.5");
    let rate = page.text("document.getElementById('rate').value");
    assert!(page.text("location.search").contains(&format!("rate={rate}")));
    assert!(command(&page).contains(&format!("--arrival-rate {rate} ")), "{}", command(&page));

    // The keyboard adds a server, and raises the rate to the end, which is too much.
    page.eval("document.querySelector('[data-of=servers]').focus()");
    page.key("ArrowRight");
    changed(&page, "document.getElementById('servers').value === '4'");
    assert!(command(&page).starts_with("kendall solve M/M/4 "));
    page.eval("document.querySelector('[data-of=rate]').focus()");
    page.key("End");
    changed(&page, "!document.getElementById('unstable').hidden");
    assert!(
        page.text("document.getElementById('unstable').textContent").contains("utilisation would be 1.1")
    );
    page.key("Home");
    changed(&page, "document.getElementById('unstable').hidden");

    // Law, discipline, users and link by their controls.
    let choose = |name: &str, value: &str| {
        page.eval(&format!(
            "{{ const one = document.getElementById('{name}'); one.value = '{value}';
                one.dispatchEvent(new Event('input', {{ bubbles: true }})); }}"
        ));
    };
    choose("load", "users");
    choose("law", "LN");
    choose("scv", "2");
    choose("discipline", "processor-sharing");
    choose("delay", "30");
    changed(&page, "document.getElementById('command').textContent.includes('--delay 0.03')");
    let closed =
        "kendall solve M/LN/4/∞/10/PS --think-time 1 --service-time 0.1 --service-scv 2 --delay 0.03";
    assert_eq!(command(&page), closed);

    // Its numbers are those of the command.
    let (shown, said) = (answer(&page), printed(closed, folder.path()));
    near(
        &shown["mean"]["value"],
        &said["formula"]["answer"]["response"]["mean_s"]["value"],
        "mean by formula",
    );
    let p99 = said["simulation"]["answer"]["response"]["quantiles"].as_array().unwrap();
    let p99 = p99.iter().find(|quantile| quantile["p"] == 0.99).unwrap();
    near(&at(&shown["simulated"], 0.99)["value"], &p99["value_s"]["value"], "p99 by simulation");

    // Another browser that opens the address sees the same.
    let other = browser.open(&page.text("location.href"));
    settled(&other);
    assert_eq!(command(&other), closed);
    let numbers = "document.getElementById('numbers').innerText";
    assert_eq!(other.text(numbers), page.text(numbers));

    // An invalid value is named, and the next valid one is answered.
    other.navigate(&format!("{}what-if?rate=20&servers=0", web.url));
    patiently(&other, "!document.getElementById('fault').hidden");
    assert!(
        other
            .text("document.getElementById('fault').textContent")
            .contains("servers: must be a whole number")
    );
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn a_run_is_changed_with_its_measurements_in_view_on_a_narrow_screen_too() {
    let Some(browser) = browser() else { return };
    let folder = results();
    let run = measured_run(folder.path());
    let web = Web::start(folder.path(), "127.0.0.1:0");
    let stamp = run.file_name().unwrap().to_str().unwrap();
    let page = browser.open(&format!("{}runs/loads/{stamp}/", web.url));
    page.eval("document.getElementById('what-if').click()");
    patiently(&page, "location.pathname === '/what-if'");
    settled(&page);
    let measured = "document.querySelectorAll('#response circle.seen').length";
    assert!(page.number(measured) >= 4.0, "the mean and more of both loads");
    let first = command(&page);
    assert!(first.starts_with("kendall predict ") && first.contains(stamp), "{first}");

    // The mouse drags the rate, the keyboard adds a server: the measurements stay.
    page.drag(place(&page, 0.6), place(&page, 0.7), Held::Nothing);
    changed(&page, &format!("document.getElementById('command').textContent !== {first:?}"));
    page.eval("document.querySelector('[data-of=servers]').focus()");
    page.key("ArrowRight");
    changed(&page, "document.getElementById('command').textContent.includes('--with-servers 2')");
    assert!(page.number(measured) >= 4.0);
    assert!(
        page.number("document.querySelectorAll('#response path.span').length") >= 3.0,
        "bands of the curves"
    );

    // Its numbers are those of the command.
    let (shown, said) = (answer(&page), printed(&command(&page), folder.path()));
    let said = &said["distribution"];
    near(&shown["mean"]["value"], &said["mean_s"]["value"], "mean");
    for p in [0.5, 0.99] {
        let (shown, said) = (at(&shown["distribution"], p), at(&said["quantiles"], p));
        near(&shown["value"], &said["value"], "quantile");
        near(&shown["interval"][1], &said["interval"][1], "its upper end");
    }

    // Another law in place of the measured one is a bare station beside the same measurements.
    page.eval(
        "{ const law = document.getElementById('law'); law.value = 'M';
           law.dispatchEvent(new Event('input', { bubbles: true })); }",
    );
    changed(&page, "document.getElementById('command').textContent.startsWith('kendall solve M/M/1')");
    assert!(page.number(measured) >= 4.0);

    // A narrow screen has all of it, below each other, and every control is reached by the keyboard.
    page.size(360, 740);
    page.reload();
    settled(&page);
    let over = page.number("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    assert!(over <= 0.0, "{over} pixels too wide");
    assert!(page.number("document.querySelector('#response svg').getBoundingClientRect().width") <= 360.0);
    page.eval("document.querySelector('nav a').focus()");
    let mut reached = Vec::new();
    for _ in 0..30 {
        page.key("Tab");
        reached.push(page.text("document.activeElement.name || document.activeElement.dataset?.of || document.activeElement.id || ''"));
    }
    for name in ["load", "rate", "law", "servers", "discipline", "delay", "copy", "address"] {
        assert!(reached.iter().any(|id| id == name), "{name}: {reached:?}");
    }
    page.drag(place(&page, 0.3), place(&page, 0.4), Held::Nothing);
    changed(&page, "document.getElementById('unstable').hidden");
    assert_eq!(page.complaints(), Vec::<String>::new());
}
