//! The settings of a link, and their notation.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use crate::codel::{CoDel, Warning};
use crate::fault::Fault;
use crate::fq_codel::FqCoDel;
use crate::jitter::{Jitter, Law, Reorder};
use crate::loss::Loss;
use crate::names::NAMES;
use crate::quantity::{
    bits_per_s, bytes, duration_ns, rate_words, share, share_words, size_words, time_words,
};
use crate::queue::Aqm;
use crate::rate::{Piece, Rate};

/// The settings of one direction of a link. The default changes nothing: no delay, no limit, no loss.
///
/// The notation is [`NAMES`] with values: `delay=20ms jitter=2ms normal rate=10mbit loss=1% burst 5 aqm=codel`, and the
/// displayed settings parse back to the same ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The time from when a packet's last bit leaves until it arrives, in ns.
    pub delay_ns: i64,
    /// The variation of the delay between packets.
    pub jitter: Jitter,
    /// The rate at which packets are sent.
    pub rate: Rate,
    /// Bytes that a packet takes in addition to its size, such as a link's own header.
    pub overhead_bytes: u32,
    /// The most bytes that wait to be sent. The packet that is being sent does not wait.
    pub queue_bytes: u64,
    /// The management of the queue.
    pub aqm: Aqm,
    /// The loss of packets.
    pub loss: Loss,
    /// The probability that one bit of a packet is flipped.
    pub corruption: f64,
    /// The probability that a packet arrives twice.
    pub duplication: f64,
    /// The reordering of packets.
    pub reorder: Option<Reorder>,
    /// The most bytes on the wire: memory, not a property of the link. Packets beyond it are dropped and counted.
    pub wire_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            delay_ns: 0,
            jitter: Jitter::default(),
            rate: Rate::Unlimited,
            overhead_bytes: 0,
            queue_bytes: 256_000,
            aqm: Aqm::DropTail,
            loss: Loss::None,
            corruption: 0.0,
            duplication: 0.0,
            reorder: None,
            wire_bytes: 64_000_000,
        }
    }
}

/// The longest delay and jitter, in ns: an hour.
const LONGEST_NS: i64 = 3_600_000_000_000;
/// The most bytes for a queue or for the wire.
const MOST_BYTES: u64 = 4_000_000_000;
/// The range of rates, in bits/s.
const SLOWEST: u64 = 1_000;
const FASTEST: u64 = 1_000_000_000_000;
/// The most pieces of a trace of rates, and the longest piece, in ns: a day.
const MOST_PIECES: usize = 100_000;
const LONGEST_PIECE_NS: i64 = 86_400_000_000_000;

impl Settings {
    /// Sets one of [`NAMES`].
    ///
    /// # Errors
    ///
    /// Fails if there is no such setting, or its value cannot be parsed.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        match name {
            "delay" => self.delay_ns = duration_ns(value)?,
            "jitter" => self.jitter = value.parse()?,
            "rate" => self.rate = value.parse()?,
            "overhead" => {
                let fault = |_| Fault::OutOfBounds { setting: "overhead", bounds: "at most 1 MB" };
                self.overhead_bytes = u32::try_from(bytes(value)?).map_err(fault)?;
            }
            "queue" => self.queue_bytes = bytes(value)?,
            "aqm" => self.aqm = value.parse()?,
            "loss" => self.loss = value.parse()?,
            "corrupt" => self.corruption = share(value)?,
            "duplicate" => self.duplication = share(value)?,
            "reorder" => self.reorder = reorder(value)?,
            "wire" => self.wire_bytes = bytes(value)?,
            _ => return Err(Fault::NoSuchSetting { name: name.to_owned() }),
        }
        Ok(())
    }

    /// Sets the settings of a text: `rate=10mbit queue=64k`. A word without `=` belongs to the value before it.
    ///
    /// # Errors
    ///
    /// Fails like [`set`](Self::set), and if a name is repeated.
    pub fn apply(&mut self, text: &str) -> Result<(), Fault> {
        let mut values: Vec<(&str, String)> = Vec::new();
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some((name, _)) if values.iter().any(|(other, _)| *other == name) => {
                    return Err(Fault::Twice { name: name.to_owned() });
                }
                Some((name, value)) => values.push((name, value.to_owned())),
                None => match values.last_mut() {
                    Some((_, value)) => *value = format!("{value} {word}"),
                    None => return Err(Fault::NoSuchSetting { name: word.to_owned() }),
                },
            }
        }
        values.into_iter().try_for_each(|(name, value)| self.set(name, &value))
    }

    /// Checks that the settings are valid.
    ///
    /// # Errors
    ///
    /// Returns the first value that is out of bounds or contradicts another.
    pub fn check(&self) -> Result<(), Fault> {
        let within = |setting, bounds, holds: bool| {
            if holds { Ok(()) } else { Err(Fault::OutOfBounds { setting, bounds }) }
        };
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        let is_time = |ns: i64| (0..=LONGEST_NS).contains(&ns);
        within("delay", "from 0 to an hour", is_time(self.delay_ns))?;
        within("jitter", "from 0 to an hour", is_time(self.jitter.spread_ns))?;
        within("overhead", "at most 1 MB", self.overhead_bytes <= 1_000_000)?;
        within("queue", "from 1500 bytes to 4 GB", (1_500..=MOST_BYTES).contains(&self.queue_bytes))?;
        within("wire", "from 1500 bytes to 4 GB", (1_500..=MOST_BYTES).contains(&self.wire_bytes))?;
        within("corrupt", "from 0 to 100 %", is_share(self.corruption))?;
        within("duplicate", "from 0 to 100 %", is_share(self.duplication))?;
        self.check_rate()?;
        self.check_aqm()?;
        let shares = match self.loss {
            Loss::None => [0.0; 4],
            Loss::Random { share } => [share, 0.0, 0.0, 0.0],
            Loss::GilbertElliott { worsens, recovers, lost_in_bad, lost_in_good } => {
                [worsens, recovers, lost_in_bad, lost_in_good]
            }
        };
        within("loss", "from 0 to 100 %", shares.into_iter().all(is_share))?;
        if let Some(reorder) = self.reorder {
            within("reorder", "a share from 0 to 100 %", is_share(reorder.share))?;
            within("reorder", "by a distance of 1 or more", reorder.distance > 0)?;
            within("reorder", "within 0 to an hour", is_time(reorder.within_ns))?;
        }
        if self.jitter.spread_ns > self.delay_ns {
            let (jitter, delay) = (time_words(self.jitter.spread_ns), time_words(self.delay_ns));
            return Err(Fault::MoreJitterThanDelay { jitter, delay });
        }
        let on_wire_ns = (self.delay_ns + self.jitter.furthest_ns()) as f64;
        let needed_bytes =
            self.rate.peak_bits_per_s().map_or(0.0, |rate| rate as f64 / 8e9 * on_wire_ns) as u64;
        if needed_bytes > self.wire_bytes {
            return Err(Fault::WireTooSmall { needed_bytes, wire_bytes: self.wire_bytes });
        }
        Ok(())
    }

    fn check_rate(&self) -> Result<(), Fault> {
        let fault = |bounds| Err(Fault::OutOfBounds { setting: "rate", bounds });
        match &self.rate {
            Rate::Unlimited => Ok(()),
            Rate::Constant { bits_per_s } if (SLOWEST..=FASTEST).contains(bits_per_s) => Ok(()),
            Rate::Constant { .. } => fault("from 1kbit to 1000gbit"),
            Rate::Trace(pieces) => {
                if !(1..=MOST_PIECES).contains(&pieces.len()) {
                    return fault("made of 1 to 100 000 pieces");
                }
                if !pieces.iter().all(|piece| (1_000..=LONGEST_PIECE_NS).contains(&piece.duration_ns)) {
                    return fault("made of pieces from 1us to a day");
                }
                if pieces.iter().any(|piece| piece.bits_per_s > FASTEST) {
                    return fault("at most 1000gbit in each of its pieces");
                }
                if self.rate.mean_bits_per_s().is_some_and(|mean| mean < SLOWEST as f64) {
                    return fault("at least 1kbit in the mean over its pieces");
                }
                Ok(())
            }
        }
    }

    fn check_aqm(&self) -> Result<(), Fault> {
        let codel = match self.aqm {
            Aqm::DropTail => return Ok(()),
            Aqm::CoDel(codel) => codel,
            Aqm::FqCoDel(FqCoDel { codel, quantum_bytes }) => {
                if !(64..=1_000_000).contains(&quantum_bytes) {
                    return Err(Fault::OutOfBounds {
                        setting: "aqm",
                        bounds: "with a quantum from 64 bytes to 1 MB",
                    });
                }
                codel
            }
        };
        let bounds = "with a target below its interval, and that from 1us to an hour";
        let possible = (1_000..=LONGEST_NS).contains(&codel.interval_ns)
            && (0..codel.interval_ns).contains(&codel.target_ns);
        if possible { Ok(()) } else { Err(Fault::OutOfBounds { setting: "aqm", bounds }) }
    }
}

impl FromStr for Settings {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let mut settings = Self::default();
        settings.apply(text)?;
        settings.check()?;
        Ok(settings)
    }
}

impl Display for Settings {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        let mut separator = "";
        let mut write = |name, value: String, changed: bool| {
            if !changed {
                return Ok(());
            }
            let result = write!(f, "{separator}{name}={value}");
            separator = " ";
            result
        };
        write("delay", time_words(self.delay_ns), self.delay_ns != 0)?;
        write("jitter", self.jitter.to_string(), self.jitter.spread_ns != 0)?;
        write("rate", self.rate.to_string(), self.rate != default.rate)?;
        write("overhead", size_words(self.overhead_bytes.into()), self.overhead_bytes != 0)?;
        write("queue", size_words(self.queue_bytes), self.queue_bytes != default.queue_bytes)?;
        write("aqm", self.aqm.to_string(), self.aqm != default.aqm)?;
        write("loss", self.loss.to_string(), self.loss != default.loss)?;
        write("corrupt", share_words(self.corruption), self.corruption != 0.0)?;
        write("duplicate", share_words(self.duplication), self.duplication != 0.0)?;
        let reorder = self.reorder.map(|reorder| reorder.to_string());
        write("reorder", reorder.unwrap_or_default(), self.reorder.is_some())?;
        write("wire", size_words(self.wire_bytes), self.wire_bytes != default.wire_bytes)
    }
}

/// The description of a setting's value in the table.
fn expected(setting: &str) -> &'static str {
    NAMES.iter().find(|(name, _)| *name == setting).map_or("", |(_, expected)| expected)
}

fn not_a(setting: &'static str, text: &str) -> Fault {
    Fault::NotAValue { setting, text: text.trim().to_owned(), expected: expected(setting) }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

impl FromStr for Jitter {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let (spread, law) = match words(text)[..] {
            [spread] | [spread, "uniform"] => (spread, Law::Uniform),
            [spread, "normal"] => (spread, Law::Normal),
            [spread, "pareto-normal" | "paretonormal"] => (spread, Law::ParetoNormal),
            _ => return Err(not_a("jitter", text)),
        };
        Ok(Self { spread_ns: duration_ns(spread)?, law })
    }
}

impl Display for Jitter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let law = match self.law {
            Law::Uniform => "",
            Law::Normal => " normal",
            Law::ParetoNormal => " pareto-normal",
        };
        write!(f, "{}{law}", time_words(self.spread_ns))
    }
}

impl FromStr for Rate {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let pieces: Vec<Vec<&str>> = text.split(',').map(words).collect();
        match &pieces[..] {
            [one] if one[..] == ["unlimited"] => Ok(Self::Unlimited),
            [one] if one.len() == 1 => Ok(Self::Constant { bits_per_s: bits_per_s(one[0])? }),
            pieces => pieces
                .iter()
                .map(|piece| match piece[..] {
                    [rate, duration] => {
                        Ok(Piece { bits_per_s: bits_per_s(rate)?, duration_ns: duration_ns(duration)? })
                    }
                    _ => Err(not_a("rate", text)),
                })
                .collect::<Result<_, _>>()
                .map(Self::Trace),
        }
    }
}

impl Display for Rate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Constant { bits_per_s } => f.write_str(&rate_words(*bits_per_s)),
            Self::Trace(pieces) => {
                let words = |piece: &Piece| {
                    format!("{} {}", rate_words(piece.bits_per_s), time_words(piece.duration_ns))
                };
                f.write_str(&pieces.iter().map(words).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl FromStr for Aqm {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let words = words(text);
        let Some((name, parameters)) = words.split_first() else { return Err(not_a("aqm", text)) };
        let fair = match *name {
            "drop-tail" | "droptail" if parameters.is_empty() => return Ok(Self::DropTail),
            "codel" => false,
            "fq-codel" | "fq_codel" => true,
            _ => return Err(not_a("aqm", text)),
        };
        let mut settings = FqCoDel::default();
        let mut rest = parameters.iter();
        while let Some(parameter) = rest.next() {
            let mut value = || rest.next().copied().ok_or_else(|| not_a("aqm", text));
            match *parameter {
                "target" => settings.codel.target_ns = duration_ns(value()?)?,
                "interval" => settings.codel.interval_ns = duration_ns(value()?)?,
                "quantum" if fair => {
                    settings.quantum_bytes =
                        u32::try_from(bytes(value()?)?).map_err(|_| not_a("aqm", text))?;
                }
                "ecn" => settings.codel.warning = Warning::Mark,
                "no-ecn" | "noecn" => settings.codel.warning = Warning::Drop,
                _ => return Err(not_a("aqm", text)),
            }
        }
        Ok(if fair { Self::FqCoDel(settings) } else { Self::CoDel(settings.codel) })
    }
}

impl Display for Aqm {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (codel, quantum) = match self {
            Self::DropTail => return f.write_str("drop-tail"),
            Self::CoDel(codel) => (codel, None),
            Self::FqCoDel(settings) => (&settings.codel, Some(settings.quantum_bytes)),
        };
        f.write_str(if quantum.is_some() { "fq-codel" } else { "codel" })?;
        let default = CoDel::default();
        if codel.target_ns != default.target_ns {
            write!(f, " target {}", time_words(codel.target_ns))?;
        }
        if codel.interval_ns != default.interval_ns {
            write!(f, " interval {}", time_words(codel.interval_ns))?;
        }
        if let Some(quantum) = quantum.filter(|quantum| *quantum != FqCoDel::default().quantum_bytes) {
            write!(f, " quantum {}", size_words(quantum.into()))?;
        }
        if codel.warning == Warning::Drop { f.write_str(" no-ecn") } else { Ok(()) }
    }
}

impl FromStr for Loss {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        match words(text)[..] {
            ["none"] => Ok(Self::None),
            [one] => match share(one)? {
                0.0 => Ok(Self::None),
                share => Ok(Self::Random { share }),
            },
            [share_of_all, "burst", length] => length
                .parse()
                .ok()
                .and_then(|length| share(share_of_all).map(|share| Self::bursts(share, length)).transpose())
                .ok_or_else(|| not_a("loss", text))?,
            ["gilbert-elliott" | "gemodel", worsens, recovers, lost_in_bad, lost_in_good] => {
                Ok(Self::GilbertElliott {
                    worsens: share(worsens)?,
                    recovers: share(recovers)?,
                    lost_in_bad: share(lost_in_bad)?,
                    lost_in_good: share(lost_in_good)?,
                })
            }
            _ => Err(not_a("loss", text)),
        }
    }
}

impl Display for Loss {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::None => f.write_str("none"),
            Self::Random { share } => f.write_str(&share_words(share)),
            Self::GilbertElliott { worsens, recovers, lost_in_bad, lost_in_good } => write!(
                f,
                "gilbert-elliott {} {} {} {}",
                share_words(worsens),
                share_words(recovers),
                share_words(lost_in_bad),
                share_words(lost_in_good)
            ),
        }
    }
}

/// The packets that are overtaken; by one other by default, and within 50 ms.
fn reorder(text: &str) -> Result<Option<Reorder>, Fault> {
    let words = words(text);
    let Some((first, parameters)) = words.split_first() else { return Err(not_a("reorder", text)) };
    if *first == "none" && parameters.is_empty() {
        return Ok(None);
    }
    let mut reorder = Reorder { share: share(first)?, distance: 1, within_ns: 50_000_000 };
    for parameter in parameters.chunks(2) {
        match *parameter {
            ["distance", distance] => {
                reorder.distance = distance.parse().map_err(|_| not_a("reorder", text))?;
            }
            ["within", within] => reorder.within_ns = duration_ns(within)?,
            _ => return Err(not_a("reorder", text)),
        }
    }
    Ok(Some(reorder))
}

impl Display for Reorder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let within = time_words(self.within_ns);
        write!(f, "{} distance {} within {within}", share_words(self.share), self.distance)
    }
}
