//! Records of flows whose result is known.

use std::fs;
use std::path::Path;

use kendall_analysis::traffic::flows::read;
use kendall_analysis::traffic::{Cloud, FlowsReport};
use kendall_archive::series::{Layout, SeriesWriter};
use kendall_archive::write_json;
use kendall_flows::{
    ABOUT, About, ClientRecord, FlowAbout, LinkDirection, SEEN, TOURNAMENT, Tick, Tournament,
};
use tempfile::{TempDir, tempdir};

const MS: i64 = 1_000_000;
/// The clock at which the link's log begins, and the flows.
const LOG_NS: i64 = 5_000_000_000;
const FROM_NS: i64 = LOG_NS + 1_000 * MS;
/// The first server's port; the others follow.
const PORT: u16 = 5201;

/// A run of two seconds in which each kind gets this many bytes every 100 ms, and each of its packets waits this long.
fn record(folder: &Path, flows: &[(&str, u64, f64)]) {
    fs::create_dir_all(folder.join("link")).unwrap();
    let about = About {
        started_utc: "2026-11-23T12:00:00Z".into(),
        command: "kendall transport flows tcp,curve".into(),
        link: "delay=10ms rate=10mbit queue=64k".into(),
        congestion: "cubic".into(),
        seed: 1,
        echo: "tcp".into(),
        warm_up_s: 0.5,
        flows: (PORT..)
            .zip(flows)
            .map(|(port, (kind, ..))| FlowAbout {
                source: (*kind).into(),
                port,
                after_s: 0.0,
                cpu_is_known: true,
                way: LinkDirection::Down,
            })
            .collect(),
    };
    write_json(&folder.join(ABOUT), &about).unwrap();
    let tick = |at: i64| Tick {
        at_ns: FROM_NS + at * 100 * MS,
        processor_s: at as f64 * 0.01,
        bytes: flows.iter().map(|(_, bytes, _)| bytes * at.max(0) as u64).collect(),
    };
    let seen =
        ClientRecord { ticks: (-5..=20).map(tick).collect(), from_ns: FROM_NS, ..ClientRecord::default() };
    write_json(&folder.join(SEEN), &seen).unwrap();
    fs::write(folder.join("link/link.json"), format!("{{\"start_ns\": {LOG_NS}}}")).unwrap();
    let layout = Layout::new("rows").label("direction").label("hop").label("flow");
    let layout = ["delivered_packets", "delivered_bytes", "queue_delay_mean_s", "queue_delay_max_s"]
        .into_iter()
        .fold(layout, |layout, name| layout.quantity(name, name));
    let mut log = SeriesWriter::create(&folder.join("link/link.parquet"), layout).unwrap();
    for row in (100..300).filter(|row| !(195..225).contains(row)) {
        for (port, (_, bytes, wait_s)) in (PORT..).zip(flows).filter(|(_, flow)| flow.1 > 0) {
            let flow = format!("tcp 10.0.0.2:{port} > 10.0.0.1:40{port}");
            let values = [10.0, *bytes as f64 / 10.0, *wait_s, 2.0 * wait_s].map(Some);
            log.append(row * 10 * MS, &["down", "1", &flow], &values).unwrap();
        }
    }
    log.finish(0).unwrap();
}

fn single(flows: &[(&str, u64, f64)]) -> (TempDir, FlowsReport) {
    let folder = tempdir().unwrap();
    record(folder.path(), flows);
    let found = read(folder.path()).unwrap().expect("it is a record of flows");
    (folder, found)
}

#[test]
fn three_to_one_is_a_share_of_three_quarters_and_an_index_of_four_fifths() {
    let (_folder, found) = single(&[("tcp", 30_000, 0.02), ("curve", 10_000, 0.01)]);
    let run = &found.runs[0];
    let result = run.result.as_ref().unwrap();
    assert!((result.flows[0].share - 0.75).abs() < 1e-12 && (result.flows[1].share - 0.25).abs() < 1e-12);
    assert!((result.jain - 0.8).abs() < 1e-12);
    assert!((run.measured_from_s - 0.5).abs() < 1e-9);
    // 20 intervals of 0.1 s from the beginning of the flows on.
    assert_eq!(run.goodput.edges_s.len(), 21);
    assert!(run.goodput.edges_s[0].abs() < 1e-9 && (run.goodput.edges_s[20] - 2.0).abs() < 1e-9);
    for (flow, rate) in run.goodput.flows.iter().zip([300_000.0, 100_000.0]) {
        assert!(flow.bytes_per_s.iter().all(|got| (got - rate).abs() < 1e-3), "{flow:?}");
    }
    assert!(found.missing.iter().any(|why| why.contains("no matrix of competition")), "{:?}", found.missing);
    assert!(
        found.answers[0].contains("3.20 Mbit/s") && found.answers[0].contains("is 0.800"),
        "{:?}",
        found.answers
    );
}

#[test]
fn the_queue_has_its_wait_and_its_gap() {
    let (_folder, found) = single(&[("tcp", 30_000, 0.02), ("curve", 10_000, 0.01)]);
    let [queue] = &found.runs[0].queues[..] else { panic!("one way of one hop has packets") };
    assert_eq!((queue.way.as_str(), queue.hop, queue.at_s.len()), ("down", 1, 20));
    for (at, (mean_s, max_s)) in queue.mean_s.iter().zip(&queue.max_s).enumerate() {
        // No packet left between the first second of the flows and a fifth of a second later.
        let expected = (!(10..12).contains(&at)).then_some((0.015, 0.04));
        let is_as_expected = match (mean_s, max_s, expected) {
            (Some(mean_s), Some(max_s), Some((mean, max))) => {
                (mean_s - mean).abs() < 1e-12 && (max_s - max).abs() < 1e-12
            }
            (None, None, None) => true,
            _ => false,
        };
        assert!(is_as_expected, "{at}: {mean_s:?} {max_s:?}");
    }
}

#[test]
fn clouds_are_of_the_measured_span_without_what_left_no_queue() {
    let (_folder, found) = single(&[("tcp", 30_000, 0.02), ("tcp", 10_000, 0.04), ("quic", 5_000, 0.01)]);
    let [tcp, quic] = &found.clouds[..] else { panic!("two kinds: {:?}", found.clouds) };
    // 1.5 s in intervals of 0.15 s, of which the gap empties two, and two flows of TCP.
    assert_eq!((tcp.points.len(), quic.points.len()), (16, 8));
    let mean = quic.ellipse().unwrap().mean;
    assert!((mean.0 - 0.01).abs() < 1e-9 && (mean.1 - 50_000.0).abs() < 1.0, "{mean:?}");
    // Each flow has its own port on the link, so its own delay.
    let mean = tcp.ellipse().unwrap().mean;
    assert!((mean.0 - 0.03).abs() < 1e-9 && (mean.1 - 200_000.0).abs() < 1.0, "{mean:?}");
}

#[test]
fn an_ellipse_is_that_of_its_points() {
    // Two uncorrelated, and a line that falls.
    let points = vec![(1.0, 10.0), (3.0, 10.0), (2.0, 8.0), (2.0, 12.0)];
    let ellipse = Cloud { kind: String::new(), points }.ellipse().unwrap();
    assert_eq!(ellipse.mean, (2.0, 10.0));
    assert!((ellipse.deviation.0 - 0.5f64.sqrt()).abs() < 1e-12);
    assert!((ellipse.deviation.1 - 2f64.sqrt()).abs() < 1e-12 && ellipse.correlation.abs() < 1e-12);
    let falling = Cloud { kind: String::new(), points: vec![(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)] };
    assert!((falling.ellipse().unwrap().correlation + 1.0).abs() < 1e-12);
    // What does not vary is correlated with nothing.
    let level = Cloud { kind: String::new(), points: vec![(1.0, 3.0); 5] };
    assert_eq!(level.ellipse().unwrap().correlation, 0.0);
    assert_eq!(Cloud { kind: String::new(), points: vec![(1.0, 3.0); 2] }.ellipse(), None);
}

#[test]
fn a_flow_without_bytes_is_said_to_be_so() {
    let (_folder, found) = single(&[("curve", 0, 0.0)]);
    assert!(!found.runs[0].goodput.has_any() && found.runs[0].queues.is_empty());
    for why in ["no byte arrived", "no packet after the flows began", "no ellipse of curve"] {
        assert!(found.missing.iter().any(|sentence| sentence.contains(why)), "{why}: {:?}", found.missing);
    }
    // One that gets something is a result on its own.
    let (_folder, found) = single(&[("curve", 1_000, 0.0)]);
    assert!(
        found.runs[0].goodput.has_any() && found.answers[0].contains("80,000")
            || found.answers[0].contains("0.08")
    );
}

#[test]
fn a_tournament_is_a_matrix_and_names_what_it_lacks() {
    let folder = tempdir().unwrap();
    let pairs = ["001-tcp-tcp", "002-tcp-curve", "003-curve-curve"].map(str::to_owned).to_vec();
    record(&folder.path().join(&pairs[0]), &[("tcp", 10_000, 0.01), ("tcp", 10_000, 0.01)]);
    record(&folder.path().join(&pairs[1]), &[("tcp", 30_000, 0.02), ("curve", 10_000, 0.01)]);
    let record = Tournament { kinds: vec!["tcp".into(), "curve".into()], pairs, ..Tournament::default() };
    write_json(&folder.path().join(TOURNAMENT), &record).unwrap();
    let found = read(folder.path()).unwrap().unwrap();
    let matrix = found.matrix.as_ref().unwrap();
    assert_eq!(matrix.share, [[Some(0.5), Some(0.75)], [Some(0.25), None]]);
    assert_eq!(matrix.jain, [[Some(1.0), Some(0.8)], [Some(0.8), None]]);
    assert!(
        found.missing.iter().any(|why| why.contains("003-curve-curve is left out")),
        "{:?}",
        found.missing
    );
    assert!(found.answers[0].contains("tcp and curve: 75 %"), "{:?}", found.answers);
    assert_eq!(found.runs.len(), 2);
}

#[test]
fn records_that_are_damaged_are_refused_and_other_folders_are_none() {
    let folder = tempdir().unwrap();
    assert_eq!(read(folder.path()).unwrap(), None);
    record(folder.path(), &[("tcp", 10_000, 0.01)]);
    // The bytes of another number of flows.
    let seen = ClientRecord {
        ticks: (0..30)
            .map(|at| Tick { at_ns: FROM_NS + at * 100 * MS, processor_s: 0.0, bytes: vec![] })
            .collect(),
        from_ns: FROM_NS,
        ..ClientRecord::default()
    };
    write_json(&folder.path().join(SEEN), &seen).unwrap();
    let found = read(folder.path()).unwrap().unwrap();
    assert!(found.runs[0].result.is_none() && found.missing[0].contains("near.json"), "{:?}", found.missing);
    fs::write(folder.path().join(SEEN), "{").unwrap();
    assert!(read(folder.path()).unwrap_err().to_string().contains("near.json"));
}
