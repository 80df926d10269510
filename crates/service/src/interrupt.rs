//! The signal of the runtime to a worker in the middle of a chunk: return early, or abandon the task.
//!
//! Each stay of a task at a worker has a separate token, so a late signal only reaches the task it was meant for.
//! Computing handlers read [`Interrupt::word`] in their loops, at the cost of one relaxed load; those that wait use
//! [`Interrupt::sleep`] and [`Interrupt::wait`], which the signal cuts short.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

const LOOK_UP: u32 = 1;
const GIVE_UP: u32 = 2;

/// The interrupt token of one task at one worker. Clones are the same token.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<Token>);

/// Alone on a pair of cache lines: reading the word costs nothing while no thread writes it.
#[derive(Debug)]
#[repr(align(128))]
struct Token {
    word: AtomicU32,
    worker: Thread,
}

impl Interrupt {
    /// A token of the calling thread, not raised. The runtime makes one for each stay of a task at a worker.
    pub fn new() -> Self {
        Self(Arc::new(Token { word: AtomicU32::new(0), worker: thread::current() }))
    }

    /// Makes the worker return from `advance` before its units are done: a more urgent request waits, or a handler's own
    /// threads have news for it. Any thread may call this; a signal between two chunks cuts the next one short.
    pub fn raise(&self) {
        self.say(LOOK_UP);
    }

    /// Abandons the task: no client waits for its answer any more, or the server rejects the rest. This is final.
    pub(crate) fn abandon(&self) {
        self.say(LOOK_UP | GIVE_UP);
    }

    /// Withdraws a signal that the worker has seen.
    pub(crate) fn lower(&self) {
        if self.is_raised() {
            self.0.word.fetch_and(!LOOK_UP, Ordering::AcqRel);
        }
    }

    fn say(&self, word: u32) {
        self.0.word.fetch_or(word, Ordering::Release);
        self.wake();
    }

    /// Whether `advance` should return before its units are done.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.word.load(Ordering::Relaxed) != 0
    }

    /// Whether no client needs the answer any more, so that even a unit in progress may be dropped.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.0.word.load(Ordering::Relaxed) & GIVE_UP != 0
    }

    /// The word, 0 until the token is raised, for loops that only know an atomic.
    #[inline]
    pub fn word(&self) -> &AtomicU32 {
        &self.0.word
    }

    /// Ends a [`wait`](Self::wait) of the worker without raising the token.
    pub fn wake(&self) {
        self.0.worker.unpark();
    }

    /// Waits until the token is raised or woken; may also return earlier. Only the worker may call it.
    pub fn wait(&self) {
        if !self.is_raised() {
            thread::park();
        }
    }

    /// Waits as [`wait`](Self::wait) does, for at most this time.
    pub fn wait_timeout(&self, time: Duration) {
        if !self.is_raised() {
            thread::park_timeout(time);
        }
    }

    /// Sleeps for a time, or until the token is raised. Only the worker may call it.
    pub fn sleep(&self, time: Duration) {
        let begun = Instant::now();
        while !self.is_raised() {
            match time.checked_sub(begun.elapsed()) {
                Some(left) if !left.is_zero() => thread::park_timeout(left),
                _ => return,
            }
        }
    }
}

impl Default for Interrupt {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_word_ends_a_sleep_and_one_that_is_final_stays() {
        let (sender, tokens) = channel();
        let sleeper = thread::spawn(move || {
            let interrupt = Interrupt::new();
            sender.send(interrupt.clone()).unwrap();
            interrupt.sleep(LONG);
            interrupt
        });
        tokens.recv().unwrap().raise();
        let interrupt = sleeper.join().unwrap();
        assert!(interrupt.is_raised() && !interrupt.is_abandoned());
        interrupt.lower();
        assert!(!interrupt.is_raised());
        interrupt.abandon();
        interrupt.lower();
        assert!(interrupt.is_raised() && interrupt.is_abandoned());
    }

    #[test]
    fn a_word_that_comes_before_the_sleep_ends_it_and_a_wake_does_not() {
        let interrupt = Interrupt::new();
        interrupt.wake();
        let begun = Instant::now();
        interrupt.sleep(Duration::from_millis(2));
        assert!(begun.elapsed() >= Duration::from_millis(2));
        interrupt.wake();
        interrupt.wait();
        interrupt.raise();
        interrupt.sleep(LONG);
        interrupt.wait();
    }
}
