//! Our layer against a model of the reference's message layer, written after `curvecpmessage.c` of NaCl 20110221.
//!
//! The model keeps the reference's rules and limits and fails where a peer would make it compute nonsense. The programs
//! themselves are run by the tests of the socket layer.

use std::collections::VecDeque;
use std::time::Duration;

use curvecp::congestion::Algorithm;
use curvecp::message::{End, Header, MAX_MESSAGE_BYTES, Message, message_bytes};
use curvecp::{LayerState, MessageConfig, MessageLayer, Read, Role};

const MS: Duration = Duration::from_millis(1);
const BUFFER: usize = 131_072;
const BLOCKS: usize = 128;

struct Block {
    position: u64,
    len: usize,
    ends: bool,
    id: u32,
    /// `None` once acknowledged, as the reference's time of 0.
    sent: Option<Duration>,
}

/// The reference: one block per interval and a fixed time-out stand for Chicago.
struct Reference {
    outgoing: Vec<u8>,
    cut: usize,
    blocks: VecDeque<Block>,
    end_cut: bool,
    end_acknowledged: bool,
    next_id: u32,
    last_block: Duration,
    interval: Duration,
    timeout: Duration,
    received: Vec<Option<u8>>,
    received_bytes: usize,
    end: Option<usize>,
    queue: VecDeque<Vec<u8>>,
    /// Echoes of blocks that a range had acknowledged: their round-trip time would be the time since 1970.
    nonsense: u32,
    /// Messages beyond the buffer, dropped without an acknowledgment.
    beyond: u32,
    /// Messages that found the queue of 64 full.
    overflowed: u32,
    repeated_echoes: u32,
    echoes: std::collections::HashSet<u32>,
    samples: u32,
}

impl Reference {
    fn new(outgoing: Vec<u8>, [interval, timeout]: [Duration; 2]) -> Self {
        Self {
            outgoing,
            cut: 0,
            blocks: VecDeque::new(),
            end_cut: false,
            end_acknowledged: false,
            next_id: 1,
            last_block: Duration::ZERO,
            interval,
            timeout,
            received: vec![],
            received_bytes: 0,
            end: None,
            queue: VecDeque::new(),
            nonsense: 0,
            beyond: 0,
            overflowed: 0,
            repeated_echoes: 0,
            echoes: std::collections::HashSet::new(),
            samples: 0,
        }
    }

    fn is_done(&self) -> bool {
        self.end_acknowledged && self.end == Some(self.received_bytes)
    }

    fn arrive(&mut self, message: &[u8]) {
        if self.queue.len() < 64 {
            self.queue.push_back(message.to_vec());
        } else {
            self.overflowed += 1;
        }
    }

    /// One pass of the main loop: sends at most one block, processes at most one message. Returns what it writes.
    fn pass(&mut self, now: Duration) -> Vec<Vec<u8>> {
        let mut out = vec![];
        if now >= self.last_block + self.interval {
            out.extend(self.send_block(now));
        }
        if let Some(message) = self.queue.pop_front() {
            out.extend(self.process(&message));
        }
        out
    }

    fn send_block(&mut self, now: Duration) -> Option<Vec<u8>> {
        let late = |block: &Block| block.sent.is_some_and(|sent| now >= sent + self.timeout);
        let index = match self.blocks.iter().position(late) {
            Some(index) => index,
            None if self.blocks.len() < BLOCKS && !self.end_cut => {
                let len = (self.outgoing.len() - self.cut).min(1024);
                let position = self.cut;
                self.cut += len;
                self.end_cut = self.cut == self.outgoing.len();
                let (id, sent) = (0, None);
                self.blocks.push_back(Block { position: position as u64, len, ends: self.end_cut, id, sent });
                self.blocks.len() - 1
            }
            None => return None,
        };
        let block = &mut self.blocks[index];
        (block.id, block.sent) = (self.next_id, Some(now));
        self.next_id += 1;
        self.last_block = now;
        let mut message = vec![0; message_bytes(block.len)];
        let end = block.ends.then_some(End::Success);
        Header {
            id: block.id,
            data_len: block.len as u16,
            end,
            position: block.position,
            ..Header::default()
        }
        .encode(&mut message);
        let at = message.len() - block.len;
        message[at..].copy_from_slice(&self.outgoing[block.position as usize..][..block.len]);
        Some(message)
    }

    fn process(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let Message { header, data, .. } = Message::decode(message)?;
        if header.echo != 0 {
            self.repeated_echoes += u32::from(!self.echoes.insert(header.echo));
        }
        if let Some(block) = self.blocks.iter().find(|block| block.id == header.echo) {
            match block.sent {
                Some(_) => self.samples += 1,
                None => self.nonsense += 1,
            }
        }
        self.acknowledged(0, header.acks.first);
        for (start, stop) in header.acks.islands() {
            self.acknowledged(start, stop);
        }
        let start = header.position as usize;
        let stop = start + data.len();
        if stop > self.received_bytes + BUFFER {
            self.beyond += 1;
            return None;
        }
        if header.end.is_some() {
            self.end = Some(stop);
        }
        self.received.resize(self.received.len().max(stop), None);
        for (offset, byte) in data.iter().enumerate() {
            self.received[start + offset] = Some(*byte);
        }
        while self.received.get(self.received_bytes).is_some_and(Option::is_some) {
            self.received_bytes += 1;
        }
        if header.id == 0 {
            return None;
        }
        let mut ack = vec![0; 192];
        let mut reply = Header { echo: header.id, ..Header::default() };
        reply.acks.first = self.received_bytes as u64 + u64::from(self.end == Some(self.received_bytes));
        reply.encode(&mut ack);
        Some(ack)
    }

    fn acknowledged(&mut self, start: u64, stop: u64) {
        if start == stop {
            return;
        }
        for block in &mut self.blocks {
            if block.position >= start && block.position + block.len as u64 <= stop {
                block.sent = None;
            }
        }
        while self.blocks.front().is_some_and(|block| block.sent.is_none()) {
            self.blocks.pop_front();
        }
        self.end_acknowledged |= self.end_cut && start == 0 && stop > self.outgoing.len() as u64;
    }
}

struct Run {
    reference: Reference,
    layer: MessageLayer,
    read: Vec<u8>,
    outcome: Option<Read>,
    longest_burst: usize,
    now: Duration,
    drained: bool,
}

/// Streams in both directions over 10 ms each way; message i of a direction is lost, or late, as `fate` says.
fn run(
    role: Role,
    algorithm: Algorithm,
    [there, back]: [usize; 2],
    pace: [Duration; 2],
    fate: impl Fn(u64) -> Fate,
) -> Run {
    let config = MessageConfig { algorithm, ..MessageConfig::default() };
    let mut layer = MessageLayer::new(config, role, 1, Duration::ZERO);
    let outgoing = bytes(there, 3);
    let mut reference = Reference::new(bytes(back, 5), pace);
    let mut wires: [Vec<(Duration, u64, Vec<u8>)>; 2] = [vec![], vec![]];
    let mut newest = 0;
    let (mut written, mut read, mut outcome, mut count) = (0, vec![], None, 0);
    let mut longest_burst = 0;
    let mut now = Duration::ZERO;
    let mut out = [0; MAX_MESSAGE_BYTES];
    while now < Duration::from_secs(300) && !(reference.is_done() && layer.state() != LayerState::Open) {
        now += MS / 2;
        let mut post = |wire: &mut Vec<(Duration, u64, Vec<u8>)>, message: Vec<u8>| {
            count += 1;
            match fate(count) {
                Fate::Lost => {}
                Fate::Arrives => wire.push((now + 10 * MS, count, message)),
                Fate::Late => wire.push((now + 17 * MS, count, message)),
            }
        };
        for (at, number, message) in std::mem::take(&mut wires[0]) {
            if at > now {
                wires[0].push((at, number, message));
            } else if number > newest {
                // The reference drops packets that were overtaken.
                newest = number;
                reference.arrive(&message);
            }
        }
        for (at, number, message) in std::mem::take(&mut wires[1]) {
            if at <= now {
                layer.handle(now, &message);
            } else {
                wires[1].push((at, number, message));
            }
        }
        layer.handle_timeout(now);
        written += layer.write(&outgoing[written..]);
        if written == outgoing.len() {
            layer.finish();
        }
        let mut piece = [0; 4096];
        loop {
            match layer.read(&mut piece) {
                Read::Bytes(length) => read.extend(&piece[..length]),
                Read::Blocked => break,
                end => {
                    outcome = Some(end);
                    break;
                }
            }
        }
        let mut burst = 0;
        while let Some(length) = layer.poll_transmit(now, MAX_MESSAGE_BYTES, &mut out) {
            burst += 1;
            post(&mut wires[0], out[..length].to_vec());
        }
        longest_burst = longest_burst.max(burst);
        for _ in 0..8 {
            for message in reference.pass(now) {
                post(&mut wires[1], message);
            }
        }
    }
    let drained = !matches!(layer.state(), LayerState::Open | LayerState::Failed(_));
    Run { reference, layer, read, outcome, longest_burst, now, drained }
}

#[derive(Clone, Copy)]
enum Fate {
    Arrives,
    Late,
    Lost,
}

fn bytes(length: usize, seed: u64) -> Vec<u8> {
    (0..length as u64).map(|i| ((i + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// What holds whatever is lost.
fn check(run: &Run, [there, back]: [usize; 2]) {
    let reference = &run.reference;
    let stats = run.layer.stats();
    assert!(
        reference.is_done() && run.drained,
        "not over after {:?}: {:?} {stats:?}",
        run.now,
        run.layer.state()
    );
    let received: Vec<u8> = reference.received.iter().flatten().copied().collect();
    assert!(received == bytes(there, 3) && run.read == bytes(back, 5), "wrong bytes");
    assert_eq!(run.outcome, Some(Read::Finished));
    let hazards = (reference.nonsense, reference.beyond, reference.repeated_echoes);
    assert_eq!(hazards, (0, 0, 0), "echoes of acknowledged blocks, data beyond the buffer, repeated echoes");
    assert!(run.longest_burst <= 64, "a burst of {}", run.longest_burst);
}

/// Bytes to and from the reference.
const SIZES: [[usize; 2]; 5] = [[0, 0], [24, 100_000], [3_000_000, 0], [1, 1], [400_000, 150_000]];
/// Its interval and its time-out: calm; and eager, with retransmissions that cross acknowledgments.
const PACES: [[Duration; 2]; 2] =
    [[Duration::from_millis(2), Duration::from_millis(200)], [Duration::ZERO, Duration::from_millis(25)]];

#[test]
fn streams_cross_to_and_from_the_reference() {
    for algorithm in Algorithm::ALL {
        for role in [Role::Client, Role::Server] {
            for sizes in SIZES {
                let run = run(role, algorithm, sizes, PACES[0], |_| Fate::Arrives);
                check(&run, sizes);
                assert_eq!(run.reference.overflowed, 0);
                let blocks = sizes[1] / 1024;
                assert!(run.reference.samples as usize >= blocks, "an echo for every block");
            }
        }
    }
}

#[test]
fn streams_cross_to_and_from_the_reference_over_losses_and_reordering() {
    for salt in 0..6_u64 {
        let fate = move |i: u64| match (i + salt * 1_000_003).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 57 {
            0..=4 => Fate::Lost,
            5..=12 => Fate::Late,
            _ => Fate::Arrives,
        };
        for (sizes, pace) in SIZES.into_iter().flat_map(|sizes| PACES.map(|pace| (sizes, pace))) {
            check(&run(Role::Client, Algorithm::Cubic, sizes, pace, fate), sizes);
        }
    }
}

#[test]
fn a_loss_in_a_large_flight_does_not_overrun_the_reference_s_buffer() {
    for lost in 0..8 {
        let fate = move |i| if i == 1_000 + 97 * lost { Fate::Lost } else { Fate::Arrives };
        let sizes = [3_000_000, 0];
        check(&run(Role::Server, Algorithm::Cubic, sizes, PACES[0], fate), sizes);
    }
}

#[test]
fn a_client_s_first_messages_fit_an_initiate_packet() {
    let mut layer = MessageLayer::new(MessageConfig::default(), Role::Client, 1, Duration::ZERO);
    layer.write(&bytes(10_000, 1));
    let mut out = [0; MAX_MESSAGE_BYTES];
    let mut messages = 0;
    while let Some(length) = layer.poll_transmit(MS, 640, &mut out) {
        assert!(length <= 640);
        messages += 1;
    }
    assert!(messages >= 2);
    // A client with nothing to say sends an empty message, so that the server learns of it.
    let mut silent = MessageLayer::new(MessageConfig::default(), Role::Client, 1, Duration::ZERO);
    let length = silent.poll_transmit(MS, 640, &mut out).unwrap();
    let header = Message::decode(&out[..length]).unwrap().header;
    assert_eq!((length, header.id, header.data_len, header.end), (192, 1, 0, None));
    assert_eq!(silent.poll_transmit(MS, 640, &mut out), None);
    let mut server = MessageLayer::new(MessageConfig::default(), Role::Server, 1, Duration::ZERO);
    assert_eq!(server.poll_transmit(MS, 1088, &mut out), None, "a server answers");
}
