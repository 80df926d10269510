//! The drawings of traffic: each is well-formed, has its numbers, and is absent where there is nothing to draw.

use kendall_analysis::traffic::{
    Cloud, FlowGoodput, FlowRun, FlowsReport, Goodput, HopQueue, Matrix, TrialTraffic,
};
use kendall_report::figure::Named;
use kendall_report::figure::traffic::{Along, clouds, goodput, matrix, queues};
use kendall_report::{flows_figures, flows_page, page, page_figures, paper};
use proptest::prelude::*;

use crate::sample;

fn rates(flows: &[(&str, f64)]) -> Goodput {
    let flow =
        |(kind, rate): &(&str, f64)| FlowGoodput { kind: (*kind).to_owned(), bytes_per_s: vec![*rate; 20] };
    Goodput {
        edges_s: (0..=20).map(|at| f64::from(at) * 0.1).collect(),
        flows: flows.iter().map(flow).collect(),
    }
}

fn queue(way: &str, hop: usize, wait_s: f64) -> HopQueue {
    // A gap, and an interval that stands alone.
    let mean = |at: usize| (![5, 6, 8].contains(&at)).then_some(wait_s);
    HopQueue {
        way: way.to_owned(),
        hop,
        at_s: (0..20).map(|at| 0.05 + 0.1 * f64::from(at)).collect(),
        mean_s: (0..20).map(mean).collect(),
        max_s: (0..20).map(|at| Some(2.0 * mean(at)?)).collect(),
    }
}

fn cloud(kind: &str, delay_s: f64) -> Cloud {
    let point = |at: i32| (delay_s + 1e-3 * f64::from(at % 3), 1e6 + 1e5 * f64::from(at % 4));
    Cloud { kind: kind.to_owned(), points: (0..12).map(point).collect() }
}

fn tournament() -> FlowsReport {
    let run = |name: &str, first: f64| FlowRun {
        name: name.to_owned(),
        result: None,
        measured_from_s: 0.5,
        goodput: rates(&[("tcp", first), ("curve", 4e5 - first)]),
        queues: vec![queue("down", 1, 0.02), queue("up", 1, 0.0)],
    };
    FlowsReport {
        title: "Every two of tcp and <curve>".into(),
        started_utc: String::new(),
        command: "kendall transport compete tcp,curve".into(),
        settings: vec![("link".into(), "delay=1ms".into())],
        answers: vec!["An answer & more.".into()],
        runs: vec![run("tcp beside curve", 3e5), run("tcp beside tcp", 2e5)],
        matrix: Some(Matrix {
            kinds: vec!["tcp".into(), "curve".into()],
            share: vec![vec![Some(0.5), Some(0.75)], vec![Some(0.25), None]],
            jain: vec![vec![Some(1.0), Some(0.8)], vec![Some(0.8), None]],
        }),
        clouds: vec![cloud("tcp", 0.02), cloud("curve", 0.01)],
        missing: vec!["There is no ellipse of quic.".into()],
        failures: vec![],
    }
}

fn along<T: ?Sized>(data: &T) -> Along<'_, T> {
    Along { title: String::new(), measured_from_s: 0.0, data }
}

/// The texts of a drawing, which is well-formed, has a title and no number without an end.
fn texts(svg: &str) -> Vec<String> {
    let tree = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    let root = tree.root_element();
    assert!(root.children().any(|node| node.has_tag_name("title")), "a screen reader has nothing to say");
    let text = tree.descendants().filter(|node| node.has_tag_name("text"));
    text.map(|node| node.text().unwrap_or_default().to_owned()).collect()
}

#[test]
fn all_four_are_on_the_page_with_axes_units_and_keys() {
    let found = tournament();
    let figures = flows_figures(&found);
    let names: Vec<&str> = figures.iter().map(|named| named.name).collect();
    assert_eq!(names, ["competition", "goodput", "delay-goodput", "queue-delay"]);
    for Named { name, figure, .. } in &figures {
        assert!(
            !figure.legend.is_empty() && !figure.caption.is_empty() && !figure.table.rows.is_empty(),
            "{name}"
        );
        figure.panels.iter().for_each(|panel| drop(texts(&panel.svg)));
        texts(&paper(figure));
    }
    let words = |at: usize| texts(&figures[at].figure.panels[0].svg).join("|");
    assert!(words(0).contains("75 %") && words(0).contains("Jain 0.8"), "{}", words(0));
    assert!(words(1).contains("goodput [Mbit/s]") && words(1).contains("time [s]"), "{}", words(1));
    assert!(words(2).contains("goodput [Mbit/s]") && words(2).contains("mean wait in the queues [ms]"));
    assert!(words(3).contains("queue delay [ms]"), "{}", words(3));
    assert!(figures[2].figure.caption.contains("SIGCOMM 2013"));
    let html = flows_page(&found);
    assert!(html.contains("An answer &#38; more.") || html.contains("An answer &amp; more."));
    assert!(!html.contains("<curve>") && html.contains("There is no ellipse of quic."));
    assert_eq!(html.matches("class=\"plot\"").count(), 2 + 1 + 2, "two runs twice, and one cloud");
}

#[test]
fn a_stack_stands_on_what_is_below_it() {
    let data = rates(&[("tcp", 3e5), ("tcp", 1e5), ("curve", 5e4)]);
    let figure = goodput("Goodput", "goodput", "", &[along(&data)]).unwrap();
    // 0.45 MB/s are 3.6 Mbit/s, so the axis ends between 3.6 and 4.
    let labels = texts(&figure.panels[0].svg);
    assert!(
        labels.iter().any(|text| text.starts_with('3')) && !labels.contains(&"4.0".to_owned()),
        "{labels:?}"
    );
    let keys: Vec<&str> = figure.legend.iter().map(|key| key.label.as_str()).collect();
    assert_eq!(keys, ["tcp", "curve"]);
    assert_eq!(figure.table.rows[0][3..], ["1 tcp", "2.40"]);
}

#[test]
fn where_there_is_nothing_there_is_no_figure() {
    assert!(goodput("", "", "", &[along(&rates(&[("tcp", 0.0)]))]).is_none());
    assert!(goodput("", "", "", &[along(&Goodput::default())]).is_none());
    assert!(queues(&[along(&[][..])]).is_none());
    assert!(clouds("goodput", "one flow", &[(String::new(), vec![])]).is_none());
    let two = Cloud { kind: "tcp".into(), points: vec![(0.0, 1.0); 2] };
    assert!(clouds("goodput", "one flow", &[(String::new(), vec![two])]).is_none());
    assert!(matrix(&Matrix { kinds: vec![], share: vec![], jain: vec![] }).is_none());
    let nothing = FlowsReport { runs: vec![], matrix: None, clouds: vec![], ..tournament() };
    assert!(flows_figures(&nothing).is_empty() && flows_page(&nothing).contains("Not shown"));
}

#[test]
fn a_queue_that_nothing_waits_in_and_a_link_of_two_hops_are_drawn() {
    let idle = [queue("down", 1, 0.0)];
    let figure = queues(&[along(&idle[..])]).unwrap();
    assert!(texts(&figure.panels[0].svg).iter().any(|text| text.contains("queue delay")));
    let two = [queue("down", 1, 0.001), queue("down", 2, 0.03), queue("up", 2, 0.002)];
    let figure = queues(&[along(&two[..])]).unwrap();
    let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
    assert_eq!(titles, ["hop 1", "hop 2"]);
    // The second hop of the way to the server is the first of the way back.
    let rows = &figure.table.rows;
    assert!(rows.iter().any(|row| row[0] == "hop 1" && row[1] == "to the server"), "{rows:?}");
    assert!(rows.iter().all(|row| row[0] == "hop 1" || row[1] == "to the client"), "{rows:?}");
}

#[test]
fn the_page_of_a_run_has_its_link_along_time() {
    let mut report = sample::report();
    assert!(!page(&report).contains("The link along time"));
    let trial = |line: &kendall_analysis::TrialLine| TrialTraffic {
        trial: line.id.clone(),
        rates: rates(&[("connection 1", 1e6), ("connection 2", 5e5)]),
        queues: vec![queue("down", 1, 0.01)],
        cloud: cloud("", 0.01),
    };
    report.traffic.trials = report.trials.iter().take(1).map(trial).collect();
    report.traffic.missing.push("There is no plot of the link in trial 7.".into());
    let html = page(&report);
    for words in [
        "The link along time",
        "Throughput of the link",
        "Queue delay along time",
        "in trial 7",
        "Delay against goodput",
    ] {
        assert!(html.contains(words), "{words}");
    }
    let names: Vec<&str> = page_figures(&report).iter().map(|named| named.name).collect();
    assert!(
        ["link-rate", "queue-delay", "delay-goodput"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
}

proptest! {
    /// Whatever points a cloud has, its drawing is sound.
    #[test]
    fn any_cloud_is_well_formed(points in prop::collection::vec((0f64..10.0, 0f64..1e9), 3..20), is_level: bool) {
        let points = points.into_iter().map(|(x, y)| if is_level { (0.0, y) } else { (x, y) }).collect();
        let figure = clouds("goodput", "one flow", &[(String::new(), vec![Cloud { kind: "tcp".into(), points }])]).unwrap();
        texts(&figure.panels[0].svg);
    }
}
