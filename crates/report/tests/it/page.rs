//! The page of a report in a real browser: what a reader sees, and what happens when they touch it.

mod made;
mod whole;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use kendall_testbed::browser::{Held, Page, Pixels, browser};
use kendall_testbed::{TempDir, tempdir};
use serde_json::{Value, json};

use made::{axis, figure, layer, numbers, plot, short_numbers};

type Point = (f64, f64);
type Colour = [u8; 3];

// Of figure.css, in light colours.
const INK: Colour = [0x1a, 0x1a, 0x1a];
const SOFT: Colour = [0x59, 0x59, 0x59];
const BLUE: Colour = [0x0b, 0x62, 0xa8];
const BROWN: Colour = [0xb3, 0x47, 0x00];
const GREEN: Colour = [0x00, 0x79, 0x5a];
const BLUE_IN_THE_DARK: Colour = [0x74, 0xb6, 0xee];

/// A page in its own folder, and its address.
fn saved(html: &str) -> (TempDir, String) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("report.html");
    fs::write(&path, html).unwrap();
    let url = format!("file://{}", path.display());
    (folder, url)
}

/// A plot of an open page, by its number.
struct Shown<'p> {
    page: &'p Page,
    number: usize,
}

impl<'p> Shown<'p> {
    /// Scrolls to the plot and waits until it is drawn.
    fn of(page: &'p Page, number: usize) -> Self {
        page.eval(&format!(
            "document.querySelectorAll('.panel')[{number}].scrollIntoView({{block: 'center'}})"
        ));
        page.wait(&format!("document.querySelectorAll('.panel')[{number}].querySelector('canvas')"));
        // What is drawn is seen with the next frame.
        page.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
        Self { page, number }
    }

    fn eval(&self, expression: &str) -> Value {
        let number = self.number;
        self.page.eval(&format!("((panel) => {expression})(document.querySelectorAll('.panel')[{number}])"))
    }

    /// Left, top, right and bottom of the plotting area, in pixels of the view.
    fn area(&self) -> [f64; 4] {
        let area = self.eval(
            "{ const { left, top, right, bottom } = panel.querySelector('.u-over').getBoundingClientRect();
               return [left, top, right, bottom]; }",
        );
        [0, 1, 2, 3].map(|edge| area[edge].as_f64().unwrap())
    }

    /// The pixel at shares of the plotting area, from its left and from its foot.
    fn at(&self, right: f64, up: f64) -> Point {
        let [x0, y0, x1, y1] = self.area();
        (x0 + right * (x1 - x0), y1 - up * (y1 - y0))
    }

    /// How many pixels of a colour the plotting area has.
    fn count(&self, colour: Colour) -> usize {
        let [left, top, right, bottom] = self.area();
        // Its edges are axes.
        self.page.screenshot().count((left + 2.0, top + 2.0), (right - 2.0, bottom - 2.0), colour, 10)
    }

    /// What stands beside the cursor; empty where nothing does.
    fn readout(&self) -> String {
        let text = self.eval(
            "{ const readout = panel.querySelector('.plot-readout');
               return readout.hidden ? '' : [...readout.children].map((line) => line.textContent).join('; '); }",
        );
        text.as_str().unwrap().to_owned()
    }

    /// The number with which what stands beside the cursor begins.
    fn x_read(&self) -> f64 {
        let readout = self.readout();
        readout.split(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("no number first: {readout}"))
    }

    /// What the x axis shows at its ends, as the cursor reads it.
    fn ends(&self) -> (f64, f64) {
        let read = |share: f64| {
            self.page.point(self.at(share, 0.5));
            self.x_read()
        };
        (read(0.001), read(0.999))
    }

    fn is_zoomed(&self) -> bool {
        self.eval("panel.classList.contains('zoomed')") == true
    }
}

/// A line of the given number of points over x from 0 to 10 at 0.5, in blue.
fn level_line(points: u32) -> Value {
    let x = || (0..=points).map(|place| f64::from(place) * 10.0 / f64::from(points));
    layer("level", "formula model0", "line", json!({"x": numbers(x()), "y": numbers(x().map(|_| 0.5))}))
}

#[test]
fn every_mark_is_drawn_in_its_colour() {
    let Some(browser) = browser() else { return };
    let x = || numbers([2.0, 4.0, 6.0, 8.0]);
    let y = || numbers([0.2, 0.7, 0.4, 0.6]);
    let marks = [
        ("line", "formula model0", BLUE, json!({"x": x(), "y": y()})),
        ("step", "formula model1", BROWN, json!({"x": x(), "y": y()})),
        ("points", "simulation model2", GREEN, json!({"shape": "square", "x": x(), "y": y()})),
        ("points", "measured", INK, json!({"shape": "disc", "x": x(), "y": y()})),
        ("intervals", "interval", INK, json!({"x": x(), "low": y(), "high": numbers([0.5, 0.9, 0.6, 0.8])})),
        ("band", "shade4", [0x2f, 0x66, 0x99], json!({"x": x(), "low": numbers([0.1; 4]), "high": y()})),
        (
            "bars",
            "bars",
            [0xc9, 0xc8, 0xc2],
            json!({"from": x(), "to": numbers([4.0, 6.0, 8.0, 10.0]), "y": y()}),
        ),
        (
            "heat",
            "heat",
            [0x12, 0x3f, 0x69],
            json!({"x_edges": numbers([0.0, 5.0, 10.0]), "y_edges": numbers([0.0, 0.5, 1.0]),
                   "counts": short_numbers([1.0, 0.0, 0.0, 100.0])}),
        ),
        (
            "spans",
            "shade3",
            [0x5a, 0x8d, 0xbc],
            json!({"lane": numbers([0.0; 4]), "from": x(), "to": numbers([3.0, 5.0, 7.0, 9.0])}),
        ),
        ("rule", "capacity", SOFT, json!({"axis": "x", "at": 5.0, "note": ""})),
        ("area", "overload", [0xf1, 0xef, 0xe8], json!({"from": 5.0, "to": 20.0, "note": "over"})),
    ];
    let plots: Vec<Value> = marks
        .iter()
        .map(|(mark, class, _, rest)| plot(mark, &[layer("it", class, mark, rest.clone())]))
        .collect();
    let (_folder, url) = saved(&made::page(&figure(&plots)));
    let page = browser.open(&url);
    let shown = |number: usize, colour: Colour| Shown::of(&page, number).count(colour);
    for (number, (mark, class, colour, _)) in marks.iter().enumerate() {
        let pixels = shown(number, *colour);
        assert!(pixels >= 40, "{mark}, {class}: {pixels} pixels");
    }
    page.eval("document.querySelector('.legend button').click()");
    assert_eq!(page.text("document.querySelector('.legend button').ariaPressed"), "false");
    for (number, (mark, class, colour, _)) in marks.iter().enumerate() {
        assert_eq!(shown(number, *colour), 0, "{mark}, {class}, put away");
    }
    page.eval("document.querySelector('.legend button').click()");
    assert!(shown(0, BLUE) >= 40);
    page.colours("dark");
    page.eval("new Promise((done) => setTimeout(done, 100))");
    assert!(shown(0, BLUE_IN_THE_DARK) >= 40 && shown(0, BLUE) == 0, "drawn anew in the dark");
    assert_eq!(page.complaints(), [""; 0]);
}

#[test]
fn the_cursor_reads_the_numbers_of_the_data() {
    let Some(browser) = browser() else { return };
    let times = json!({"title": "response time", "quantity": "time", "law": "log", "range": [1e-4, 1.0]});
    let tail = json!({"title": "share", "quantity": "share", "law": "tail", "range": [0.0, 0.9999]});
    let quantiles = [(0.5, 1e-3), (0.9, 1e-2), (0.99, 0.1), (0.999, 0.5)];
    let curve = layer(
        "response",
        "ecdf",
        "line",
        json!({"x": numbers(quantiles.map(|(share, _)| share)), "y": numbers(quantiles.map(|(_, time_s)| time_s))}),
    );
    let measured = [
        layer(
            "measured",
            "interval",
            "intervals",
            json!({"x": numbers([3.0]), "low": numbers([0.25]), "high": numbers([0.75])}),
        ),
        layer(
            "measured",
            "measured",
            "points",
            json!({"shape": "disc", "x": numbers([3.0]), "y": numbers([0.5])}),
        ),
        layer("other", "formula model0", "line", json!({"x": numbers([0.0, 4.0]), "y": numbers([0.1, 0.9])})),
    ];
    let heat = layer(
        "requests",
        "heat",
        "heat",
        json!({"x_edges": numbers([0.0, 5.0, 10.0]), "y_edges": numbers([0.0, 0.5, 1.0]),
               "counts": short_numbers([1.0, 0.0, 0.0, 137.0])}),
    );
    let spans = layer(
        "served",
        "shade3",
        "spans",
        json!({"lane": numbers([0.0]), "from": numbers([2.0]), "to": numbers([6.0])}),
    );
    let plots = [
        json!({"title": "quantiles", "x": tail, "y": times, "layers": [curve], "size": [500, 300]}),
        plot("measured", &measured),
        plot("heat", &[heat]),
        plot("spans", &[spans]),
    ];
    let (_folder, url) = saved(&made::page(&figure(&plots)));
    let page = browser.open(&url);
    let read = |number: usize, right: f64, up: f64| {
        let plot = Shown::of(&page, number);
        page.point(plot.at(right, up));
        plot.readout()
    };
    // On a tail axis from p0 to p99.99, p99 is half of the way.
    assert_eq!(read(0, 0.5, 0.75), "p99; response 100 ms");
    assert_eq!(read(0, 0.25, 0.5), "p90; response 10.0 ms");
    // The nearest of each layer; what stands elsewhere says where.
    assert_eq!(read(1, 0.3, 0.5), "3 u; measured 0.500 u [0.250 u, 0.750 u]; other 0.900 u at 4 u");
    assert_eq!(read(2, 0.75, 0.75), "requests 137 between 0.500 u and 1 u, 5 u to 10 u");
    assert_eq!(read(2, 0.25, 0.75), "", "an empty cell says nothing");
    assert_eq!(read(3, 0.4, 0.5), "served 4 u, from 2 u on");
    assert_eq!(page.complaints(), [""; 0]);
}

#[test]
fn drags_wheels_and_fingers_zoom_and_pan() {
    let Some(browser) = browser() else { return };
    let (_folder, url) = saved(&made::page(&figure(&[plot("line", &[level_line(1000)])])));
    let page = browser.open(&url);
    let plot = Shown::of(&page, 0);
    let near = |(low, high): (f64, f64), (expected_low, expected_high): (f64, f64), what: &str| {
        // Two pixels of some 350.
        let room = 0.01 * (expected_high - expected_low) + 0.02;
        assert!(
            (low - expected_low).abs() < room && (high - expected_high).abs() < room,
            "{what}: {low} to {high}"
        );
    };
    let whole = (0.0, 10.0);
    near(plot.ends(), whole, "at first");
    assert!(!plot.is_zoomed());

    page.drag(plot.at(0.2, 0.5), plot.at(0.6, 0.5), Held::Nothing);
    near(plot.ends(), (2.0, 6.0), "dragged");
    assert!(plot.is_zoomed());
    page.drag(plot.at(0.5, 0.5), plot.at(0.25, 0.5), Held::Shift);
    near(plot.ends(), (3.0, 7.0), "panned");
    page.double_click(plot.at(0.5, 0.5));
    near(plot.ends(), whole, "all again");
    assert!(!plot.is_zoomed());

    page.drag(plot.at(0.1, 0.2), plot.at(0.5, 0.8), Held::Nothing);
    near(plot.ends(), (1.0, 5.0), "dragged both ways");
    page.eval("document.querySelector('.plot-reset').click()");
    near(plot.ends(), whole, "all again by its button");

    let scrolled = page.number("scrollY");
    page.wheel(plot.at(0.5, 0.5), -200.0, Held::Control);
    let (low, high) = plot.ends();
    assert!(low > 1.0 && high < 9.0 && (low + high - 10.0).abs() < 0.2, "about the pointer: {low} to {high}");
    page.wheel(plot.at(0.5, 0.5), 200.0, Held::Control);
    near(plot.ends(), whole, "as far out as there is anything");
    assert_eq!(page.number("scrollY"), scrolled);

    let (left, right) = (plot.at(0.4, 0.5), plot.at(0.6, 0.5));
    page.pinch([left, right], [plot.at(0.2, 0.5), plot.at(0.8, 0.5)]);
    let (low, high) = plot.ends();
    near((low, high), (10.0 / 3.0, 20.0 / 3.0), "fingers three times as far apart");
    assert_eq!(page.complaints(), [""; 0]);
}

#[test]
fn panels_over_one_axis_share_cursor_and_zoom() {
    let Some(browser) = browser() else { return };
    let one = plot("one", &[level_line(1000)]);
    let mut apart = plot("apart", &[level_line(1000)]);
    apart["x"]["title"] = json!("something else");
    let (_folder, url) = saved(&made::page(&figure(&[one.clone(), one, apart])));
    let page = browser.open(&url);
    let [first, second, third] = [0, 1, 2].map(|number| Shown::of(&page, number));
    page.drag(first.at(0.2, 0.5), first.at(0.6, 0.5), Held::Nothing);
    page.point(first.at(0.5, 0.5));
    assert!((second.x_read() - 4.0).abs() < 0.1, "{}", second.readout());
    assert_eq!(third.readout(), "");
    assert_eq!([first.is_zoomed(), second.is_zoomed(), third.is_zoomed()], [true, true, false]);
}

#[test]
fn a_plot_can_be_used_by_keys_alone() {
    let Some(browser) = browser() else { return };
    let points = layer(
        "points",
        "measured",
        "points",
        json!({"shape": "disc", "x": numbers([7.0, 1.0, 4.0]), "y": numbers([0.7, 0.1, 0.4])}),
    );
    let (_folder, url) = saved(&made::page(&figure(&[plot("keys", &[points, level_line(10)])])));
    let page = browser.open(&url);
    let plot = Shown::of(&page, 0);
    for _ in 0..5 {
        page.key("Tab");
        if page.eval("document.activeElement.classList.contains('plot-live')") == true {
            break;
        }
    }
    let outline = page.text("getComputedStyle(document.activeElement).outlineStyle");
    assert_eq!(
        outline,
        "solid",
        "the focus is seen, and is on {}",
        page.text("document.activeElement.className")
    );
    let said = || page.text("document.querySelector('.plot-said').textContent");
    let after = |key: &str| {
        page.key(key);
        said()
    };
    assert_eq!(after("ArrowRight"), "points, 1 u, 0.100 u");
    assert_eq!(after("ArrowRight"), "points, 4 u, 0.400 u");
    assert_eq!(after("End"), "points, 7 u, 0.700 u");
    assert_eq!(after("ArrowLeft"), "points, 4 u, 0.400 u");
    assert_eq!(after("ArrowDown"), "level, 4 u, 0.500 u");
    assert_eq!(plot.readout(), "4 u; level 0.500 u");
    page.key("+");
    assert!(plot.is_zoomed());
    assert_eq!(after("End"), "level, 10 u, 0.500 u", "what is out of view comes into it");
    page.key("0");
    assert!(!plot.is_zoomed());
    page.key("Escape");
    assert_eq!(page.eval("document.activeElement === document.body"), true);
    assert_eq!((said(), plot.readout()), (String::new(), String::new()));
    assert_eq!(page.complaints(), [""; 0]);
}

#[test]
fn a_plot_is_saved_as_drawing_picture_and_table() {
    let Some(browser) = browser() else { return };
    let odd = [0.1, 1.0 / 3.0, 1e-300, 123_456_789.125];
    let line = layer(
        "a \"b\", c",
        "formula model0",
        "line",
        json!({"x": numbers([1.0, 2.0, 3.0, 4.0]), "y": numbers(odd)}),
    );
    let (_folder, url) = saved(&made::page(&figure(&[plot("Save me", &[line])])));
    let page = browser.open(&url);
    Shown::of(&page, 0);
    let folder = tempdir().unwrap();
    browser.download_to(folder.path());
    let save = |kind: &str| {
        page.eval(&format!("[...document.querySelectorAll('.plot-tools button')].find((b) => b.textContent === '{kind}').click()"));
        read_when_whole(&folder.path().join(format!("save-me.{}", kind.to_lowercase())))
    };
    let svg = String::from_utf8(save("SVG")).unwrap();
    let tree = roxmltree::Document::parse(&svg).unwrap();
    let shade = tree.descendants().find(|node| node.attribute("class") == Some("shade4")).unwrap();
    assert!(shade.attribute("style").unwrap().contains("fill:rgb(47, 102, 153)"), "{svg}");

    let png = Pixels::decode(&save("PNG"));
    assert_eq!((png.width, png.height), (840, 520));
    assert_eq!(png.at(40, 40), [0x2f, 0x66, 0x99]);

    let csv = save("CSV");
    let mut reader = csv::Reader::from_reader(csv.as_slice());
    assert_eq!(reader.headers().unwrap(), vec!["layer", "mark", "x: value [u]", "y: value [u]"]);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let read: Vec<f64> = rows.iter().map(|row| row[3].parse().unwrap()).collect();
    assert_eq!(read, odd, "to the last digit");
    assert!(rows.iter().all(|row| &row[0] == "a \"b\", c"));
    assert_eq!(page.complaints(), [""; 0]);
}

/// A file once the browser has written all of it.
fn read_when_whole(path: &Path) -> Vec<u8> {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match fs::read(path) {
            Ok(bytes) if !bytes.is_empty() => return bytes,
            _ => assert!(Instant::now() < until, "no {}", path.display()),
        }
        thread::sleep(Duration::from_millis(20));
    }
}
