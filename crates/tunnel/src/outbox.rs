//! The packets that wait for a connection.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use kendall_linkmodel::{CoDel, CodelQueue};
use kendall_remote::frame;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use crate::error::TunnelError;
use crate::offload;
use crate::protocol::PACKET;

/// The most bytes that wait: a hundred of the largest packets.
const MOST_BYTES: u64 = 6 << 20;

/// Bytes written at once, at least, where that many wait.
const ENOUGH: usize = 64 << 10;

/// A bounded queue under CoDel.
pub(crate) struct Outbox {
    packets: Mutex<CodelQueue<Vec<u8>>>,
    filled: Notify,
    began: Instant,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        let packets = Mutex::new(CodelQueue::new(CoDel::default(), MOST_BYTES));
        Self { packets, filled: Notify::new(), began: Instant::now() }
    }

    /// Adds a packet with its offload header, as the TUN device gave them, as a frame.
    pub(crate) fn push(&self, header: &[u8], packet: &[u8]) {
        let mut framed = Vec::with_capacity(frame::HEADER + offload::BYTES + packet.len());
        let start = frame::begin(&mut framed, PACKET);
        framed.extend_from_slice(header);
        offload::swap_to_wire(&mut framed[start + frame::HEADER..]);
        framed.extend_from_slice(packet);
        frame::end(&mut framed, start);
        self.push_frame(framed);
    }

    /// Adds a frame.
    fn push_frame(&self, framed: Vec<u8>) {
        let bytes = u32::try_from(framed.len()).unwrap_or(u32::MAX);
        self.packets().push(self.now_ns(), bytes, framed);
        self.filled.notify_one();
    }

    /// How many packets were dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        self.packets().dropped()
    }

    /// Writes the packets to a stream, for ever.
    ///
    /// # Errors
    /// [`TunnelError::Lost`].
    pub(crate) async fn drain(&self, mut stream: impl AsyncWrite + Unpin) -> Result<(), TunnelError> {
        let mut batch = Vec::with_capacity(2 * ENOUGH);
        loop {
            batch.clear();
            self.take(&mut batch);
            if batch.is_empty() {
                self.filled.notified().await;
            } else {
                stream.write_all(&batch).await.map_err(TunnelError::Lost)?;
            }
        }
    }

    fn take(&self, batch: &mut Vec<u8>) {
        let now_ns = self.now_ns();
        let mut packets = self.packets();
        while batch.len() < ENOUGH {
            let Some(framed) = packets.pop(now_ns) else { return };
            batch.extend_from_slice(&framed);
        }
    }

    fn now_ns(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    fn packets(&self) -> MutexGuard<'_, CodelQueue<Vec<u8>>> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
