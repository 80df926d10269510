//! A file of a talk, and how far it is.

use kendall_chatcli::size;
use kendall_talk::FileId;

/// A file that is offered or on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) file: FileId,
    pub(crate) title: String,
    pub(crate) size: u64,
    /// The number of its line in the conversation.
    pub(crate) line: u64,
    /// Whether the contact waits for the user's answer.
    pub(crate) is_asked: bool,
    /// The instant at which the first bytes arrived, and their number.
    begun: Option<(u64, u64)>,
}

impl Transfer {
    /// A file that was just offered.
    pub(crate) fn new(file: FileId, title: String, size: u64, line: u64) -> Self {
        Self { file, title, size, line, is_asked: matches!(file, FileId::Peer(_)), begun: None }
    }

    /// Takes how many bytes have arrived; the line that says so.
    pub(crate) fn progress(&mut self, bytes: u64, now_ms: u64) -> String {
        let Self { title, size: total, .. } = self;
        let (since_ms, before) = *self.begun.get_or_insert((now_ms, bytes));
        let share = if *total == 0 { 100 } else { u128::from(bytes) * 100 / u128::from(*total) };
        let line = format!("{title}: {share} % of {}", size(*total));
        let (passed_ms, moved) = (now_ms.saturating_sub(since_ms), bytes.saturating_sub(before));
        if passed_ms < 1000 || moved == 0 {
            return line;
        }
        let rate = moved as f64 * 1000.0 / passed_ms as f64;
        let left_s = (total.saturating_sub(bytes) as f64 / rate).ceil() as u64;
        format!("{line}, {}/s, {} left", size(rate as u64), clock(left_s))
    }
}

/// `5 s`, `1:05`, `2:00:05`.
fn clock(seconds: u64) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest} s"),
        (0, _) => format!("{minutes}:{rest:02}"),
        _ => format!("{hours}:{minutes:02}:{rest:02}"),
    }
}
