//! What must hold for the live state of a run, whatever its file says.

use kendall_archive::live::{LIVE, Live, LiveState, Process, Sample, Samples};
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
    vec![serde_json::to_vec(&live).expect("it is plain data")]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
