//! Log lines about clients that are not admitted, at a bounded rate: any key can cause them. No clock: the caller passes instants in.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use kendall_curve::curvecp::PublicKey;

/// Clients that are not logged again, at most: one that repeats its request until it gives up has one line.
const REMEMBERED: usize = 64;
/// The time between two lines, at least.
const INTERVAL: Duration = Duration::from_secs(1);

/// The clients of a server that were refused of late.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog {
    logged: VecDeque<(PublicKey, SocketAddr)>,
    last: Option<Instant>,
    /// Refusals of other clients since the last line.
    suppressed: u64,
}

impl RefusalLog {
    /// Logs that a client is not admitted, unless it was logged before or the last line is too recent.
    pub(crate) fn warn(&mut self, now: Instant, key: &PublicKey, address: SocketAddr) {
        let Some(suppressed) = self.suppressed_before(now, key, address) else { return };
        let more = match suppressed {
            0 => String::new(),
            count => format!("; {count} refusals since the last line were not logged"),
        };
        tracing::warn!(
            "{key:?} at {address} is not admitted: its key is not in the file of authorised keys{more}"
        );
    }

    /// How many refusals were not logged since the last line, if there is to be a line now.
    fn suppressed_before(&mut self, now: Instant, key: &PublicKey, address: SocketAddr) -> Option<u64> {
        let client = (*key, address);
        if self.logged.contains(&client) {
            return None;
        }
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < INTERVAL) {
            self.suppressed += 1;
            return None;
        }
        if self.logged.len() == REMEMBERED {
            self.logged.pop_front();
        }
        self.logged.push_back(client);
        self.last = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_one_line_and_all_together_one_in_a_second() {
        let (mut log, start) = (RefusalLog::default(), Instant::now());
        let mut line = |after_ms: u64, key: u8, port: u16| {
            let address = SocketAddr::from(([192, 0, 2, 1], port));
            log.suppressed_before(start + Duration::from_millis(after_ms), &PublicKey([key; 32]), address)
        };
        assert_eq!(line(0, 1, 1), Some(0));
        assert_eq!((line(10, 1, 1), line(5000, 1, 1)), (None, None), "it repeats its request");
        assert_eq!(line(6000, 2, 1), Some(0));
        assert_eq!((line(6500, 3, 1), line(6999, 4, 1), line(6999, 4, 1)), (None, None, None));
        assert_eq!(line(7000, 3, 1), Some(3), "a client that was suppressed has its line later");
        assert_eq!(line(8000, 1, 2), Some(0), "from another address");
        for key in 0..64 {
            assert_eq!(line(9000 + 1000 * u64::from(key), key, 3), Some(0));
        }
        assert_eq!(line(100_000, 1, 1), Some(0), "only the latest are remembered");
    }
}
