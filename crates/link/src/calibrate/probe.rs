//! The client's end of a measurement.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use kendall_linkmodel::Settings;
use kendall_record::clock::now_ns;

use super::HEADER_BYTES;
use super::judge::{
    Calibration, Judged, Measured, Note, Quantity, Side, Target, excess, median, moments, share,
};
use super::message::{LONGEST, Message, TrainPlan};
use super::respond::is_passing;
use super::train::{Arrivals, send, send_once};
use crate::error::LinkError;
use crate::pace::{hurry, sleep_until};
use crate::protocol::LinkSettings;
use crate::receive::{prepare, receive};

const MS: i64 = 1_000_000;
/// The number of pings, and the time between them; slow links get fewer, further apart.
const PINGS: u32 = 50;
const FEWEST_PINGS: u32 = 5;
const PING_EVERY_NS: i64 = 8 * MS;
/// The longest time for all pings, if it permits the fewest.
const PINGS_WITHIN_NS: i64 = 5_000 * MS;
/// The most that pings use of a link's rate, so that none waits for another.
const PING_LOAD: f64 = 0.5;
/// The length of a train, in s.
const TRAIN_S: f64 = 0.5;
/// The offered rates as shares of the link's rate, for measuring loss and for measuring the rate.
const BELOW: f64 = 0.7;
const ABOVE: f64 = 1.1;
/// The lead of the latter train over its pace, in s.
const LEAD_S: f64 = 0.02;
/// Packets per second where the link has no rate limit.
const UNLIMITED_PER_S: f64 = 10_000.0;
/// The payload of the packets for measuring loss, in bytes: small, so that there are many.
const SMALL: u16 = 64;
/// The size of a ping and of its answer on the link, in bytes.
const PING_LINK_BYTES: f64 = HEADER_BYTES as f64 + LONGEST as f64;
/// The number of attempts at a request before it counts as lost.
const ATTEMPTS: u32 = 5;

/// Measures a link from the client's end, where [`respond`](super::respond) answers at `server`. The measurement takes about
/// three seconds and a few round trips, and leaves the link as before: idle, with empty queues.
///
/// # Errors
///
/// Where the socket fails. A link that drops every packet is not an error: its properties are then unknown.
pub fn measure(
    socket: &UdpSocket,
    server: SocketAddr,
    asked: &LinkSettings,
) -> Result<Calibration, LinkError> {
    // A separate thread, so that the caller's thread keeps its priority.
    thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            hurry();
            prepare(socket)?;
            Probe::new(socket, server, asked).run()
        });
        measuring.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
    .map_err(LinkError::step("measure the link"))
}

struct Probe<'a> {
    socket: &'a UdpSocket,
    server: SocketAddr,
    asked: &'a LinkSettings,
    targets: [Target; 2],
    start_ns: i64,
    /// Longer than any answer takes while queues are short.
    round_ns: i64,
    /// The number of the last train. The first number comes from the clock, so that trains of an earlier measurement are not
    /// mistaken for these.
    train: u32,
    buffer: [u8; 2048],
}

/// The measurements of one direction.
struct DirectionMeasurements {
    delays_s: Vec<f64>,
    loss: Option<Measured>,
    rate: Option<(Measured, Option<Note>)>,
}

impl<'a> Probe<'a> {
    fn new(socket: &'a UdpSocket, server: SocketAddr, asked: &'a LinkSettings) -> Self {
        let targets = [Target::of(&asked.up), Target::of(&asked.down)];
        let one_way_s = |way: &Target| way.delay_s + 6.0 * way.jitter_s + 2.0 * way.sending_s(1514.0);
        let round_ns = (targets.iter().map(one_way_s).sum::<f64>() * 1e9) as i64 + 2 * PING_EVERY_NS;
        let start_ns = now_ns();
        Self { socket, server, asked, targets, start_ns, round_ns, train: start_ns as u32, buffer: [0; 2048] }
    }

    fn run(mut self) -> io::Result<Calibration> {
        let [up, down] = &self.targets.clone();
        let asked = self.asked;
        let [up_s, down_s] = self.ping()?;
        let mut seen =
            [up_s, down_s].map(|delays_s| DirectionMeasurements { delays_s, loss: None, rate: None });
        let ways = [(Side::Up, up, &asked.up), (Side::Down, down, &asked.down)];
        let reachable = !seen[0].delays_s.is_empty();
        for ((side, target, hops), seen) in ways.iter().zip(&mut seen).filter(|_| reachable) {
            let plan = loss_plan(target, hops);
            let arrived = self.train(*side, plan)?;
            seen.loss = arrived.and_then(|arrived| {
                share(plan.cars.saturating_sub(arrived.cars), plan.cars, target.clumping)
            });
            if let Some(plan) = rate_plan(target, hops) {
                let lost = seen.loss.unwrap_or(Measured { value: 0.0, low: 0.0, high: 0.0 });
                seen.rate =
                    self.train(*side, plan)?.and_then(|arrived| rate(&arrived, plan, target, hops, lost));
                // Packets sent too fast are still in the queue.
                self.wait_until_idle()?;
            }
        }
        let sending = [up, down].map(|target| target.sending_s(PING_LINK_BYTES));
        let idle =
            |index: usize, target: &Target| (&seen[index].delays_s[..], target.delay_s + sending[index]);
        let excess = excess([idle(0, up), idle(1, down)].into_iter());
        let rows = ways
            .iter()
            .zip(&seen)
            .zip(sending)
            .flat_map(|(((side, target, _), seen), sending_s)| rows(*side, target, seen, sending_s));
        Ok(Calibration { rows: rows.collect(), excess, took_ns: now_ns() - self.start_ns })
    }

    /// Sends pings at a steady pace and returns the delays up and down, in s. Pings that another overtook do not count.
    fn ping(&mut self) -> io::Result<[Vec<f64>; 2]> {
        let start_ns = now_ns();
        let mut pongs = Vec::new();
        let (pings, every_ns) = ping_pace(&self.targets);
        for number in 0..pings {
            let due_ns = start_ns + i64::from(number) * every_ns;
            self.listen(due_ns, |message, at_ns| pongs.push((message, at_ns)))?;
            sleep_until(due_ns);
            // The ping is as long as its answer, the longest message, so that both take the same time to send.
            let (bytes, _) = Message::Ping { number, sent_ns: now_ns() }.encode();
            send_once(self.socket, self.server, &bytes)?;
        }
        self.listen(now_ns() + self.round_ns, |message, at_ns| pongs.push((message, at_ns)))?;
        let mut first = HashMap::new();
        for (message, at_ns) in pongs {
            if let Message::Pong { number, sent_ns, received_ns, returned_ns } = message {
                first.entry(number).or_insert((sent_ns, received_ns, returned_ns, at_ns));
            }
        }
        let mut pongs: Vec<_> = first.into_values().collect();
        pongs.sort_unstable();
        let (mut up_s, mut down_s) = (Vec::new(), Vec::new());
        let mut next = (i64::MAX, i64::MAX);
        for &(sent_ns, received_ns, returned_ns, at_ns) in pongs.iter().rev() {
            if received_ns <= next.0 {
                up_s.push((received_ns - sent_ns) as f64 / 1e9);
            }
            if at_ns <= next.1 && received_ns <= next.0 {
                down_s.push((at_ns - returned_ns) as f64 / 1e9);
            }
            next = (next.0.min(received_ns), next.1.min(at_ns));
        }
        Ok([up_s, down_s])
    }

    /// Sends a train in one direction and returns what arrived of it; `None` where no result came back.
    fn train(&mut self, side: Side, plan: TrainPlan) -> io::Result<Option<Arrivals>> {
        self.train = self.train.wrapping_add(1);
        match side {
            Side::Up => self.train_up(plan),
            Side::Down => self.train_down(plan),
        }
    }

    fn train_up(&mut self, plan: TrainPlan) -> io::Result<Option<Arrivals>> {
        let train = self.train;
        let took_ns = send(self.socket, self.server, train, plan)?;
        self.listen(now_ns() + self.round_ns, |_, _| ())?;
        for attempt in 1..=ATTEMPTS {
            let (bytes, length) = Message::Ask { train }.encode();
            send_once(self.socket, self.server, &bytes[..length])?;
            let mut tally = None;
            self.listen_until(now_ns() + i64::from(attempt) * self.round_ns, |message, _| {
                match message {
                    Message::Tally { train: of, cars, bytes_per_s } if of == train => {
                        tally = Some((cars, bytes_per_s))
                    }
                    _ => {}
                }
                tally.is_some()
            })?;
            if let Some((cars, bytes_per_s)) = tally {
                return Ok(Some(Arrivals::reported(train, cars, bytes_per_s, took_ns)));
            }
        }
        Ok(None)
    }

    fn train_down(&mut self, plan: TrainPlan) -> io::Result<Option<Arrivals>> {
        let train = self.train;
        let mut arrivals = Arrivals::of(train);
        for attempt in 1..=ATTEMPTS {
            let (bytes, length) = Message::Send { train, plan }.encode();
            send_once(self.socket, self.server, &bytes[..length])?;
            let begins_by_ns = now_ns() + i64::from(attempt) * self.round_ns;
            self.listen_until(begins_by_ns, |message, at_ns| {
                book(&mut arrivals, message, at_ns, plan);
                arrivals.cars > 0 || arrivals.sent_in_ns.is_some()
            })?;
            if arrivals.cars > 0 || arrivals.sent_in_ns.is_some() {
                let ends_by_ns = now_ns() + plan.takes_ns() * 2 + self.round_ns;
                self.listen_until(ends_by_ns, |message, at_ns| {
                    book(&mut arrivals, message, at_ns, plan);
                    arrivals.sent_in_ns.is_some()
                })?;
                // Skips those that others overtook, and those still under way.
                self.listen(now_ns() + self.round_ns, |message, at_ns| {
                    book(&mut arrivals, message, at_ns, plan)
                })?;
                return Ok(Some(arrivals));
            }
        }
        Ok(None)
    }

    /// Waits until a ping takes no longer than on an idle link, with a time limit.
    fn wait_until_idle(&mut self) -> io::Result<()> {
        let give_up_ns = now_ns() + 5_000 * MS;
        while now_ns() < give_up_ns {
            let sent = now_ns();
            let (bytes, _) = Message::Ping { number: PINGS, sent_ns: sent }.encode();
            send_once(self.socket, self.server, &bytes)?;
            let mut back = false;
            self.listen_until(sent + self.round_ns, |message, _| {
                back |= matches!(message, Message::Pong { sent_ns, .. } if sent_ns == sent);
                back
            })?;
            if back {
                break;
            }
        }
        Ok(())
    }

    /// Passes on arriving messages until an instant.
    fn listen(&mut self, until_ns: i64, mut hear: impl FnMut(Message, i64)) -> io::Result<()> {
        self.listen_until(until_ns, |message, at_ns| {
            hear(message, at_ns);
            false
        })
    }

    /// Passes on arriving messages until an instant, or until the listener has heard enough.
    fn listen_until(&mut self, until_ns: i64, mut hear: impl FnMut(Message, i64) -> bool) -> io::Result<()> {
        loop {
            let left_ns = until_ns - now_ns();
            if left_ns <= 0 {
                return Ok(());
            }
            self.socket.set_read_timeout(Some(Duration::from_nanos(left_ns as u64)))?;
            match receive(self.socket, &mut self.buffer) {
                Ok((length, from, at_ns)) if from == self.server => {
                    if Message::decode(&self.buffer[..length]).is_some_and(|message| hear(message, at_ns)) {
                        return Ok(());
                    }
                }
                Ok(_) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn book(arrivals: &mut Arrivals, message: Message, at_ns: i64, plan: TrainPlan) {
    match message {
        Message::Car { train, number } if train == arrivals.train => {
            arrivals.book(number, plan.link_bytes(), at_ns);
        }
        Message::Sent { train, took_ns } if train == arrivals.train => arrivals.sent_in_ns = Some(took_ns),
        _ => {}
    }
}

/// The number of pings and the time between them, in ns, at which no ping waits for another's bits.
fn ping_pace(targets: &[Target; 2]) -> (u32, i64) {
    let sending_s = targets.iter().map(|target| target.sending_s(PING_LINK_BYTES)).fold(0.0, f64::max);
    let every_ns = ((sending_s / PING_LOAD * 1e9) as i64).max(PING_EVERY_NS);
    let fitting = (PINGS_WITHIN_NS / every_ns) as u32;
    (fitting.clamp(FEWEST_PINGS, PINGS), every_ns)
}

/// Packets at a pace for half a second, but at least this many.
fn plan(per_s: f64, bytes: u16, at_least: f64) -> TrainPlan {
    let cars = (per_s * TRAIN_S).max(at_least).min(per_s * 3.0).max(5.0);
    TrainPlan { cars: cars as u32, bytes, gap_ns: (1e9 / per_s).min(1e9) as u32, lead_ns: 0 }.bounded()
}

/// A train of which no queue drops a packet.
fn loss_plan(target: &Target, hops: &[Settings]) -> TrainPlan {
    let link_bytes = f64::from(u32::from(SMALL) + HEADER_BYTES);
    let per_s =
        target.payable(hops, link_bytes).map_or(UNLIMITED_PER_S, |rate| BELOW * rate / 8.0 / link_bytes);
    // A trace may have outages, during which packets fill the queue.
    plan(per_s.min(UNLIMITED_PER_S) * if target.steady { 1.0 } else { 0.1 }, SMALL, 50.0)
}

/// A train that is slightly faster than the link; `None` where the link has no steady rate.
fn rate_plan(target: &Target, hops: &[Settings]) -> Option<TrainPlan> {
    let rate = target.rate_bits_per_s.filter(|_| target.steady)?;
    // The packets are so large that there are about a hundred of them, where possible.
    let link_bytes = (rate / 8.0 * TRAIN_S / 100.0).clamp(110.0, 1514.0).floor();
    let per_s = ABOVE * target.payable(hops, link_bytes)? / 8.0 / link_bytes;
    let plan = plan(per_s, (link_bytes - f64::from(HEADER_BYTES)) as u16, 50.0);
    // A queue that is half full keeps the link busy while a sender on a busy machine sleeps.
    let queue_bytes = hops.iter().map(|hop| hop.queue_bytes).min().unwrap_or(0);
    let half_s = queue_bytes as f64 * 4.0 / rate;
    Some(TrainPlan { lead_ns: (half_s.min(LEAD_S) * 1e9) as u32, ..plan })
}

/// The rate of the link, from how fast a train arrived that was sent faster than the link.
fn rate(
    arrived: &Arrivals,
    plan: TrainPlan,
    target: &Target,
    hops: &[Settings],
    lost: Measured,
) -> Option<(Measured, Option<Note>)> {
    let asked = target.rate_bits_per_s?;
    let payable = target.payable(hops, plan.link_bytes())?;
    if arrived.bytes_per_s() <= 0.0 || lost.value >= 1.0 {
        return None;
    }
    // Packets that the wire lost used their share of the rate, and so did the overhead of each.
    let sent_for = |lost: f64| arrived.bytes_per_s() * 8.0 / (1.0 - lost) * (asked / payable);
    let value = sent_for(lost.value);
    let sent = arrived.sent_in_ns.map_or(f64::INFINITY, |took_ns| {
        f64::from(plan.cars) * plan.link_bytes() * 8e9 / took_ns as f64 * (asked / payable)
    });
    let note = (value < 0.99 * asked && sent < 1.02 * asked).then_some(Note::AtLeast);
    // The uncertainty that jitter causes in a slope over this many packets within this time.
    let seconds = f64::from(plan.cars) * f64::from(plan.gap_ns) / 1e9;
    let relative =
        1.96 * (target.jitter_s + 100e-6) * 12.0_f64.sqrt() / f64::from(arrived.cars).sqrt() / seconds;
    // Where the setting has no loss and no packet was lost, the loss is certain.
    let (fewest, most) =
        if target.loss > 0.0 { (lost.low, lost.high.min(0.99)) } else { (lost.value, lost.value) };
    Some((
        Measured { value, low: sent_for(fewest) * (1.0 - relative), high: sent_for(most) * (1.0 + relative) },
        note,
    ))
}

fn rows(side: Side, target: &Target, seen: &DirectionMeasurements, sending_s: f64) -> [Judged; 4] {
    let nothing = seen.delays_s.is_empty().then_some(Note::NothingArrived);
    let row =
        |quantity, asked, measured: Option<Measured>, note| Judged { side, quantity, asked, measured, note };
    let moments = moments(&seen.delays_s);
    let mean = || moments.map(|(mean, _)| mean);
    let delay = if target.lopsided { mean() } else { median(&seen.delays_s) };
    let delay = delay.map(|delay| Measured {
        value: delay.value - sending_s,
        low: delay.low - sending_s,
        high: delay.high - sending_s,
    });
    let (rate, note) = seen.rate.map_or((None, None), |(rate, note)| (Some(rate), note));
    let changes = (!target.steady).then_some(Note::Changes);
    [
        row(Quantity::Delay, Some(target.delay_s), delay, nothing),
        row(Quantity::Jitter, Some(target.jitter_s), moments.map(|(_, deviation)| deviation), nothing),
        row(Quantity::Rate, target.rate_bits_per_s, rate, nothing.or(changes).or(note)),
        row(Quantity::Loss, Some(target.loss), seen.loss, nothing),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(up: &str, down: &str) -> (u32, i64) {
        ping_pace(&[up, down].map(|hop| Target::of(&[hop.parse().unwrap()])))
    }

    #[test]
    fn pings_use_half_of_a_slow_link_at_most() {
        assert_eq!(pace("delay=20ms", "rate=10mbit"), (PINGS, PING_EVERY_NS));
        // 75 bytes at 64 kbit/s take 9.375 ms; 1075 bytes at 1 Mbit/s take 8.6 ms.
        assert_eq!(pace("rate=64kbit", "rate=10mbit"), (PINGS, 18_750_000));
        assert_eq!(pace("", "rate=1mbit overhead=1000"), (PINGS, 17_200_000));
        // The slowest link that there is takes 0.6 s for each.
        assert_eq!(pace("rate=1kbit", ""), (FEWEST_PINGS, 1_200_000_000));
    }
}
