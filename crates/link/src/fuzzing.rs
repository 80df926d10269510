//! What must hold for any message of a calibration, and for links in a row as users write them.

use kendall_testbed::fuzz::Target;

use crate::LinkSettings;
use crate::calibrate::message::Message;

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "link-calibration", seeds: message_seeds, run: message },
    Target { name: "link-row", seeds: row_seeds, run: row },
];

/// Bytes are a message in one way.
fn message(input: &[u8]) {
    let Some(message) = Message::decode(input) else { return };
    let (bytes, length) = message.encode();
    assert_eq!(bytes[..length], input[..length]);
}

fn message_seeds() -> Vec<Vec<u8>> {
    let messages = [
        Message::Ping { number: 1, sent_ns: 2 },
        Message::Pong { number: 1, sent_ns: 2, received_ns: 3, returned_ns: 4 },
        Message::Car { train: 1, number: 2 },
        Message::Sent { train: 1, took_ns: 2 },
        Message::Ask { train: 1 },
        Message::Tally { train: 1, cars: 2, bytes_per_s: 3.0 },
    ];
    messages
        .map(|message| {
            let (bytes, length) = message.encode();
            bytes[..length].to_vec()
        })
        .to_vec()
}

/// Links in a row are valid in both directions.
fn row(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(links) = LinkSettings::read_row(text) else { return };
    assert_eq!(links.up.len(), links.down.len());
    assert!(links.up.iter().chain(&links.down).all(|settings| settings.check().is_ok()));
}

fn row_seeds() -> Vec<Vec<u8>> {
    ["delay=5ms rate=100mbit > delay=20ms rate=10mbit / rate=50mbit", "delay=5ms rate=1MB/s / loss=1%"]
        .map(Vec::from)
        .to_vec()
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
