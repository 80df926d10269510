//! What an agent sends during a run: rows as they end, its counts, and its part at the end.

use std::sync::Arc;

use async_nats::Client;
use kendall_load::{RowBatches, RunPart};
use kendall_record::RequestRow;
use tokio::runtime::Handle;

use crate::message::{BEAT, Beat, FAILED, MOST_BYTES, PART, ROWS, write};
use crate::rows;

/// The reports of one run.
#[derive(Clone)]
pub(crate) struct Outbox {
    pub(crate) client: Client,
    pub(crate) subject: Arc<str>,
    pub(crate) runtime: Handle,
}

impl Outbox {
    async fn send(&self, kind: u8, payload: &[u8]) -> Result<(), String> {
        let message = [&[kind], payload].concat();
        let sent = self.client.publish(self.subject.to_string(), message.into()).await;
        sent.map_err(|error| error.to_string())
    }

    /// Sends rows until the run is over, on the thread that takes them.
    pub(crate) fn rows(&self, batches: RowBatches) -> Result<u64, String> {
        let mut number = 0;
        for batch in batches {
            self.some(number, &batch)?;
            number += 1;
        }
        Ok(number)
    }

    fn some(&self, number: u64, rows: &[RequestRow]) -> Result<(), String> {
        self.runtime.block_on(self.send(ROWS, &rows::encode(number, rows)))
    }

    pub(crate) async fn beat(&self, beat: &Beat) -> Result<(), String> {
        self.send(BEAT, &write(beat)).await
    }

    /// Sends the part after all rows, in pieces: its number, how many there are, and how many messages of rows.
    pub(crate) fn part(&self, part: &RunPart, messages: u64) -> Result<(), String> {
        let text = write(part);
        let pieces = text.chunks(MOST_BYTES / 2);
        let count = pieces.len() as u16;
        self.runtime.block_on(async {
            for (number, piece) in (0u16..).zip(pieces) {
                let head =
                    [&number.to_le_bytes()[..], &count.to_le_bytes(), &messages.to_le_bytes()].concat();
                self.send(PART, &[&head, piece].concat()).await?;
            }
            self.client.flush().await.map_err(|error| error.to_string())
        })
    }

    pub(crate) fn failed(&self, why: &str) {
        let why: String = why.chars().take(1000).collect();
        let _ = self.runtime.block_on(async {
            self.send(FAILED, why.as_bytes()).await?;
            self.client.flush().await.map_err(|error| error.to_string())
        });
    }
}
