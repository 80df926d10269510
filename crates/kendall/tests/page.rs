//! The page of a report in a real browser: what a reader sees, and what happens when they touch it.

mod browser;
#[path = "../../report/tests/sample/mod.rs"]
mod sample;

use std::fs;

use tempfile::TempDir;

/// A page of a report in a folder of its own, and its address.
fn saved(html: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    fs::write(&path, html).unwrap();
    let url = format!("file://{}", path.display());
    (folder, url)
}

#[test]
fn a_report_opens_without_complaint_or_network_and_fits_every_screen() {
    let Some(browser) = browser::browser() else { return };
    let (_folder, url) = saved(&kendall_report::page(&sample::report()));
    for scheme in ["light", "dark"] {
        for width in [1280, 390] {
            let page = browser.blank();
            page.size(width, 900);
            page.colours(scheme);
            page.navigate(&url);
            assert_eq!(page.complaints(), [""; 0]);
            assert_eq!(page.requests(), [&*url]);
            let overflow = page.number("document.documentElement.scrollWidth - innerWidth");
            assert!(overflow <= 0.0, "{width} pixels: {overflow} too wide");
            let seen = page.screenshot();
            let paper = seen.at(2, 2);
            assert_eq!(paper[0] > 128, scheme == "light", "{paper:?}");
            assert!(seen.count((0.0, 0.0), (f64::from(width), 900.0), paper, 8) < seen.width * seen.height);
        }
    }
}
