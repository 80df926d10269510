//! Takes the pictures of a report that documentation shows and that a reviewer reads: its first screen, each figure in the light on a
//! wide screen and in the dark on a narrow one, and two trials beside each other.
//!
//! `cargo run --package kendall-report --example picture -- REPORT.html FOLDER`; `tools/picture` calls it. Needs Chromium (Debian package: chromium).

use std::fs;
use std::path::{Path, PathBuf};

use kendall_testbed::browser::{self, Browser, Page};

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(report), Some(folder)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: picture REPORT.html FOLDER");
        std::process::exit(2);
    };
    let Some(browser) = browser::browser() else { std::process::exit(1) };
    let report = fs::canonicalize(&report).unwrap_or_else(|error| panic!("{}: {error}", report.display()));
    fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for (width, scheme) in [(1280, "light"), (390, "dark")] {
        let page = open(&browser, &report, width, scheme);
        let save = |name: &str, png: Vec<u8>| {
            let path = folder.join(format!("{name}-{width}-{scheme}.png"));
            fs::write(&path, png).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            println!("{}", path.display());
        };
        page.size(width, 860);
        save("first-screen", page.png());
        for number in 0..page.number("document.querySelectorAll('figure.chart').length") as usize {
            if let Some(name) = show(&page, number, width) {
                save(&name, page.png_of("[data-picture]"));
            }
        }
        // On a narrow screen one stands below the other, each as its figures are already.
        if width > 800 && show_beside(&page, width) {
            save("two-trials", page.png_of(".trial-views"));
        }
    }
}

fn open(browser: &Browser, report: &Path, width: u32, scheme: &str) -> Page {
    let page = browser.blank();
    page.size(width, 860);
    page.colours(scheme);
    page.navigate(&format!("file://{}", report.display()));
    page
}

/// Brings a figure into view, all of it; its name, by what it shows. None for one that is not on the screen.
fn show(page: &Page, number: usize, width: u32) -> Option<String> {
    let found = page.eval(&format!(
        "{{ const figure = document.querySelectorAll('figure.chart')[{number}];
            document.querySelectorAll('[data-picture]').forEach((one) => one.removeAttribute('data-picture'));
            figure.setAttribute('data-picture', '');
            ({{ name: figure.querySelector('h2').textContent, height: figure.offsetHeight }}) }}"
    ));
    let height = found["height"].as_f64().filter(|height| *height > 0.0)?;
    page.size(width, height as u32 + 400);
    page.eval("document.querySelector('[data-picture]').scrollIntoView()");
    wait_for_plots(page, "[data-picture]");
    let name = found["name"].as_str()?.to_lowercase();
    let words: Vec<&str> =
        name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    // The first words of a title say what it is; the others, of which run.
    Some(words[..words.len().min(6)].join("-"))
}

/// Two trials beside each other, where there are two.
fn show_beside(page: &Page, width: u32) -> bool {
    if page.eval("document.querySelector('.trial-picks') !== null") != true {
        return false;
    }
    page.eval(
        "{ const [, beside] = document.querySelectorAll('.trial-picks select');
           beside.value = [...beside.options].find((option) => option.value && !option.disabled).value;
           beside.dispatchEvent(new Event('change')); }",
    );
    page.size(width, 12_000);
    page.eval("document.querySelector('.trial-views').scrollIntoView()");
    wait_for_plots(page, ".trial-views .trial-b");
    true
}

/// Until every plot within is drawn.
fn wait_for_plots(page: &Page, within: &str) {
    page.wait(&format!(
        "[...document.querySelectorAll('{within} .panel')].every((panel) => !panel.querySelector('script.plot') || \
         panel.querySelector('canvas'))"
    ));
    page.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
}
