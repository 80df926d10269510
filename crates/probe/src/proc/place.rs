//! Determines where a thread waits by its current system call.
//!
//! The value that a futex call waits on distinguishes a held mutex from a lack of work. The mutexes of glibc and of Rust's
//! standard library follow Drepper, "Futexes Are Tricky" (2011), section 5, and wait on 2, "locked, with waiters". Condition
//! variables and parked threads wait on other values.

use super::parse::Call;
use crate::row::ThreadState;

/// What a thread is doing, as far as its system call indicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadActivity {
    /// The system call alone determines the state.
    At(ThreadState),
    /// A mutex at this address.
    Lock(u64),
    /// A transfer on this descriptor, whose file determines the state.
    Transfer(Direction, u64),
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The thread reads.
    Read,
    /// The thread writes.
    Write,
}

/// Classifies the system call of a waiting thread.
pub(crate) fn found(call: Call) -> ThreadActivity {
    let (number, [first, second, third]) = match call {
        Call::Running => return ThreadActivity::At(ThreadState::Running),
        Call::Fault => return ThreadActivity::At(ThreadState::Disk),
        Call::Number(number, arguments) => (number, arguments),
    };
    if number == calls::FUTEX {
        return futex(first, second, third);
    }
    // F_SETLKW waits for a lock on a part of a file.
    if number == calls::FLOCK || (number == calls::FCNTL && second == 7) {
        return ThreadActivity::Lock(0);
    }
    if calls::READ.contains(&number) {
        return ThreadActivity::Transfer(Direction::Read, first);
    }
    if calls::WRITE.contains(&number) {
        return ThreadActivity::Transfer(Direction::Write, first);
    }
    let place = if is_sleep(number, first, second) {
        ThreadState::Asleep
    } else if calls::IDLE.contains(&number) {
        ThreadState::Idle
    } else if calls::DISK.contains(&number) {
        ThreadState::Disk
    } else if number == calls::CONNECT {
        ThreadState::BackEnd
    } else {
        ThreadState::Other
    };
    ThreadActivity::At(place)
}

/// Whether a call only waits for a time, as poll and select without a descriptor do.
fn is_sleep(number: u64, first: u64, second: u64) -> bool {
    calls::SLEEP.contains(&number)
        || (calls::SELECT.contains(&number) && first == 0)
        || (calls::POLL.contains(&number) && second == 0)
}

/// Classifies a thread by its state and by the kernel function that it waits in (`wchan`), for threads whose system call is not
/// readable. A wait for a lock then looks like one for work, and one for a back end like one for a client. `None` where the
/// kernel shows no function.
pub(crate) fn by_kernel_function(state: u8, function: &str) -> Option<ThreadState> {
    match state {
        b'R' => return Some(ThreadState::Running),
        b'D' => return Some(ThreadState::Disk),
        _ if function.is_empty() || function == "0" => return None,
        _ => {}
    }
    let begins = |names: &[&str]| names.iter().any(|name| function.starts_with(name));
    Some(if begins(&["hrtimer_nanosleep", "do_nanosleep", "common_nsleep"]) {
        ThreadState::Asleep
    } else if begins(&["sk_wait_data", "wait_woken", "tcp_recvmsg", "unix_stream"]) {
        ThreadState::Client
    } else if begins(&["sk_stream_wait_memory", "sock_alloc_send", "sock_wait_for_wmem"]) {
        ThreadState::Sending
    } else if begins(&[
        "ep_poll",
        "do_epoll_wait",
        "poll_schedule_timeout",
        "do_poll",
        "do_select",
        "futex",
        "inet_csk_accept",
        "pipe",
        "anon_pipe",
        "do_wait",
        "kernel_wait",
        "sigsuspend",
        "do_sigtimedwait",
        "io_cqring_wait",
    ]) {
        ThreadState::Idle
    } else if begins(&["io_schedule", "folio_wait", "wait_on_page", "jbd2", "rq_qos_wait"]) {
        ThreadState::Disk
    } else {
        ThreadState::Other
    })
}

/// Operations and values are 32 bits wide; the command is the low seven of the operation (futex(2)).
fn futex(address: u64, operation: u64, value: u64) -> ThreadActivity {
    const WAIT: u64 = 0;
    const LOCK_PI: u64 = 6;
    const WAIT_BITSET: u64 = 9;
    const LOCK_PI2: u64 = 13;
    match operation & 0x7f {
        LOCK_PI | LOCK_PI2 => ThreadActivity::Lock(address),
        WAIT | WAIT_BITSET if value & 0xffff_ffff == 2 => ThreadActivity::Lock(address),
        _ => ThreadActivity::At(ThreadState::Idle),
    }
}

/// Numbers of system calls: arch/x86/entry/syscalls/syscall_64.tbl.
#[cfg(target_arch = "x86_64")]
mod calls {
    pub(super) const FUTEX: u64 = 202;
    pub(super) const FLOCK: u64 = 73;
    pub(super) const FCNTL: u64 = 72;
    pub(super) const CONNECT: u64 = 42;
    /// read, readv, recvfrom, recvmsg, recvmmsg
    pub(super) const READ: [u64; 5] = [0, 19, 45, 47, 299];
    /// write, writev, sendfile, sendto, sendmsg, sendmmsg
    pub(super) const WRITE: [u64; 6] = [1, 20, 40, 44, 46, 307];
    /// nanosleep, clock_nanosleep
    pub(super) const SLEEP: [u64; 2] = [35, 230];
    /// select, pselect6
    pub(super) const SELECT: [u64; 2] = [23, 270];
    /// poll, ppoll
    pub(super) const POLL: [u64; 2] = [7, 271];
    /// poll, select, pause, accept, wait4, rt_sigtimedwait, rt_sigsuspend, restart_syscall, epoll_wait, waitid, pselect6, ppoll,
    /// epoll_pwait, accept4, io_uring_enter, epoll_pwait2, futex_waitv
    pub(super) const IDLE: [u64; 17] =
        [7, 23, 34, 43, 61, 128, 130, 219, 232, 247, 270, 271, 281, 288, 426, 441, 449];
    /// pread64, pwrite64, msync, fsync, fdatasync, truncate, ftruncate, sync, sync_file_range, fallocate, preadv, pwritev,
    /// syncfs
    pub(super) const DISK: [u64; 13] = [17, 18, 26, 74, 75, 76, 77, 162, 277, 285, 295, 296, 306];
}

/// Numbers of system calls: include/uapi/asm-generic/unistd.h, in the same order.
#[cfg(not(target_arch = "x86_64"))]
mod calls {
    pub(super) const FUTEX: u64 = 98;
    pub(super) const FLOCK: u64 = 32;
    pub(super) const FCNTL: u64 = 25;
    pub(super) const CONNECT: u64 = 203;
    pub(super) const READ: [u64; 5] = [63, 65, 207, 212, 243];
    pub(super) const WRITE: [u64; 6] = [64, 66, 71, 206, 211, 269];
    pub(super) const SLEEP: [u64; 2] = [101, 115];
    pub(super) const SELECT: [u64; 1] = [72];
    pub(super) const POLL: [u64; 1] = [73];
    pub(super) const IDLE: [u64; 13] = [72, 73, 202, 260, 137, 133, 128, 22, 95, 242, 426, 441, 449];
    pub(super) const DISK: [u64; 13] = [67, 68, 227, 82, 83, 45, 46, 81, 84, 47, 69, 70, 267];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_mutex_is_told_from_a_want_of_work() {
        let futex = |operation, value| found(Call::Number(calls::FUTEX, [0xbeef, operation, value]));
        // glibc's mutex: FUTEX_WAIT_PRIVATE on 2; Rust's: FUTEX_WAIT_BITSET_PRIVATE on 2.
        assert_eq!(futex(0x80, 2), ThreadActivity::Lock(0xbeef));
        assert_eq!(futex(0x89, 2), ThreadActivity::Lock(0xbeef));
        // A parked thread of Rust waits on -1; a condition variable on its sequence.
        assert_eq!(futex(0x89, 0xffff_ffff), ThreadActivity::At(ThreadState::Idle));
        assert_eq!(futex(0x189, 0), ThreadActivity::At(ThreadState::Idle));
    }

    #[test]
    fn sleeps_and_the_ways_of_a_transfer_are_told_apart() {
        let call = |number, first, second| found(Call::Number(number, [first, second, 0]));
        assert_eq!(call(calls::SLEEP[0], 0x7ffc, 0), ThreadActivity::At(ThreadState::Asleep));
        // select(0, …) and poll(…, 0, …) only wait for a time.
        assert_eq!(call(calls::SELECT[0], 0, 0), ThreadActivity::At(ThreadState::Asleep));
        assert_eq!(call(calls::SELECT[0], 8, 0), ThreadActivity::At(ThreadState::Idle));
        assert_eq!(call(calls::POLL[0], 0, 0), ThreadActivity::At(ThreadState::Asleep));
        assert_eq!(call(calls::POLL[0], 0x7ffc, 2), ThreadActivity::At(ThreadState::Idle));
        assert_eq!(call(calls::READ[0], 5, 0), ThreadActivity::Transfer(Direction::Read, 5));
        assert_eq!(call(calls::WRITE[0], 5, 0), ThreadActivity::Transfer(Direction::Write, 5));
    }

    #[test]
    fn without_system_calls_the_function_of_the_kernel_says_where_a_thread_waits() {
        let place = |function| by_kernel_function(b'S', function);
        assert_eq!(place("hrtimer_nanosleep"), Some(ThreadState::Asleep));
        assert_eq!(place("futex_wait_queue"), Some(ThreadState::Idle));
        assert_eq!(place("wait_woken"), Some(ThreadState::Client));
        assert_eq!(place("sk_stream_wait_memory"), Some(ThreadState::Sending));
        assert_eq!(place("folio_wait_bit_common"), Some(ThreadState::Disk));
        assert_eq!(place("do_something"), Some(ThreadState::Other));
        assert_eq!((place("0"), place("")), (None, None));
        assert_eq!(by_kernel_function(b'D', "0"), Some(ThreadState::Disk));
        assert_eq!(by_kernel_function(b'R', "0"), Some(ThreadState::Running));
    }

    #[test]
    fn a_real_mutex_and_a_real_queue_are_found_as_what_they_are() {
        use std::sync::{Mutex, mpsc};
        use std::time::Duration;
        let seen = |tid: i32| {
            let text = std::fs::read(format!("/proc/self/task/{tid}/syscall")).ok()?;
            super::super::parse::call(&text).map(found)
        };
        let (sender, tids) = mpsc::channel();
        let tell = |sender: &mpsc::Sender<i32>| {
            sender.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap()
        };
        let lock = Mutex::new(());
        let (_open, queue) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let held = lock.lock().unwrap();
            let of_lock = sender.clone();
            scope.spawn({
                let lock = &lock;
                move || {
                    tell(&of_lock);
                    drop(lock.lock().unwrap());
                }
            });
            let waits_for_lock = tids.recv().unwrap();
            scope.spawn(move || {
                tell(&sender);
                let _ = queue.recv_timeout(Duration::from_millis(400));
            });
            let waits_for_work = tids.recv().unwrap();
            std::thread::sleep(Duration::from_millis(100));
            let (of_lock, of_work) = (seen(waits_for_lock), seen(waits_for_work));
            drop(held);
            // Where the kernel does not show system calls, there is nothing to check.
            let (Some(of_lock), Some(of_work)) = (of_lock, of_work) else { return };
            assert!(matches!(of_lock, ThreadActivity::Lock(_)), "{of_lock:?}");
            assert_eq!(of_work, ThreadActivity::At(ThreadState::Idle));
        });
    }
}
