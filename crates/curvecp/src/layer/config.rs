//! Settings of a connection, and its statistics.

use std::time::Duration;

use crate::congestion::Algorithm;

/// The settings of a message layer.
#[derive(Clone, Debug)]
pub struct MessageConfig {
    /// The congestion control.
    pub algorithm: Algorithm,
    /// The most bytes that may wait for the application to read; at least 131,072, the reference's constant.
    /// The window starts there and grows while the application keeps up.
    pub max_receive_window: u64,
    /// The most bytes that wait to be sent or acknowledged. The buffer follows the congestion window up to this.
    pub max_send_buffer: u64,
    /// The connection fails after this time without a message from the peer; `None` waits for ever.
    pub idle_timeout: Option<Duration>,
    /// A ping leaves after this time without a message from the peer, so that a live peer is never idle.
    pub keep_alive: Option<Duration>,
    /// How long a closed connection still acknowledges retransmissions of a peer that missed the last acknowledgment.
    pub time_wait: Duration,
    /// Whether to send feedback in the padding. Without it the layer sends what the reference could have sent.
    pub feedback: bool,
}

impl Default for MessageConfig {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            max_receive_window: 16 << 20,
            max_send_buffer: 16 << 20,
            idle_timeout: Some(Duration::from_secs(60)),
            keep_alive: Some(Duration::from_secs(20)),
            time_wait: Duration::from_secs(20),
            feedback: true,
        }
    }
}

/// The end of a connection at which a message layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The endpoint sends the first message: the server does not know of the connection before.
    Client,
    /// The endpoint answers.
    Server,
}

/// The reason why a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No message came from the peer for the idle time-out.
    #[error("the peer has not answered within the idle time-out")]
    IdleTimeout,
}

/// The phase of a connection's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerState {
    /// At least one of the streams is open.
    Open,
    /// Both streams are over; retransmissions of the peer are still acknowledged.
    Closing,
    /// Nothing more happens. What was not read yet can still be read.
    Drained,
    /// The peer has vanished.
    Failed(Failure),
}

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerStats {
    /// Messages with a number that were sent.
    pub messages_sent: u64,
    /// Pure acknowledgments that were sent.
    pub acks_sent: u64,
    /// Messages that were received and understood.
    pub messages_received: u64,
    /// Messages that were declared lost.
    pub lost: u64,
    /// Congestion events that turned out to be spurious.
    pub spurious_events: u64,
    /// Probe time-outs.
    pub timeouts: u64,
    /// Bytes of messages in flight.
    pub in_flight_bytes: u64,
    /// The congestion window in bytes of messages.
    pub window_bytes: u64,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Bytes of the longest message that the path is known to carry.
    pub longest_message: usize,
}
