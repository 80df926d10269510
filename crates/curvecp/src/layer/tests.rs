use super::*;
use crate::feedback::Feedback;
use crate::message::{End, Header, MAX_MESSAGE_BYTES, Message};

const MS: Duration = Duration::from_millis(1);

struct Pair {
    now: Duration,
    client: MessageLayer,
    server: MessageLayer,
}

/// Takes all messages that a layer has to send.
fn take(layer: &mut MessageLayer, now: Duration) -> Vec<Vec<u8>> {
    let mut out = [0; MAX_MESSAGE_BYTES];
    layer.handle_timeout(now);
    std::iter::from_fn(|| {
        layer.poll_transmit(now, MAX_MESSAGE_BYTES, &mut out).map(|length| out[..length].to_vec())
    })
    .collect()
}

impl Pair {
    fn new(config: MessageConfig) -> Self {
        let now = Duration::ZERO;
        let client = MessageLayer::new(config.clone(), Role::Client, 1, now);
        Self { now, client, server: MessageLayer::new(config, Role::Server, 2, now) }
    }

    /// A millisecond: what was sent at its start arrives at its end. Returns how many messages went each way.
    fn step(&mut self) -> [usize; 2] {
        let (there, back) = (take(&mut self.client, self.now), take(&mut self.server, self.now));
        self.now += MS;
        there.iter().for_each(|message| self.server.handle(self.now, message));
        back.iter().for_each(|message| self.client.handle(self.now, message));
        [there.len(), back.len()]
    }

    fn steps(&mut self, count: usize) -> [usize; 2] {
        (0..count).map(|_| self.step()).fold([0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]])
    }
}

fn drain(layer: &mut MessageLayer) -> usize {
    let mut into = [0; 4096];
    let mut total = 0;
    while let Read::Bytes(length) = layer.read(&mut into) {
        total += length;
    }
    total
}

fn header(message: &[u8]) -> Header {
    Message::decode(message).unwrap().header
}

#[test]
fn peers_of_ours_coalesce_acknowledgments_and_widen_the_window() {
    let mut pair = Pair::new(MessageConfig::default());
    let bytes = vec![1; 1 << 20];
    let (mut read, mut messages) = (0, [0; 2]);
    while read < 20_000_000 {
        while pair.client.write(&bytes) > 0 {}
        let [there, back] = pair.step();
        messages = [messages[0] + there, messages[1] + back];
        read += drain(&mut pair.server);
    }
    assert!(messages[1] * 4 < messages[0], "{messages:?} messages");
    assert!(pair.server.receive.window() > 2 * FIRST_WINDOW, "{}", pair.server.receive.window());
}

#[test]
fn a_reader_that_pauses_stops_the_writer_and_a_lost_update_does_not_hang_it() {
    let config =
        MessageConfig { max_receive_window: FIRST_WINDOW, keep_alive: None, ..MessageConfig::default() };
    let mut pair = Pair::new(config);
    let bytes = vec![1; 400_000];
    let mut written = 0;
    for _ in 0..500 {
        written += pair.client.write(&bytes[written..]);
        pair.step();
    }
    assert_eq!(pair.server.receive.unread(), FIRST_WINDOW);
    assert!(pair.client.flow_limited);
    let mut read = drain(&mut pair.server);
    assert!(!take(&mut pair.server, pair.now).is_empty(), "the update is sent, and lost here");
    for _ in 0..3_000 {
        written += pair.client.write(&bytes[written..]);
        pair.step();
        read += drain(&mut pair.server);
    }
    assert_eq!((written, read), (400_000, 400_000));
}

#[test]
fn a_closed_end_acknowledges_again_until_its_peer_is_done() {
    let plain = MessageConfig { feedback: false, ..MessageConfig::default() };
    let mut pair = Pair::new(plain);
    pair.client.finish();
    pair.server.finish();
    // The server's end arrives; what acknowledges the client's is lost until the server has all it needs.
    for message in take(&mut pair.server, pair.now) {
        pair.client.handle(pair.now, &message);
    }
    while pair.server.state() == LayerState::Open {
        for message in take(&mut pair.client, pair.now) {
            pair.server.handle(pair.now, &message);
        }
        take(&mut pair.server, pair.now);
        pair.now += MS;
    }
    assert_eq!((pair.client.state(), pair.server.state()), (LayerState::Open, LayerState::Closing));
    pair.steps(10_000);
    assert_eq!(pair.client.state(), LayerState::Closing, "the server has acknowledged again");
    pair.steps(30_000);
    assert_eq!((pair.client.state(), pair.server.state()), (LayerState::Drained, LayerState::Drained));
    assert!(pair.client.is_flushed());
}

#[test]
fn peers_of_ours_drain_within_round_trips() {
    let mut pair = Pair::new(MessageConfig::default());
    pair.client.write(b"hello");
    pair.client.finish();
    pair.server.finish();
    pair.steps(12);
    assert_eq!((pair.client.state(), pair.server.state()), (LayerState::Drained, LayerState::Drained));
    assert_eq!(drain(&mut pair.server), 5, "what was not read yet can still be read");
    assert_eq!(pair.server.read(&mut [0; 8]), Read::Finished);
    assert_eq!(pair.client.next_deadline(), None);
}

#[test]
fn an_end_in_failure_is_read_as_one() {
    let mut pair = Pair::new(MessageConfig::default());
    pair.client.write(&[7; 5_000]);
    pair.step();
    pair.client.abort();
    pair.steps(20);
    assert!(drain(&mut pair.server) <= 5_000);
    assert_eq!(pair.server.read(&mut [0; 8]), Read::Failed);
    assert_eq!(pair.server.state(), LayerState::Open, "the other direction goes on");
    assert_eq!(pair.server.write(b"still here"), 10);
    pair.steps(20);
    assert_eq!(drain(&mut pair.client), 10);
}

#[test]
fn a_tail_that_was_lost_is_probed_for() {
    let mut pair = Pair::new(MessageConfig::default());
    pair.client.write(b"x");
    pair.steps(10);
    pair.client.write(b"y");
    assert_eq!(take(&mut pair.client, pair.now).len(), 1);
    let deadline = pair.client.next_deadline().unwrap();
    assert!(deadline < pair.now + Duration::from_millis(200), "{deadline:?}");
    pair.now = deadline;
    let probes = take(&mut pair.client, pair.now);
    assert_eq!(probes.len(), 1, "there is only one unit to probe with");
    pair.server.handle(pair.now, &probes[0]);
    assert_eq!(drain(&mut pair.server), 2);
}

#[test]
fn silence_is_broken_by_keep_alive_and_ends_at_the_idle_timeout() {
    let mut pair = Pair::new(MessageConfig::default());
    pair.steps(5);
    pair.now += Duration::from_secs(20);
    assert_eq!(pair.steps(5).iter().sum::<usize>(), 4, "a ping from each, and its acknowledgment");
    let last = pair.now;
    pair.client.handle_timeout(last + Duration::from_secs(59));
    assert_eq!(pair.client.state(), LayerState::Open);
    pair.client.handle_timeout(last + Duration::from_secs(60));
    assert_eq!(pair.client.state(), LayerState::Failed(Failure::IdleTimeout));
    assert_eq!(pair.client.read(&mut [0; 8]), Read::Failed);
    assert_eq!(take(&mut pair.client, last + Duration::from_secs(61)).len(), 0);
}

#[test]
fn nothing_is_acknowledged_that_was_not_stored() {
    let mut server = MessageLayer::new(MessageConfig::default(), Role::Server, 1, Duration::ZERO);
    let mut message = [0; 192];
    Header { id: 9, data_len: 10, position: FIRST_WINDOW - 5, ..Header::default() }.encode(&mut message);
    server.handle(MS, &message);
    assert_eq!(take(&mut server, MS).len(), 0, "beyond the window");
    Header { id: 0, data_len: 10, ..Header::default() }.encode(&mut message);
    server.handle(MS, &message);
    assert_eq!((take(&mut server, MS).len(), drain(&mut server)), (0, 0), "a pure acknowledgment");
    Header { id: 10, data_len: 10, end: Some(End::Success), ..Header::default() }.encode(&mut message);
    server.handle(MS, &message);
    let acks = take(&mut server, MS);
    assert_eq!((acks.len(), header(&acks[0]).echo, header(&acks[0]).acks.first), (1, 10, 11));
}

#[test]
fn the_extension_is_in_every_message_and_can_be_switched_off() {
    for (feedback, count) in [(true, 4), (false, 0)] {
        let mut pair = Pair::new(MessageConfig { feedback, ..MessageConfig::default() });
        pair.client.write(&[0; 1_600]);
        let messages = take(&mut pair.client, pair.now);
        let has_one =
            |message: &&Vec<u8>| Feedback::decode(Message::decode(message).unwrap().padding).is_some();
        assert_eq!((messages.len(), messages.iter().filter(has_one).count()), (4, count));
    }
}

#[test]
fn messages_that_mean_nothing_change_nothing() {
    let mut pair = Pair::new(MessageConfig::default());
    pair.client.write(&[3; 100_000]);
    pair.steps(4);
    // Acknowledgments of what was never sent, echoes of numbers never used, positions beyond all bounds.
    let mut message = [0xFF; 1088];
    for length in (0..=1088).step_by(16) {
        pair.client.handle(pair.now, &message[..length]);
        message[40..48].fill(0x0F);
        pair.client.handle(pair.now, &message[..length]);
    }
    pair.steps(50);
    assert!(drain(&mut pair.client) <= 1024);
}

proptest::proptest! {
    /// A peer that holds the keys and means harm: no message panics, and memory stays bounded.
    #[test]
    fn any_messages_are_survived(
        messages in proptest::collection::vec(
            (
                proptest::prelude::any::<[u32; 3]>(),
                0_u64..400_000,
                proptest::prelude::any::<[u16; 9]>(),
                0_u16..1024,
                0_u64..300_000,
                0_u8..12,
            ),
            1..60,
        ),
    ) {
        let mut pair = Pair::new(MessageConfig::default());
        pair.client.write(&[1; 100_000]);
        for ([id, echo, gap], first, small, data_len, position, kind) in messages {
            let gaps = std::array::from_fn(|i| if i == 0 { gap % 200_000 } else { small[i - 1].into() });
            let acks = crate::message::AckFields { first, gaps, lengths: std::array::from_fn(|i| small[i + 4]) };
            let end = [None, Some(End::Success), Some(End::Failure)].get(usize::from(kind)).copied().flatten();
            let echo = echo % 200;
            let mut message = [kind; MAX_MESSAGE_BYTES];
            Header { id, echo, acks, data_len, end, position }.encode(&mut message);
            if kind % 2 == 0 {
                let feedback = Feedback { wants_window: true, done: kind == 4, limit: first, ..Feedback::default() };
                feedback.encode(first, std::iter::once((first + 9, first + 5_000)), &mut message[48..64]);
            }
            pair.client.handle(pair.now, &message);
            pair.step();
            proptest::prop_assert!(pair.client.memory_bytes() < 4 << 20);
        }
    }
}
