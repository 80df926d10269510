//! What must hold for any message and address of a cluster.

use kendall_digest::password::Mask;
use kendall_nats::NatsAddress;
use kendall_testbed::fuzz::Target;

use crate::protocol::{
    BeatMessage, ChunkMessage, CoordinatorId, MOST_BYTES, ReportAnswer, ReportMessage, WorkerId,
    decode_cancel, encode_cancel,
};
use crate::spec::{JobId, SearchSpec};

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "cluster-messages", seeds: message_seeds, run: messages },
    Target { name: "cluster-address", seeds: address_seeds, run: address },
];

/// What is read as a message is in range, and is written and read again alike.
fn messages(input: &[u8]) {
    if let Some(chunk) = ChunkMessage::decode(input) {
        assert_eq!(chunk.encode(), input);
        assert!(!chunk.range.is_empty() && chunk.range.end <= chunk.spec.end());
        if let Some(mask) = chunk.spec.mask() {
            let last = chunk.range.end - 1;
            assert_eq!(mask.number(&mask.password(last)), Some(last));
        }
        let whole = chunk.range;
        assert_eq!(
            JobId::parse(&JobId::of(&chunk.spec, &whole).to_string()),
            Some(JobId::of(&chunk.spec, &whole))
        );
    }
    if let Some(report) = ReportMessage::decode(input) {
        let bytes = report.encode();
        assert!(bytes.len() <= MOST_BYTES);
        assert_eq!(ReportMessage::decode(&bytes), Some(report));
    }
    if let Some(beat) = BeatMessage::decode(input) {
        assert_eq!(BeatMessage::decode(&beat.encode()), Some(beat));
    }
    if let Some((job, run)) = decode_cancel(input) {
        assert_eq!(encode_cancel(job, run), input);
    }
    if let Some(answer) = ReportAnswer::decode(input) {
        assert_eq!(answer.encode(), input);
    }
}

fn message_seeds() -> Vec<Vec<u8>> {
    let (job, mask) = (JobId([2; 16]), Mask::uniform(b"abc", 3).expect("it is valid"));
    let specs = [
        SearchSpec::Integer { digest: [1; 32] },
        SearchSpec::Sha1 { digest: [1; 20], mask: mask.clone() },
        SearchSpec::Sha256 { digest: [1; 32], mask: mask.clone() },
        SearchSpec::Md5 { digest: [1; 16], mask },
    ];
    let chunk = |spec| {
        let coordinator = CoordinatorId(1);
        ChunkMessage { coordinator, job, run: 3, range: 0..9, unit: 9, spec }.encode()
    };
    let worker = WorkerId(1);
    let report = ReportMessage {
        worker,
        job,
        found: Some(4),
        tested: vec![0..4, 5..9],
        returned: vec![9..12, 20..21],
    };
    let beat = BeatMessage { worker, is_leaving: true, tested: 7, speeds: [1, 2, 3, 4] };
    let others = [report.encode(), beat.encode(), encode_cancel(job, 3), ReportAnswer::Closed.encode()];
    specs.map(chunk).into_iter().chain(others).collect()
}

/// An address is shown without its password, and what is shown is an address.
fn address(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(address) = text.parse::<NatsAddress>() else { return };
    let shown = address.to_string();
    assert!(!shown.contains('@'), "{shown}");
    assert_eq!(shown.parse::<NatsAddress>().map(|again| again.to_string()).ok(), Some(shown));
}

fn address_seeds() -> Vec<Vec<u8>> {
    ["nats://127.0.0.1:4222", "tls://us%20er:pa%3Ass@a.example,nats://[::1]:1/"].map(Vec::from).to_vec()
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
