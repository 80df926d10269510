//! What must hold for the live state of a run, whatever its file says.

use kendall_archive::fuzzing::live_seed;
use kendall_archive::live::{LIVE, Live};
use kendall_testbed::fuzz::{Target, with_file};

use crate::queue::Queue;
use crate::{otlp, remote_write};

/// The parser of this crate.
pub const TARGETS: &[Target] = &[Target { name: "push-live", seeds, run }];

/// Every sample is sent or counted as dropped, and both messages are written.
fn run(input: &[u8]) {
    let read = with_file(LIVE, input, |path| Live::read(path.parent().expect("it is in a folder")));
    let Ok(live) = read else { return };
    let mut queue = Queue::default();
    queue.take_up(&live);
    let batch = queue.first(usize::MAX);
    let labels = vec![("run".to_owned(), "a".to_owned())];
    assert!(!otlp::message(&batch, &labels, queue.began_ns()).is_empty());
    assert!(batch.is_empty() || !remote_write::message(&batch, &labels).is_empty());
    queue.taken(batch.len());
    // A sample that is read twice is not sent twice.
    queue.take_up(&live);
    assert!(queue.is_empty());
    let (sent, _) = queue.give_up();
    assert_eq!(sent, batch.len() as u64);
}

fn seeds() -> Vec<Vec<u8>> {
    vec![live_seed()]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
