//! The what-if view in a real browser, with mouse and keyboard and on a narrow screen.

use kendall_testbed::browser::{Held, Page, browser};

use super::super::{Served, served};
use super::record;

/// Waits until an expression is true and the full answer is shown.
fn settled(page: &Page, expression: &str) {
    page.wait(&format!(
        "document.getElementById('answer')?.dataset.detail === 'full' && \
         document.getElementById('answer').getAttribute('aria-busy') === 'false' && {expression}"
    ));
}

fn command(page: &Page) -> String {
    page.text("document.getElementById('command').textContent")
}

fn open(site: &Served, page: &Page, path: &str) {
    page.navigate(&format!("http://{}{path}", site.address));
}

/// Sets the value of a control, as its user does.
fn choose(page: &Page, name: &str, value: &str) {
    page.eval(&format!(
        "{{ const one = document.getElementById('{name}'); one.value = '{value}';
            one.dispatchEvent(new Event('input', {{ bubbles: true }})); }}"
    ));
}

/// Notes how long previews take, from the request until they are drawn.
fn watch(page: &Page) {
    page.eval(
        "{ const answer = document.getElementById('answer'); window.took = [];
           new MutationObserver(() => took.push(Number(answer.dataset.previewMs)))
               .observe(answer, { attributes: true, attributeFilter: ['data-preview-ms'] }); }",
    );
}

/// A place on the response plot at a share of its axis, in pixels of the view.
fn place(page: &Page, share: f64) -> (f64, f64) {
    page.eval("document.getElementById('response').scrollIntoView({ block: 'center' })");
    let of = |side: &str| {
        page.number(&format!("document.querySelector('#response svg').getBoundingClientRect().{side}"))
    };
    // The margins of a plot have 62 and 14 pixels.
    (of("left") + 62.0 + share * (of("width") - 76.0), of("top") + 120.0)
}

#[test]
fn a_station_is_changed_by_mouse_and_keyboard_and_its_address_is_shared() {
    let Some(browser) = browser() else { return };
    let site = served();
    let page = browser.blank();
    open(&site, &page, "/");
    page.eval("document.querySelector('a[href=\"/what-if\"]').click()");
    settled(&page, "location.pathname === '/what-if'");
    assert_eq!(command(&page), "kendall solve M/M/3 --arrival-rate 20 --service-time 0.1");
    assert_eq!(page.text("document.getElementById('servers').value"), "3");
    assert!(page.number("document.querySelectorAll('#response path.line').length") >= 3.0);
    let label = page.text("document.querySelector('#distribution svg').getAttribute('aria-label')");
    assert!(label.contains("99 % at most"), "{label}");
    assert!(page.number("document.querySelectorAll('#distribution path.span').length") > 0.0, "its band");

    watch(&page);

    // The mouse drags the marker to half of the axis, which ends at 1.1 times the capacity of 30/s.
    page.drag(place(&page, 0.6), place(&page, 0.5), Held::Nothing);
    settled(&page, "Math.abs(Number(document.getElementById('rate').value) - 16.5) < 0.5");
    let rate = page.text("document.getElementById('rate').value");
    assert!(page.text("location.search").contains(&format!("rate={rate}")));
    assert!(command(&page).contains(&format!("--arrival-rate {rate} ")), "{}", command(&page));

    // The keyboard adds a server, and raises the rate to the end, which is too much.
    page.eval("document.querySelector('[data-of=servers]').focus()");
    page.key("ArrowRight");
    settled(&page, "document.getElementById('servers').value === '4'");
    assert!(command(&page).starts_with("kendall solve M/M/4 "), "{}", command(&page));
    page.eval("document.querySelector('[data-of=rate]').focus()");
    page.key("End");
    settled(&page, "!document.getElementById('unstable').hidden");
    let why = page.text("document.getElementById('unstable').textContent");
    assert!(why.contains("no steady state") && why.contains("utilisation would be 1.1"), "{why}");
    page.key("Home");
    settled(&page, "document.getElementById('unstable').hidden");

    // Users, law, discipline and link by their controls.
    for (name, value) in
        [("load", "users"), ("law", "LN"), ("scv", "2"), ("discipline", "processor-sharing"), ("delay", "30")]
    {
        choose(&page, name, value);
    }
    settled(&page, "document.getElementById('command').textContent.includes('--delay 0.03')");
    let closed =
        "kendall solve M/LN/4/∞/10/PS --think-time 1 --service-time 0.1 --service-scv 2 --delay 0.03";
    assert_eq!(command(&page), closed);

    println!("previews of a station took {} ms", page.text("took.join(', ')"));

    // Another browser that opens the address sees the same.
    let other = browser.open(&page.text("location.href"));
    settled(&other, "true");
    assert_eq!(command(&other), closed);
    let numbers = "document.getElementById('numbers').innerText";
    assert_eq!(other.text(numbers), page.text(numbers));
    assert_eq!(page.complaints(), Vec::<String>::new());

    // An invalid value is named, and the next valid one is answered.
    open(&site, &other, "/what-if?rate=20&servers=0");
    other.wait("!document.getElementById('fault').hidden");
    let why = other.text("document.getElementById('fault').textContent");
    assert!(why.contains("servers: must be a whole number"), "{why}");
    choose(&other, "servers", "5");
    settled(&other, "document.getElementById('fault').hidden");
    assert!(command(&other).starts_with("kendall solve M/M/5 "), "{}", command(&other));
}

#[test]
fn a_run_is_changed_with_its_measurements_in_view_on_a_narrow_screen_too() {
    let Some(browser) = browser() else { return };
    let site = served();
    record(site.folder.path());
    let page = browser.blank();
    open(&site, &page, "/runs/load/one/");
    page.eval("document.getElementById('what-if').click()");
    settled(&page, "location.pathname === '/what-if'");
    let measured = "document.querySelectorAll('#response circle.seen').length";
    assert_eq!(page.number(measured), 2.0, "mean and p99");
    let first = command(&page);
    assert!(first.starts_with("kendall predict ") && first.contains("/load/one --rate "), "{first}");

    watch(&page);

    // The mouse drags the rate, the keyboard adds a server: the measurements stay.
    page.drag(place(&page, 0.6), place(&page, 0.4), Held::Nothing);
    settled(&page, &format!("document.getElementById('command').textContent !== {first:?}"));
    page.eval("document.querySelector('[data-of=servers]').focus()");
    page.key("ArrowRight");
    settled(&page, "document.getElementById('command').textContent.includes('--with-servers 2')");
    assert_eq!(page.number(measured), 2.0);
    assert!(page.number("document.querySelectorAll('#response path.span').length") >= 3.0, "bands of curves");

    println!("previews of a run took {} ms", page.text("took.join(', ')"));

    // Another law in place of the measured one is a bare station beside the same measurements.
    choose(&page, "law", "D");
    settled(&page, "document.getElementById('command').textContent.startsWith('kendall solve M/D/1')");
    assert_eq!(page.number(measured), 2.0);

    // A narrow screen has all of it, and the keyboard reaches every control.
    page.size(360, 740);
    page.reload();
    settled(&page, "true");
    let over = page.number("document.documentElement.scrollWidth - document.documentElement.clientWidth");
    assert!(over <= 0.0, "{over} pixels too wide");
    assert!(page.number("document.querySelector('#response svg').getBoundingClientRect().width") <= 360.0);
    page.eval("document.querySelector('nav a').focus()");
    let mut reached = Vec::new();
    for _ in 0..30 {
        page.key("Tab");
        let focused = "document.activeElement";
        reached.push(page.text(&format!("{focused}.name || {focused}.dataset?.of || {focused}.id || ''")));
    }
    for name in ["load", "rate", "law", "service", "servers", "discipline", "delay", "copy", "address"] {
        assert!(reached.iter().any(|id| id == name), "{name}: {reached:?}");
    }
    let before = command(&page);
    page.drag(place(&page, 0.3), place(&page, 0.2), Held::Nothing);
    settled(&page, &format!("document.getElementById('command').textContent !== {before:?}"));
    assert_eq!(page.complaints(), Vec::<String>::new());
}
