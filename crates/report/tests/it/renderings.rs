//! The sample report in all three renderings, read back.

use kendall_analysis::{Finding, Modelling, Published, PublishedRow, Report, findings};
use kendall_experiment::Measure;
use kendall_report::figure::{self, Figure};
use kendall_report::{page, terminal};
use kendall_station::Estimate;

use crate::sample;

/// All drawings of a report: panels and keys of both figures.
fn drawings(report: &Report) -> Vec<String> {
    let of = |figure: Figure| {
        let panels = figure.panels.into_iter().map(|panel| panel.svg);
        panels.chain(figure.legend.into_iter().map(|key| key.svg)).collect::<Vec<_>>()
    };
    let all = figure::all(report).into_iter().flat_map(|named| of(named.figure)).collect();
    [of(figure::response(report)), of(figure::ecdf(report)), all].concat()
}

/// The sample without anything that may be missing.
fn bare() -> Report {
    let mut report = sample::report();
    report.curves.clear();
    for point in &mut report.points {
        point.models.clear();
        point.responses_s.clear();
        point.tail_s.clear();
        point.spread = None;
        (point.service, point.utilisation_offered, point.offered_per_s) = (None, None, None);
        point.measured.response.mean_s.interval = None;
        point.measured.response.quantiles.clear();
    }
    report
}

fn empty() -> Report {
    let mut report = bare();
    report.points.clear();
    report.trials.clear();
    report.factors.clear();
    report
}

/// The sample with numbers that are not finite, and times of zero.
fn broken() -> Report {
    let mut report = sample::report();
    report.points[0].measured.response.mean_s = Estimate::exact(f64::NAN);
    report.points[1].measured.response.mean_s =
        Estimate { value: f64::INFINITY, interval: Some((0.0, f64::INFINITY)) };
    report.points[2].measured.response.mean_s = Estimate::within(0.0, 0.0);
    report.points[2].responses_s = vec![0.0, 0.0, f64::INFINITY];
    report.points[3].x = f64::NAN;
    report.points[3].measured.waiting.mean_s = Estimate::exact(0.0);
    if let Modelling::Answer(answer) = &mut report.points[4].models[0].formula {
        answer.response.mean_s = Estimate::exact(f64::INFINITY);
        answer.response.quantiles[0].value_s = Estimate::exact(f64::NAN);
    }
    report
}

#[test]
fn no_rendering_shows_a_number_that_is_none() {
    let mut odd = sample::categories();
    odd.points[0].measured.response.mean_s = Estimate::exact(f64::NAN);
    odd.points[1].measured.weighted_response_s = Some(Estimate::exact(f64::INFINITY));
    odd.points[2].measured.weighted_response_s = None;
    let categories = sample::categories();
    for report in [sample::report(), sample::grouped(), categories, odd, bare(), empty(), broken()] {
        for svg in drawings(&report) {
            let tree = roxmltree::Document::parse(&svg).expect("a drawing is well-formed XML");
            for attribute in tree.descendants().flat_map(|node| node.attributes()) {
                let words = attribute.value().split([' ', ',', 'M', 'm', 'h', 'v', 'l', 'z']);
                assert!(
                    !words.clone().any(|word| word == "NaN" || word == "inf" || word == "-inf"),
                    "{attribute:?}"
                );
            }
        }
        let page = sample::without_script(&page(&report));
        let texts = [page, terminal::render(&report, 120, terminal::Style::Plain)];
        for text in texts {
            let words = text.split(|character: char| !character.is_alphanumeric());
            assert_eq!(words.filter(|word| matches!(*word, "NaN" | "inf" | "nan")).count(), 0);
        }
    }
}

#[test]
fn the_page_reaches_for_nothing_outside_itself() {
    // Its own script, which has its own test, and data in elements that no browser runs.
    let page = sample::without_script(&page(&sample::report()));
    for reach in ["<script", "<link", "<img", "<iframe", "@import", "url(", "src="] {
        assert!(!page.contains(reach), "{reach}");
    }
    // Links lead to the record beside the page, whatever its trials are called.
    let links: Vec<&str> = page.split("href=\"").skip(1).collect();
    assert!(links.len() >= 2 * sample::report().trials.len());
    assert!(links.iter().all(|link| link.starts_with("trials/0")));
    let urls = page.replace("http-equiv", "").matches("http").count();
    assert_eq!(urls, page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "<script>alert(1)</script>\"'&\x1b[2J";
    let mut report = sample::grouped();
    for text in [&mut report.name, &mut report.question, &mut report.command, &mut report.experiment_toml] {
        hostile.clone_into(text);
    }
    report.machine.push((hostile.to_owned(), hostile.to_owned()));
    hostile.clone_into(&mut report.factors[0].name);
    hostile.clone_into(&mut report.factors[1].unit);
    for point in &mut report.points {
        hostile.clone_into(&mut point.settings[0].0);
        hostile.clone_into(&mut point.settings[1].1);
        hostile.clone_into(&mut point.models[0].notation);
        point.models[1].formula = Modelling::NoAnswer(hostile.to_owned());
    }
    for trial in &mut report.trials {
        hostile.clone_into(&mut trial.id);
        trial.doubts.push(hostile.to_owned());
    }
    let page = page(&report);
    assert!(!page.contains("<script>alert") && !page.contains("alert(1)</script>"));
    let page = sample::without_script(&page);
    assert!(!page.contains("<script"));
    for svg in drawings(&report) {
        roxmltree::Document::parse(&svg).expect("a drawing is well-formed XML");
    }
    assert!(!terminal::render(&report, 80, terminal::Style::Plain).contains('\x1b'));
}

/// Coordinates of the elements of a class, by the names of their attributes.
fn numbers(svg: &str, class: &str, names: [&str; 2]) -> Vec<[f64; 2]> {
    let tree = roxmltree::Document::parse(svg).expect("well-formed");
    let ours = tree.descendants().filter(|node| node.attribute("class") == Some(class));
    let read = |node: roxmltree::Node<'_, '_>| {
        names.map(|name| node.attribute(name).expect("has it").parse().expect("a number"))
    };
    ours.map(read).collect()
}

/// The values and pixels of the labelled ticks up the axis, in the unit of the axis.
fn ticks(svg: &str) -> Vec<(f64, f64)> {
    let tree = roxmltree::Document::parse(svg).expect("well-formed");
    let up = |node: &roxmltree::Node<'_, '_>| {
        node.attribute("class") == Some("tick") && node.attribute("text-anchor") == Some("end")
    };
    let read = |node: roxmltree::Node<'_, '_>| {
        let y: f64 = node.attribute("y").expect("placed").parse().expect("a number");
        (node.text().expect("labelled").parse().expect("a number"), y - 4.0)
    };
    tree.descendants().filter(up).map(read).collect()
}

#[test]
fn interval_bars_stand_where_the_axis_says() {
    let report = sample::report();
    let svg = &figure::response(&report).panels[0].svg;
    let ticks = ticks(svg);
    let ((v0, y0), (v1, y1)) = (ticks[0], ticks[ticks.len() - 1]);
    let pixel = |time_s: f64| y0 + (time_s * 1e3 - v0) / (v1 - v0) * (y1 - y0);
    // Each bar is an upright and two feet.
    let bars: Vec<_> = numbers(svg, "interval", ["y1", "y2"]).into_iter().step_by(3).collect();
    let steady: Vec<_> = report.points.iter().filter(|point| point.is_steady()).collect();
    assert_eq!(bars.len(), steady.len());
    for (point, [top, bottom]) in steady.iter().zip(bars) {
        let (low, high) = point.measured.response.mean_s.interval.expect("three trials");
        assert!((top - pixel(high)).abs() < 0.2 && (bottom - pixel(low)).abs() < 0.2, "{top} {bottom}");
    }
    let discs = numbers(svg, "measured", ["cx", "cy"]);
    for (point, [_, y]) in steady.iter().zip(discs) {
        assert!((y - pixel(point.measured.response.mean_s.value)).abs() < 0.2);
    }
}

#[test]
fn the_line_of_full_use_stands_at_the_capacity() {
    let report = sample::report();
    let svg = &figure::response(&report).panels[0].svg;
    let [[line_x, _]] = numbers(svg, "capacity", ["x1", "x2"])[..] else { panic!("one line") };
    let xs: Vec<f64> = numbers(svg, "measured", ["cx", "cy"]).iter().map(|[x, _]| *x).collect();
    let per_rate = (xs[4] - xs[0]) / (report.points[4].x - report.points[0].x);
    let at = report.points[0].x + (line_x - xs[0]) / per_rate;
    // The capacity of two servers of 9.5 ms is 210.5/s; the mean of 24,000 sampled service times is within 1.5 % of that but with a
    // probability below 1e-3.
    assert!((at / (2.0 / 9.5e-3) - 1.0).abs() < 0.015, "{at}");
}

#[test]
fn every_number_of_a_figure_is_in_its_table() {
    for report in [sample::report(), sample::grouped()] {
        for figure in [figure::response(&report), figure::ecdf(&report)] {
            assert!(figure.table.rows.iter().all(|row| row.len() == figure.table.head.len()));
            assert!(figure.table.rows.len() >= report.points.len());
        }
    }
}

#[test]
fn groups_are_panels_in_the_order_of_their_points() {
    let report = sample::grouped();
    let titles: Vec<_> = figure::response(&report).panels.into_iter().map(|panel| panel.title).collect();
    assert_eq!(titles, ["length 3 kB", "length 30 kB"]);
}

#[test]
fn the_terminal_table_is_aligned_and_fits_the_width() {
    let report = sample::report();
    let mut columns = Vec::new();
    for width in [80, 120] {
        let text = terminal::render(&report, width, terminal::Style::Plain);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        let head = text.lines().find(|line| line.contains("measured")).expect("a head");
        columns.push(head.matches("measured").count());
        let ends = head.chars().count();
        let rows: Vec<_> =
            text.lines().filter(|line| line.contains("M/M/2 ") && !line.contains("- ")).collect();
        assert_eq!(rows.len(), report.points.len());
        assert!(rows.iter().all(|row| row.chars().count() == ends), "{text}");
    }
    assert_eq!(columns, [2, 3], "the narrow table leaves out the median");
    let bold = terminal::render(&report, 80, terminal::Style::Bold);
    let plain = bold.replace("\x1b[1m", "").replace("\x1b[0m", "");
    assert_eq!(plain, terminal::render(&report, 80, terminal::Style::Plain));
}

#[test]
fn json_reads_back_as_written() {
    let report = sample::grouped();
    let back: Report = serde_json::from_str(&report.to_json()).expect("reads back");
    assert!(back == report);
    let found = findings(&report);
    let text = serde_json::to_string(&found).expect("findings are JSON");
    let back: Vec<Finding> = serde_json::from_str(&text).expect("reads back");
    assert_eq!(back, found);
}

/// The score of priority workloads is shown where weights differ, and only there.
#[test]
fn the_weighted_response_is_shown_where_weights_differ() {
    let mut report = sample::report();
    for point in &mut report.points {
        point.measured.weighted_response_s = Some(point.measured.response.mean_s);
    }
    let renderings = |report: &Report| [page(report), terminal::render(report, 160, terminal::Style::Plain)];
    assert!(renderings(&report).iter().all(|text| !text.contains("weighted")));
    report.points[2].measured.weighted_response_s = Some(Estimate::within(7.125, 0.25));
    assert!(renderings(&report).iter().all(|text| text.contains("weighted")));
    assert!(page(&report).contains("7.12 ± 0.25 s"), "to three digits, ties to even");
}

/// It rejects what its servers cannot do, and the others have a mean.
#[test]
fn a_station_of_limited_capacity_is_steady_under_any_load() {
    let mut report = sample::report();
    let renderings = |report: &Report| [page(report), terminal::render(report, 160, terminal::Style::Plain)];
    assert!(renderings(&report).iter().all(|text| !text.contains("lost")));
    let unlimited = figure::response(&report);
    assert!(unlimited.caption.contains("so there is no mean. Rings mark points that were not steady"));
    assert!(unlimited.panels[0].svg.contains("utilisation ≥ 1"));
    for point in &mut report.points {
        point.capacity = Some(50);
    }
    let last = report.points.last_mut().unwrap();
    last.growing = None;
    last.measured.lost = Estimate::within(0.085, 0.004);
    last.measured.utilisation = Estimate::exact(0.9964);
    report.points[0].measured.lost = Estimate::exact(1e-9);
    let limited = figure::response(&report);
    let over = "Beyond the dashed vertical line more work arrives than the servers can do: a full station rejects requests, and the \
                mean is that of the others.";
    assert!(limited.caption.ends_with(over), "{}", limited.caption);
    assert!(limited.panels[0].svg.contains("rate ≥ capacity"));
    let [page, text] = renderings(&report);
    assert!(page.contains("lost requests") && page.contains("8.50 %"));
    assert!(text.contains("lost") && text.contains("8.50 %") && text.contains("0.996"), "{text}");
    assert!(text.contains("< 0.001 %") && page.contains("&#60; 0.001 %"), "{text}");
    // A queue that is still filling has no mean yet, whatever its capacity.
    report.points.last_mut().unwrap().growing = sample::report().points.last().unwrap().growing;
    assert!(figure::response(&report).caption.contains("Rings mark"));
}

/// Levels that are words have no order: each has its own row, under its factor.
#[test]
fn categories_stand_one_below_the_other() {
    let report = sample::categories();
    let figure = figure::response(&report);
    assert_eq!(figure.title, "Mean response time by discipline");
    let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
    assert_eq!(titles, ["case many easy", "case one big"]);
    for panel in &figure.panels {
        let svg = roxmltree::Document::parse(&panel.svg).unwrap();
        let texts: Vec<&str> =
            svg.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect();
        for name in ["fifo", "priority", "gittins"] {
            assert_eq!(texts.iter().filter(|text| **text == name).count(), 1, "{name} in {texts:?}");
        }
        let discs = svg
            .descendants()
            .filter(|node| node.attribute("class").is_some_and(|c| c.starts_with("measured")));
        let heights: Vec<f64> =
            discs.filter_map(|node| node.attribute("cy")).map(|cy| cy.parse().unwrap()).collect();
        assert_eq!(heights.len(), 3);
        assert!(heights.windows(2).all(|pair| (pair[1] - pair[0] - 24.0).abs() < 0.2), "{heights:?}");
    }
    assert!(figure::weighted(&report).is_some() && figure::weighted(&sample::report()).is_none());
    let page = page(&report).replace('\u{a0}', " ");
    assert!(
        page.contains("shortest at case many easy with discipline fifo, 100 ms, and longest at case one big")
    );
}

/// An interval of a few trials may reach below nothing, for which a log axis has no place: it goes on to the axis' end.
#[test]
fn an_interval_that_a_log_axis_cannot_show_whole_is_drawn_to_its_end() {
    let mut report = sample::categories();
    report.points[0].measured.response.mean_s = Estimate::within(1e-3, 2e-3);
    report.points[2].measured.response.mean_s = Estimate::within(1.0, 0.1);
    let figure = figure::response(&report);
    let svg = roxmltree::Document::parse(&figure.panels[0].svg).unwrap();
    let of_class = |class: &'static str| {
        svg.descendants().filter(move |node| node.attribute("class").is_some_and(|own| own == class))
    };
    let left: f64 = of_class("grid").next().unwrap().attribute("x1").unwrap().parse().unwrap();
    let ends = |node: roxmltree::Node<'_, '_>| -> Vec<f64> {
        let points =
            node.attribute("points").or_else(|| node.attribute("d")).unwrap_or_else(|| panic!("{node:?}"));
        points.split(['M', 'L', ' ']).filter_map(|point| point.split(',').next()?.parse().ok()).collect()
    };
    let bars: Vec<Vec<f64>> = of_class("interval").map(ends).collect();
    assert_eq!(bars.len(), 3, "{bars:?}");
    assert!((bars[0][0] - left).abs() < 0.2 && bars[0][1] > left + 10.0, "{bars:?} from {left}");
}

/// The measured figures are 100 ms for fifo, 200 ms for priority and 300 ms for gittins in the first case.
#[test]
fn published_figures_stand_beside_ours_with_their_order() {
    let mut report = sample::categories();
    let row = |way: &str, value| PublishedRow {
        settings: vec![
            ("case".to_owned(), "many easy".to_owned()),
            ("discipline".to_owned(), way.to_owned()),
        ],
        value,
    };
    report.published = vec![Published {
        source: "a report".to_owned(),
        measure: Measure::MeanResponse,
        unit: "ms".to_owned(),
        baseline: vec![("discipline".to_owned(), "fifo".to_owned())],
        rows: vec![row("fifo", 50.0), row("priority", 40.0), row("gittins", 55.0)],
    }];
    for text in [page(&report), terminal::render(&report, 400, terminal::Style::Plain)] {
        for part in [
            "a report: mean response",
            // Ours and its ratio to the published figure.
            "100 ± 5.0",
            "published ÷ fifo",
            // √(5 %² + 2.5 %²) = 5.6 %.
            "2.00 [1.89, 2.11]",
            "Of 3 pairs that differ only in discipline, 2 have the published order here, 1 have another order",
            "A different order at case many easy: published, priority is 0.800 × fifo; here 2.00 [1.89, 2.11] ×.",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
    // A class, and the idle share, of what was measured.
    let point = &report.points[0];
    let idle = point.measured_of(&Measure::Idle).unwrap();
    assert!((idle.value + point.measured.utilisation.value - 1.0).abs() < 1e-12);
    let unknown = Measure::ClassResponse { class: "unknown".to_owned() };
    assert_eq!((point.measured_of(&unknown), point.measured_of(&Measure::TotalTime)), (None, None));
}

#[test]
fn notes_are_paragraphs_of_plain_text() {
    let mut report = sample::report();
    report.notes = "First, a < b.\n\nSecond.\n".to_owned();
    let page = page(&report);
    assert!(page.contains("<p>First, a &#60; b.</p>") && page.contains("<p>Second.</p>"));
}

/// Each way to serve relative to the first under its heading, measured in pairs of trials and simulated.
#[test]
fn ways_to_serve_are_put_in_relation_to_the_first() {
    let mut report = sample::categories();
    for (at, point) in report.points.iter_mut().enumerate() {
        point.models.truncate(1);
        if let Modelling::Answer(answer) = &mut point.models[0].simulation {
            answer.weighted_response_s = Some(Estimate::within([1.0, 0.8, 0.5][at % 3], 0.001));
        }
        point.models[0].formula = Modelling::NoAnswer("none".to_owned());
    }
    // Hard and easy trials, alike for all; priority is worth what is simulated, gittins half of that, and all but it
    // noise in the second case.
    for trial in &mut report.trials {
        let point = trial.point.unwrap();
        let hard = [1.0, 3.0, 9.0][trial.seed as usize - 7];
        let noise = if point == 4 { [0.5, 1.5, 3.0][trial.seed as usize - 7] } else { 1.0 };
        trial.weighted_response_s = Some(hard * noise * [1.0, 0.8, 0.25][point % 3]);
    }
    // The last point was not simulated: more work is offered there than the servers can do.
    assert!(report.points[5].models[0].simulation.answer().is_none());
    for text in [page(&report).replace('\u{a0}', " "), terminal::render(&report, 400, terminal::Style::Plain)]
    {
        for part in [
            "Relative to fifo: weighted response by discipline",
            "0.800 [0.800, 0.800]",
            "Relative to fifo, 1 of 3 measured ratios agree with the simulated ones within 10 % or their interval, 1 do not, and 1 \
             have too wide an interval to decide.",
            "The largest gain over fifo by simulation is 50 %, at case many easy with discipline gittins; the measured gain is 75 %.",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
