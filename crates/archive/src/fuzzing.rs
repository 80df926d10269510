//! What must hold for any files of a run's folder.

use kendall_record::{Outcome, RequestRow};
use kendall_testbed::fuzz::{Target, with_file};

use crate::live::{Head, LIVE, Live, LiveState, Process, Sample, Samples};
use crate::series::Series;
use crate::{Manifest, journal, points, read_json, table};

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "archive-journal", seeds: journal_seeds, run: read_journal },
    Target { name: "archive-table", seeds: table_seeds, run: read_table },
    Target { name: "archive-json", seeds: json_seeds, run: read_jsons },
];

/// Rows of a journal are written again as they were read.
fn read_journal(input: &[u8]) {
    let Ok(rows) = with_file("journal", input, journal::read) else { return };
    let bytes = written(&rows);
    assert_eq!(with_file("again", &bytes, journal::read).ok(), Some(rows));
}

fn written(rows: &[RequestRow]) -> Vec<u8> {
    with_file("written", &[], |path| {
        let mut journal = journal::Journal::create(path).expect("the folder is writable");
        rows.iter().for_each(|row| journal.append(row).expect("the file can be written"));
        journal.flush().expect("the file can be written");
        std::fs::read(path).expect("it is there")
    })
}

fn rows() -> Vec<RequestRow> {
    vec![RequestRow::due(1, 5).sent_at(6, 7).ended(Outcome::Answered, 9), RequestRow::due(2, 8)]
}

fn journal_seeds() -> Vec<Vec<u8>> {
    vec![written(&rows()), written(&[])]
}

/// A table of requests, of samples or of another program takes memory in proportion to its length.
fn read_table(input: &[u8]) {
    with_file("table.parquet", input, |path| {
        // Parquet repeats equal values in few bytes.
        let _ = (table::read(path).map(|rows| rows.len()), Series::read(path).is_ok(), points(path).is_ok());
    });
}

fn table_seeds() -> Vec<Vec<u8>> {
    let table = with_file("written", &[], |path| {
        let file = std::fs::File::create(path).expect("the folder is writable");
        table::write(file, &rows()).expect("the file can be written");
        std::fs::read(path).expect("it is there")
    });
    vec![table, include_bytes!("testdata/without-fixed.parquet").to_vec()]
}

/// The state of a run is written again as it was read, and its columns are even. A manifest is an error or data.
fn read_jsons(input: &[u8]) {
    with_file(LIVE, input, |path| {
        let folder = path.parent().expect("it is in a folder");
        let _ = (Head::read(folder).is_ok(), read_json::<Manifest>(path).is_ok());
        if let Ok(live) = Live::read(folder) {
            live.write(folder).expect("the file can be written");
            assert!(Live::read(folder).is_ok());
        }
    });
}

/// The live state of a run with three samples, as its file has it.
pub fn live_seed() -> Vec<u8> {
    let mut samples = Samples::default();
    for at in 0..3 {
        samples.push(Sample { at_s: f64::from(at) * 0.5, p99_s: Some(0.1), ..Sample::default() });
    }
    let live = Live {
        process: Process::here(),
        state: LiveState::Running,
        doing: "a".to_owned(),
        trials_planned: 4,
        trials_done: 1,
        left_s: Some(3.5),
        elapsed_s: 1.25,
        trial: None,
        samples,
        trials: Default::default(),
    };
    serde_json::to_vec(&live).expect("it is plain data")
}

fn json_seeds() -> Vec<Vec<u8>> {
    let manifest = Manifest::here("a", 3);
    vec![live_seed(), serde_json::to_vec(&manifest).expect("it is plain data")]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
