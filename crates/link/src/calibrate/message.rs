//! The messages between the two ends of a measurement, one datagram each. Pure functions on bytes.

/// The first bytes of every message, by which stray datagrams are recognised.
const MARK: [u8; 4] = *b"kdlc";
/// The longest message without padding, in bytes.
pub(crate) const LONGEST: usize = 4 + 1 + 4 + 3 * 8;

/// A message. Times are in ns on the clock of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Message {
    /// Client to server: answer at once.
    Ping { number: u32, sent_ns: i64 },
    /// Server to client: when the ping arrived and when this reply was sent.
    Pong { number: u32, sent_ns: i64, received_ns: i64, returned_ns: i64 },
    /// A packet of a train, padded to its size.
    Car { train: u32, number: u32 },
    /// Client to server: send such a train.
    Send { train: u32, plan: TrainPlan },
    /// The end of a train, sent to its receiver: the time that sending it took.
    Sent { train: u32, took_ns: i64 },
    /// Client to server: asks for the result of a train.
    Ask { train: u32 },
    /// Server to client: the result of a train.
    Tally { train: u32, cars: u32, bytes_per_s: f64 },
}

/// A train of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrainPlan {
    /// The number of packets.
    pub(crate) cars: u32,
    /// The payload of each packet, in bytes.
    pub(crate) bytes: u16,
    /// The time from one packet to the next, in ns.
    pub(crate) gap_ns: u32,
    /// The lead over that pace, in ns: the packets due within it are sent first, all at once.
    pub(crate) lead_ns: u32,
}

/// Fields one after the other.
struct Writer<'a> {
    bytes: &'a mut [u8; LONGEST],
    at: usize,
}

impl Writer<'_> {
    fn put(mut self, field: &[u8]) -> Self {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
        self
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }
    fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }
}

impl Message {
    /// The bytes of the message, and their number.
    pub(crate) fn encode(&self) -> ([u8; LONGEST], usize) {
        let mut bytes = [0; LONGEST];
        let writer = Writer { bytes: &mut bytes, at: 0 }.put(&MARK);
        let length = match *self {
            Self::Ping { number, sent_ns } => {
                writer.put(&[1]).put(&number.to_be_bytes()).put(&sent_ns.to_be_bytes()).at
            }
            Self::Pong { number, sent_ns, received_ns, returned_ns } => {
                writer
                    .put(&[2])
                    .put(&number.to_be_bytes())
                    .put(&sent_ns.to_be_bytes())
                    .put(&received_ns.to_be_bytes())
                    .put(&returned_ns.to_be_bytes())
                    .at
            }
            Self::Car { train, number } => {
                writer.put(&[3]).put(&train.to_be_bytes()).put(&number.to_be_bytes()).at
            }
            Self::Send { train, plan: TrainPlan { cars, bytes, gap_ns, lead_ns } } => {
                writer
                    .put(&[4])
                    .put(&train.to_be_bytes())
                    .put(&cars.to_be_bytes())
                    .put(&bytes.to_be_bytes())
                    .put(&gap_ns.to_be_bytes())
                    .put(&lead_ns.to_be_bytes())
                    .at
            }
            Self::Sent { train, took_ns } => {
                writer.put(&[5]).put(&train.to_be_bytes()).put(&took_ns.to_be_bytes()).at
            }
            Self::Ask { train } => writer.put(&[6]).put(&train.to_be_bytes()).at,
            Self::Tally { train, cars, bytes_per_s } => {
                writer
                    .put(&[7])
                    .put(&train.to_be_bytes())
                    .put(&cars.to_be_bytes())
                    .put(&bytes_per_s.to_be_bytes())
                    .at
            }
        };
        (bytes, length)
    }

    /// Decodes a message; padding may follow it. `None` where the bytes are not a valid message.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        if reader.take()? != MARK {
            return None;
        }
        let [kind] = reader.take()?;
        Some(match kind {
            1 => Self::Ping { number: reader.u32()?, sent_ns: reader.i64()? },
            2 => Self::Pong {
                number: reader.u32()?,
                sent_ns: reader.i64()?,
                received_ns: reader.i64()?,
                returned_ns: reader.i64()?,
            },
            3 => Self::Car { train: reader.u32()?, number: reader.u32()? },
            4 => {
                let (train, cars) = (reader.u32()?, reader.u32()?);
                let bytes = u16::from_be_bytes(reader.take()?);
                let (gap_ns, lead_ns) = (reader.u32()?, reader.u32()?);
                Self::Send { train, plan: TrainPlan { cars, bytes, gap_ns, lead_ns } }
            }
            5 => Self::Sent { train: reader.u32()?, took_ns: reader.i64()? },
            6 => Self::Ask { train: reader.u32()? },
            7 => Self::Tally {
                train: reader.u32()?,
                cars: reader.u32()?,
                bytes_per_s: f64::from_be_bytes(reader.take()?),
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_no_part_of_it_does() {
        let plan = TrainPlan { cars: 70_000, bytes: 1472, gap_ns: 1_200_000, lead_ns: 5 };
        for message in [
            Message::Ping { number: 7, sent_ns: -5 },
            Message::Pong { number: 7, sent_ns: 1, received_ns: i64::MAX, returned_ns: 3 },
            Message::Car { train: 1, number: u32::MAX },
            Message::Send { train: 9, plan },
            Message::Sent { train: 9, took_ns: 1 << 40 },
            Message::Ask { train: 2 },
            Message::Tally { train: 2, cars: 3, bytes_per_s: 1.25e6 },
        ] {
            let (bytes, length) = message.encode();
            assert_eq!(Message::decode(&bytes[..length]), Some(message));
            assert_eq!(Message::decode(&[&bytes[..length], &[0xff; 90]].concat()), Some(message), "padded");
            assert!((0..length).all(|cut| Message::decode(&bytes[..cut]).is_none()), "{message:?}");
        }
        assert_eq!(Message::decode(b"kdlc\x08abcdefghijkl"), None);
    }
}
