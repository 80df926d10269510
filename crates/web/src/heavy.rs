//! Runs heavy work, such as analysing a run: one piece at a time, on a thread at low priority, since a measurement may be running
//! on the same machine.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};

/// The longest wait for other work; after it, the request fails and has to be repeated.
const WAIT: Duration = Duration::from_secs(60);
/// The most requests that wait.
const MOST_WAITING: usize = 8;

/// The reason why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeavyError {
    #[error("the server is busy with other requests; try again")]
    Busy,
    #[error("{0}")]
    Failed(String),
    #[error("the work failed; the terminal of kendall web shows the error")]
    Lost,
}

/// Runs heavy work, one piece at a time.
#[derive(Debug)]
pub(crate) struct Heavy {
    one: Arc<Semaphore>,
    waiting: Semaphore,
}

impl Heavy {
    pub(crate) fn new() -> Self {
        Self { one: Arc::new(Semaphore::new(1)), waiting: Semaphore::new(MOST_WAITING) }
    }

    /// Runs a piece of work when it is its turn. It finishes even if its request has gone.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, HeavyError> {
        let _waits = self.waiting.try_acquire().map_err(|_| HeavyError::Busy)?;
        let turn = tokio::time::timeout(WAIT, Arc::clone(&self.one).acquire_owned()).await;
        let turn = turn.map_err(|_| HeavyError::Busy)?.map_err(|_| HeavyError::Lost)?;
        let (say, hear) = oneshot::channel();
        let thread = std::thread::Builder::new().name("heavy".into()).spawn(move || {
            // Lowering the priority can fail; the thread then runs at the default priority.
            let _ = rustix::process::setpriority_process(None, 19);
            // The request may have gone.
            let _ = say.send(work());
            drop(turn);
        });
        thread.map_err(|_| HeavyError::Busy)?;
        hear.await.map_err(|_| HeavyError::Lost)?.map_err(HeavyError::Failed)
    }
}
