//! Long work beside the interpreter.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use kendall_simulation::Progress;
use pyo3::prelude::*;

/// The interval at which signals are looked for, and progress is reported.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Works on another thread without the interpreter's lock. Meanwhile `notify`, if any, gets the number of customers so far, and Ctrl-C
/// stops the work.
///
/// # Errors
/// Fails with what a signal handler or `notify` raises.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    notify: Option<&Py<PyAny>>,
    work: impl FnOnce(&Arc<Progress>) -> T + Send,
) -> PyResult<T> {
    let progress = Arc::new(Progress::default());
    py.detach(|| {
        thread::scope(|scope| {
            let (ended, end) = mpsc::channel::<()>();
            let of_worker = Arc::clone(&progress);
            let worker = scope.spawn(move || {
                let found = work(&of_worker);
                drop(ended);
                found
            });
            while end.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                let looked = Python::attach(|py| look(py, notify, progress.customers()));
                if let Err(raised) = looked {
                    progress.stop();
                    // Its answer is no longer wanted.
                    let _ = worker.join();
                    return Err(raised);
                }
            }
            worker.join().map_err(|_| crate::failed("the simulation panicked, which is a fault of kendall"))
        })
    })
}

fn look(py: Python<'_>, notify: Option<&Py<PyAny>>, customers: u64) -> PyResult<()> {
    py.check_signals()?;
    if let Some(notify) = notify {
        notify.call1(py, (customers,))?;
    }
    Ok(())
}
