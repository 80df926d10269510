//! The message layer alone, driven by a script: messages of any content, calls of the application, time.

use curvecp::congestion::Algorithm;
use curvecp::message::{AckFields, End, Header, message_bytes};
use curvecp::{LayerState, MessageConfig, MessageLayer, Read, Role};
use kendall_testbed::fuzz::Script;
use std::time::Duration;

/// Bytes that buffers may take: both windows, and as much again for what describes them.
const MEMORY: usize = 4 << 20;
/// Messages that leave at one instant, at most.
const BURST: usize = 5_000;

pub(super) fn layer(input: &[u8]) {
    let mut script = Script(input);
    let setup = script.number(1) as usize;
    let config = MessageConfig {
        algorithm: Algorithm::ALL[setup & 3],
        feedback: setup & 4 != 0,
        max_receive_window: 1 << 18,
        max_send_buffer: 1 << 18,
        ..MessageConfig::default()
    };
    let role = if setup & 8 != 0 { Role::Client } else { Role::Server };
    let mut layer = MessageLayer::new(config, role, 7, Duration::ZERO);
    let (mut now, mut piece) = (Duration::ZERO, [0; 4096]);
    transmit(&mut layer, now);
    while let Some(step) = script.byte() {
        match step % 10 {
            0 => {
                let length = 16 * script.number(1) as usize;
                let mut message = script.bytes(length).to_vec();
                message.resize(length, 0);
                layer.handle(now, &message);
            }
            1..=3 => layer.handle(now, &message(&mut script)),
            4 => now += Duration::from_micros(script.number(3)),
            5 => _ = layer.write(&piece[..(script.number(2) as usize).min(4096)]),
            6 => while let Read::Bytes(_) = layer.read(&mut piece) {},
            7 => layer.ping(),
            8 => match script.number(1) % 4 {
                0 => layer.finish(),
                1 => layer.abort(),
                2 => layer.stop_reading(),
                _ => layer.set_congestion(Algorithm::ALL[script.number(1) as usize & 3], now),
            },
            _ => now = layer.next_deadline().map_or(now, |deadline| now.max(deadline)),
        }
        if layer.next_deadline().is_some_and(|deadline| deadline <= now) {
            layer.handle_timeout(now);
        }
        transmit(&mut layer, now);
        assert!(layer.memory_bytes() <= MEMORY, "{} bytes", layer.memory_bytes());
    }
    if matches!(layer.state(), LayerState::Drained | LayerState::Failed(_)) {
        assert_eq!(layer.next_deadline(), None);
    }
}

/// A well-formed message whose fields are near what is in use.
fn message(script: &mut Script<'_>) -> Vec<u8> {
    let kind = script.number(1);
    let data_len = (script.number(2) % 1313) as u16;
    let first = script.number(2);
    let islands = [(first + script.number(2), script.number(1)), (first + 70_000, script.number(2))];
    let islands = islands.map(|(start, length)| (start + 1, start + 1 + length));
    let header = Header {
        id: script.number(1) as u32,
        echo: script.number(1) as u32,
        acks: if islands[0].1 < islands[1].0 {
            AckFields::new(first, islands.into_iter())
        } else {
            AckFields { first, ..AckFields::default() }
        },
        data_len,
        end: [None, None, Some(End::Success), Some(End::Failure)][kind as usize & 3],
        position: script.number(3),
    };
    let mut message = vec![0; message_bytes(data_len.into())];
    header.encode(&mut message);
    if kind & 4 != 0 {
        message[48..52].copy_from_slice(b"kCP1");
        message[52..64].copy_from_slice(&script.array::<12>());
    }
    message
}

fn transmit(layer: &mut MessageLayer, now: Duration) {
    let mut out = [0; 1376];
    for _ in 0..BURST {
        let Some(length) = layer.poll_transmit(now, 1376, &mut out) else { return };
        assert!(length.is_multiple_of(16) && (48..=1376).contains(&length));
    }
    panic!("the layer sends for ever: {:?}", layer.stats());
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    (0..16_u8)
        .map(|setup| {
            // Writes, gets an acknowledgment and data, reads, waits, finishes.
            let ack = [1, 0, 16, 0, 0, 2, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0];
            [&[setup, 5, 0, 8, 4, 1, 1, 0][..], &ack, &[6, 9, 9, 8, 0, 9, 9, 9, 7, 8, 3, 1]].concat()
        })
        .collect()
}
