//! The parsers of packets and messages: they read what was written, and a client without a key gets no answer.

use super::recorded;
use crate::net::{address, client_config, endpoint, server_config};
use curvecp::TransmitBuffer;
use curvecp::feedback::{Feedback, islands};
use curvecp::message::{HEADER_BYTES, Message};
use curvecp::packet::{
    ClientMessageHeader, CookieHeader, HelloHeader, InitiateHeader, Packet, ServerMessageHeader,
};
use std::time::Duration;

/// Any datagram: its header is read and written alike, and an endpoint that does not have its keys stays silent.
pub(super) fn packet(input: &[u8]) {
    let (mut datagram, mut again) = (input.to_vec(), input.to_vec());
    let box_from = match Packet::decode(&mut datagram) {
        None => input.len(),
        Some(Packet::Hello(header, _)) => {
            header.write(&mut again);
            // Their content is not checked, as in the reference.
            again[72..136].copy_from_slice(&input[72..136]);
            HelloHeader::LENGTH
        }
        Some(Packet::Cookie(header, _)) => {
            header.write(&mut again);
            CookieHeader::LENGTH
        }
        Some(Packet::Initiate(header, _)) => {
            header.write(&mut again);
            InitiateHeader::LENGTH
        }
        Some(Packet::ClientMessage(header, _)) => {
            header.write(&mut again);
            ClientMessageHeader::LENGTH
        }
        Some(Packet::ServerMessage(header, _)) => {
            header.write(&mut again);
            ServerMessageHeader::LENGTH
        }
    };
    assert_eq!(again, input);
    assert!(box_from <= input.len());

    let (mut node, mut buffer) = (endpoint(1, Some(server_config())), TransmitBuffer::new(8));
    node.connect(Duration::ZERO, client_config()).unwrap();
    assert!(node.poll_transmit(Duration::ZERO, &mut buffer), "the Hello of the connection");
    node.handle_datagram(Duration::from_millis(1), address(1), &mut datagram);
    assert!(
        !node.poll_transmit(Duration::from_millis(1), &mut buffer),
        "what is not authentic is not answered"
    );
    assert_eq!(node.poll_event(), None);
}

pub(super) fn packet_seeds() -> Vec<Vec<u8>> {
    ["hello", "cookie_packet", "initiate", "client_message", "server_message"].map(recorded).to_vec()
}

/// Any message: header, padding and data are its bytes, and all ranges ascend.
pub(super) fn message(input: &[u8]) {
    let Some(Message { header, padding, data }) = Message::decode(input) else { return };
    assert_eq!(HEADER_BYTES + padding.len() + data.len(), input.len());
    assert_eq!((data.len(), data), (header.data_len.into(), &input[input.len() - data.len()..]));
    let mut again = [0; HEADER_BYTES];
    header.encode(&mut again);
    // Both bits of an end are a failure; only its own is written.
    let mut expected = *input.first_chunk::<HEADER_BYTES>().unwrap();
    if expected[39] & 24 == 24 {
        expected[39] &= !8;
    }
    assert_eq!(again, expected);
    ascend(header.acks.first, header.acks.islands());
    if let Some((_, list)) = Feedback::decode(padding) {
        ascend(header.acks.first, islands(header.acks.first, list));
    }
}

fn ascend(first: u64, islands: impl Iterator<Item = (u64, u64)>) {
    islands.fold(first, |before, (start, stop)| {
        assert!(before <= start && start < stop);
        stop
    });
}

pub(super) fn message_seeds() -> Vec<Vec<u8>> {
    let mut with_feedback = vec![0; 192];
    let ranges = [(2000, 3000), (5000, 5001)];
    assert!(Feedback::default().encode(1000, ranges.into_iter(), &mut with_feedback[HEADER_BYTES..]));
    vec![recorded("message"), crate::net::attacker::message(b"data"), with_feedback]
}
