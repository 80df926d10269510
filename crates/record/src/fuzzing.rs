//! What must hold for any files of stamps and counts, which servers in any language write.

use kendall_testbed::fuzz::{Target, with_file};

use crate::stamps::{self, Stamp, StampWriter};
use crate::{RequestRow, counts};

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "record-stamps", seeds: stamp_seeds, run: read_stamps },
    Target { name: "record-counts", seeds: count_seeds, run: read_counts },
];

/// Stamps are as many as whole records, are written again alike, and can be joined with rows.
fn read_stamps(input: &[u8]) {
    let Ok(read) = with_file("stamps", input, stamps::read) else { return };
    let bytes = written(&read);
    assert_eq!(bytes, input[..bytes.len()]);
    assert!(input.len() - bytes.len() < 64);
    let mut rows: Vec<RequestRow> = (0..3).map(|index| RequestRow::due(index, 5).sent_at(6, 7)).collect();
    stamps::join(&mut rows, &read, 1);
}

fn written(stamps: &[Stamp]) -> Vec<u8> {
    with_file("written", &[], |path| {
        let mut writer = StampWriter::create(path).expect("the folder is writable");
        stamps.iter().for_each(|stamp| writer.write(stamp).expect("the file can be written"));
        writer.flush().expect("the file can be written");
        std::fs::read(path).expect("it is there")
    })
}

fn stamp_seeds() -> Vec<Vec<u8>> {
    let stamp = Stamp { port: 7, queued: 10, started: 20, finished: 30, service: 10, fixed: None };
    vec![written(&[stamp, Stamp { fixed: Some(3), ..stamp }]), written(&[])]
}

/// Counts are written again as they were read, but for line ends and signs.
fn read_counts(input: &[u8]) {
    let Ok(read) = with_file("counts", input, counts::read) else { return };
    let named: Vec<(&str, u64)> = read.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    let again = with_file("again", &[], |path| {
        counts::write(path, &named).expect("the file can be written");
        counts::read(path)
    });
    assert_eq!(again.ok(), Some(read));
}

fn count_seeds() -> Vec<Vec<u8>> {
    vec![b"7 transactions\n18446744073709551615 page faults\n".to_vec(), b"0 a\r\n".to_vec()]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
