//! Work on independent pieces by several threads.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The number of threads that this process can use at once.
pub fn processors() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Works on each item, on this many threads at most. A free thread takes the next item.
pub(super) fn on_each<T: Send>(threads: NonZeroUsize, items: &mut [T], work: impl Fn(&mut T) + Sync) {
    let threads = threads.get().min(items.len());
    if threads <= 1 {
        return items.iter_mut().for_each(work);
    }
    let left = Mutex::new(items.iter_mut());
    // The lock is only held to step to the next item, which cannot panic.
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = next() {
                    work(item);
                }
            });
        }
    });
}
