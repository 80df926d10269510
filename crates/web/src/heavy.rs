//! Heavy work, such as analysing a run: one piece at a time, on a thread that gives way to all others, since beside it may run
//! what is being measured.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};

/// Who has waited this long for others is told to come again.
const WAIT: Duration = Duration::from_secs(60);
/// This many wait at most.
const MOST_WAITING: usize = 8;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeavyError {
    #[error("others have asked for so much that this has to wait; come again")]
    Busy,
    #[error("{0}")]
    Failed(String),
    #[error("this came to no end; what went wrong stands where kendall web runs")]
    Lost,
}

/// Does heavy work, one piece at a time.
#[derive(Debug)]
pub(crate) struct Heavy {
    one: Arc<Semaphore>,
    waiting: Semaphore,
}

impl Heavy {
    pub(crate) fn new() -> Self {
        Self { one: Arc::new(Semaphore::new(1)), waiting: Semaphore::new(MOST_WAITING) }
    }

    /// Does a piece of work when it is its turn. It comes to its end even where nobody waits for it any more.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, HeavyError> {
        let _waits = self.waiting.try_acquire().map_err(|_| HeavyError::Busy)?;
        let turn = tokio::time::timeout(WAIT, Arc::clone(&self.one).acquire_owned()).await;
        let turn = turn.map_err(|_| HeavyError::Busy)?.map_err(|_| HeavyError::Lost)?;
        let (say, hear) = oneshot::channel();
        let thread = std::thread::Builder::new().name("heavy".into()).spawn(move || {
            // Refused only to whoever may not even give way; then it is as before others as they are.
            let _ = rustix::process::setpriority_process(None, 19);
            // Nobody may be listening any more.
            let _ = say.send(work());
            drop(turn);
        });
        thread.map_err(|_| HeavyError::Busy)?;
        hear.await.map_err(|_| HeavyError::Lost)?.map_err(HeavyError::Failed)
    }
}
