//! Trains: packets sent at a steady pace, and the account of which arrive.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use kendall_record::clock::now_ns;

use super::HEADER_BYTES;
use super::message::{Message, TrainPlan};
use crate::pace::sleep_until;

/// The longest train, in packets and in ns.
pub(crate) const MOST_CARS: u32 = 50_000;
const LONGEST_NS: u64 = 5_000_000_000;
/// The number of times that the end of a train is sent, since it may be lost.
const GOODBYES: u32 = 3;
/// A packet that is due within this time is sent without sleeping first: sleeping takes about as long.
const IN_TIME_NS: i64 = 20_000;

impl TrainPlan {
    /// The plan within the limits: no request makes a server send for long.
    pub(crate) fn bounded(self) -> Self {
        let fits = LONGEST_NS.checked_div(u64::from(self.gap_ns)).unwrap_or(u64::MAX);
        let cars = self.cars.min(MOST_CARS).min(u32::try_from(fits).unwrap_or(u32::MAX));
        Self { cars, bytes: self.bytes.clamp(64, 1472), ..self }
    }

    /// The length of the train, in ns.
    pub(crate) fn takes_ns(&self) -> i64 {
        i64::from(self.cars) * i64::from(self.gap_ns)
    }

    /// The size of each packet on the link, in bytes.
    pub(crate) fn link_bytes(&self) -> f64 {
        f64::from(u32::from(self.bytes) + HEADER_BYTES)
    }
}

/// Sends a train and its end. Returns how long the train took, in ns.
pub(crate) fn send(socket: &UdpSocket, to: SocketAddr, train: u32, plan: TrainPlan) -> io::Result<i64> {
    let start_ns = now_ns();
    let mut payload = vec![0; usize::from(plan.bytes)];
    for number in 0..plan.cars {
        let due_ns = start_ns + i64::from(number) * i64::from(plan.gap_ns) - i64::from(plan.lead_ns);
        if due_ns - now_ns() > IN_TIME_NS {
            sleep_until(due_ns);
        }
        let (bytes, length) = Message::Car { train, number }.encode();
        payload[..length].copy_from_slice(&bytes[..length]);
        send_once(socket, to, &payload)?;
    }
    let took_ns = now_ns() - start_ns;
    let (bytes, length) = Message::Sent { train, took_ns }.encode();
    for goodbye in 1..=GOODBYES {
        sleep_until(start_ns + took_ns + i64::from(goodbye) * 10_000_000);
        send_once(socket, to, &bytes[..length])?;
    }
    Ok(took_ns)
}

/// Sends a datagram. The machine drops it if a buffer is full, and that loss is measured.
pub(crate) fn send_once(socket: &UdpSocket, to: SocketAddr, payload: &[u8]) -> io::Result<()> {
    match socket.send_to(payload, to) {
        Err(error)
            if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused)
                && error.raw_os_error() != Some(rustix::io::Errno::NOBUFS.raw_os_error()) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// The part of a train that has arrived.
#[derive(Debug)]
pub(crate) struct Arrivals {
    pub(crate) train: u32,
    /// Which packets have arrived; a copy does not count again.
    seen: Vec<bool>,
    pub(crate) cars: u32,
    /// The instant at which the first packet arrived.
    first_ns: i64,
    /// Sums over the packets after the first, of the bytes and of the seconds since then.
    line: Line,
    /// The rate measured by the other end, where it received the train.
    told_bytes_per_s: Option<f64>,
    /// How long the train took to send, once that is known.
    pub(crate) sent_in_ns: Option<i64>,
}

impl Arrivals {
    pub(crate) fn of(train: u32) -> Self {
        let line = Line::default();
        let (told_bytes_per_s, sent_in_ns) = (None, None);
        Self { train, seen: Vec::new(), cars: 0, first_ns: 0, line, told_bytes_per_s, sent_in_ns }
    }

    /// The account that the other end sent of a train that took this long to send.
    pub(crate) fn reported(train: u32, cars: u32, bytes_per_s: f64, took_ns: i64) -> Self {
        let told_bytes_per_s = Some(bytes_per_s);
        Self { cars, told_bytes_per_s, sent_in_ns: Some(took_ns), ..Self::of(train) }
    }

    /// Counts a packet, with its size on the link.
    pub(crate) fn book(&mut self, number: u32, link_bytes: f64, at_ns: i64) {
        if number >= MOST_CARS {
            return;
        }
        let index = number as usize;
        if self.seen.len() <= index {
            self.seen.resize(index + 1, false);
        }
        if std::mem::replace(&mut self.seen[index], true) {
            return;
        }
        if self.cars == 0 {
            self.first_ns = at_ns;
        }
        self.line.add((at_ns - self.first_ns) as f64 / 1e9, f64::from(self.cars) * link_bytes);
        self.cars += 1;
    }

    /// The rate at which the packets arrived, in bytes/s on the link: the slope of bytes over time, which an event of a single
    /// packet hardly changes. 0 where too few packets arrived.
    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.told_bytes_per_s.or_else(|| self.line.slope()).unwrap_or(0.0)
    }
}

/// The slope of y over x by least squares.
#[derive(Debug, Default)]
struct Line {
    count: f64,
    mean_x: f64,
    mean_y: f64,
    squares_x: f64,
    products: f64,
}

impl Line {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        let from_x = x - self.mean_x;
        self.mean_x += from_x / self.count;
        self.mean_y += (y - self.mean_y) / self.count;
        self.squares_x += from_x * (x - self.mean_x);
        self.products += from_x * (y - self.mean_y);
    }

    fn slope(&self) -> Option<f64> {
        (self.count > 2.0 && self.squares_x > 0.0).then(|| self.products / self.squares_x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_train_is_its_slope_whatever_is_lost_doubled_or_shaken() {
        let mut arrivals = Arrivals::of(1);
        for number in 0..2_000_u32 {
            let shaken_ns = i64::from(number * 7919 % 1000) * 1_000;
            let at_ns = 77_000_000 + i64::from(number) * 1_000_000 + shaken_ns;
            arrivals.book(number, 1500.0, at_ns);
            arrivals.book(number, 1500.0, at_ns);
        }
        assert_eq!(arrivals.cars, 2_000);
        assert!((arrivals.bytes_per_s() / 1.5e6 - 1.0).abs() < 1e-3, "{}", arrivals.bytes_per_s());
        arrivals.book(u32::MAX, 1500.0, 0);
        assert_eq!(arrivals.cars, 2_000, "a number beyond any train takes no memory");
    }

    #[test]
    fn no_plan_keeps_a_server_busy_for_long() {
        let plan =
            TrainPlan { cars: u32::MAX, bytes: u16::MAX, gap_ns: u32::MAX, lead_ns: u32::MAX }.bounded();
        assert!(plan.takes_ns() <= LONGEST_NS as i64 && plan.bytes <= 1472);
        assert_eq!(TrainPlan { cars: u32::MAX, bytes: 0, gap_ns: 0, lead_ns: 0 }.bounded().cars, MOST_CARS);
    }
}
