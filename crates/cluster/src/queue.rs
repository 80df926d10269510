//! The work queue and its consumers.

use std::fmt;
use std::time::Duration;

use async_nats::jetstream::{self, consumer, stream};

use crate::error::ClusterError;
use crate::protocol::{MOST_BYTES, Queue, STREAM, WORK};

/// How long a chunk is with a worker that gives no sign before it is delivered to another one. A worker that tests gives one
/// every [`PROGRESS`].
const ACK_WAIT: Duration = Duration::from_secs(5);
/// How often a worker shows that it still tests a chunk.
pub(crate) const PROGRESS: Duration = Duration::from_millis(1500);
/// What the queue may hold; far more than coordinators publish.
const MOST_CHUNKS: i64 = 1_000_000;
/// The most workers that wait for a chunk at the same time.
const MOST_WAITING: i64 = 16_384;
const MOST_QUEUE_BYTES: i64 = 1 << 30;
/// A chunk that no worker took for this long is dropped; its coordinator publishes it again.
const MOST_AGE: Duration = Duration::from_secs(3600);

/// Creates the queue and its consumers, if they do not exist.
pub(crate) async fn create_queue(context: &jetstream::Context) -> Result<stream::Stream, ClusterError> {
    let config = stream::Config {
        name: STREAM.into(),
        subjects: vec![WORK.into()],
        retention: stream::RetentionPolicy::WorkQueue,
        discard: stream::DiscardPolicy::New,
        max_messages: MOST_CHUNKS,
        max_bytes: MOST_QUEUE_BYTES,
        max_message_size: MOST_BYTES as i32,
        max_age: MOST_AGE,
        duplicate_window: Duration::from_secs(120),
        storage: stream::StorageType::File,
        ..stream::Config::default()
    };
    let failed = |error: &dyn fmt::Display| ClusterError::Queue(error.to_string());
    let stream = context.get_or_create_stream(config).await.map_err(|error| failed(&error))?;
    for queue in Queue::ALL {
        create_consumer(&stream, queue).await?;
    }
    Ok(stream)
}

/// Creates the consumer of a queue, if it does not exist.
pub(crate) async fn create_consumer(stream: &stream::Stream, queue: Queue) -> Result<(), ClusterError> {
    let config = consumer::pull::Config {
        durable_name: Some(queue.name().into()),
        filter_subject: queue.filter(),
        ack_policy: consumer::AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        max_ack_pending: MOST_CHUNKS,
        max_waiting: MOST_WAITING,
        ..consumer::pull::Config::default()
    };
    let created = stream.get_or_create_consumer(queue.name(), config).await;
    created.map(drop).map_err(|error| ClusterError::Queue(error.to_string()))
}
