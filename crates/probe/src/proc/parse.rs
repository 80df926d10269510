//! The formats of procfs and cgroup files, as pure functions on bytes (proc(5), Documentation/scheduler/sched-stats.rst,
//! Documentation/accounting/psi.rst, Documentation/admin-guide/cgroup-v2.rst).

/// The numbers in a text, in order; words between them are skipped.
pub(crate) fn numbers(text: &[u8]) -> impl Iterator<Item = u64> {
    text.split(|byte| !byte.is_ascii_digit()).filter_map(number)
}

/// A text that is a whole number.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let digit = |number: u64, byte: &u8| {
        byte.is_ascii_digit().then(|| number.checked_mul(10)?.checked_add(u64::from(byte - b'0'))).flatten()
    };
    text.iter().try_fold(0, digit)
}

/// `schedstat`: nanoseconds on a core, nanoseconds ready without one, number of times on a core.
pub(crate) fn schedstat(text: &[u8]) -> Option<[u64; 3]> {
    let mut numbers = numbers(text);
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

/// The fields of `stat` that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// `R`, `S`, `D`, …
    pub(crate) state: u8,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    /// In clock ticks.
    pub(crate) user: u64,
    /// In clock ticks.
    pub(crate) system: u64,
    /// The time of children that have ended and were waited for, in both modes, in clock ticks.
    pub(crate) ended_children: u64,
    pub(crate) threads: u64,
    /// When it started, in clock ticks since the machine started.
    pub(crate) start_ticks: u64,
}

/// `stat` of a process or a thread. The command's name may hold blanks and brackets, and ends at the last one.
pub(crate) fn stat(text: &[u8]) -> Option<Stat> {
    let rest = &text[text.iter().rposition(|byte| *byte == b')')? + 1..];
    let mut fields = rest.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let state = *fields.next()?.first()?;
    let mut field = |skipped: usize| number(fields.nth(skipped)?);
    // Fields 10, 12, 14 to 17, 20, and 22; the state is field 3.
    Some(Stat {
        state,
        minor_faults: field(6)?,
        major_faults: field(1)?,
        user: field(1)?,
        system: field(0)?,
        ended_children: field(0)?.saturating_add(field(0)?),
        threads: field(2)?,
        start_ticks: field(1)?,
    })
}

/// Whether a process has ended, or is a zombie that its parent has not waited for.
pub(crate) fn has_ended(stat: &Stat) -> bool {
    matches!(stat.state, b'Z' | b'X')
}

/// The value of a line `name: value` or `name value`, as in `status`, `io` and `cpu.stat`.
pub(crate) fn field(text: &[u8], name: &[u8]) -> Option<u64> {
    let line = text.split(|byte| *byte == b'\n').find(|line| {
        line.strip_prefix(name).and_then(<[u8]>::first).is_some_and(|byte| matches!(byte, b':' | b' '))
    })?;
    numbers(&line[name.len()..]).next()
}

/// `net/dev`: bytes in and out over all interfaces.
pub(crate) fn net_dev(text: &[u8]) -> (u64, u64) {
    let lines = text.split(|byte| *byte == b'\n').skip(2);
    lines.fold((0, 0), |(bytes_in, bytes_out), line| {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return (bytes_in, bytes_out) };
        let mut fields = numbers(&line[colon..]);
        let mut add = |sum: u64, skipped| sum.saturating_add(fields.nth(skipped).unwrap_or(0));
        (add(bytes_in, 0), add(bytes_out, 7))
    })
}

/// A counter of `net/snmp` or `net/netstat`: a line of names, then a line of values, both after the protocol.
pub(crate) fn counter(text: &[u8], protocol: &[u8], name: &[u8]) -> Option<u64> {
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| line.starts_with(protocol));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split(|byte| *byte == b' ').position(|word| word == name)?;
    number(values.split(|byte| *byte == b' ').nth(at)?)
}

/// `/proc/pressure/*`: microseconds in which some task was stalled.
pub(crate) fn pressure(text: &[u8]) -> Option<u64> {
    let line = text.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"some"))?;
    let at = line.windows(6).position(|window| window == b"total=")?;
    numbers(&line[at..]).next()
}

/// The first line of `/proc/stat`, in clock ticks over all cores: busy, stolen, idle during disk input and output.
pub(crate) fn cores(text: &[u8]) -> Option<[u64; 3]> {
    let line = text.split(|byte| *byte == b'\n').next()?.strip_prefix(b"cpu ")?;
    let mut fields = [0; 8];
    let mut read = 0;
    for (field, number) in fields.iter_mut().zip(numbers(line)) {
        *field = number;
        read += 1;
    }
    let [user, nice, system, _idle, io_wait, interrupts, soft_interrupts, steal] = fields;
    let busy = [nice, system, interrupts, soft_interrupts].into_iter().fold(user, u64::saturating_add);
    (read == fields.len()).then_some([busy, steal, io_wait])
}

/// `syscall` of a thread: what the thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// The thread does not wait.
    Running,
    /// The thread waits within a page fault or another part of the kernel outside of system calls.
    Fault,
    /// A system call with its number and first three arguments.
    Number(u64, [u64; 3]),
}

/// `syscall` of a thread.
pub(crate) fn call(text: &[u8]) -> Option<Call> {
    let text = text.trim_ascii();
    if text == b"running" {
        return Some(Call::Running);
    }
    let mut words = text.split(|byte| *byte == b' ');
    let word = words.next()?;
    if word == b"-1" {
        return Some(Call::Fault);
    }
    let mut argument = || hex(words.next()?);
    Some(Call::Number(number(word)?, [argument()?, argument()?, argument()?]))
}

fn hex(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text.strip_prefix(b"0x")?).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_does_not_confuse_its_numbers() {
        let text = b"12 (a ) b) S 1 2 3 4 5 6 7 8 9 10 250 50 1 2 20 0 4 0 9 10 11";
        let read = Stat {
            state: b'S',
            minor_faults: 7,
            major_faults: 9,
            user: 250,
            system: 50,
            ended_children: 3,
            threads: 4,
            start_ticks: 9,
        };
        assert_eq!(stat(text), Some(read));
    }

    #[test]
    fn counters_are_found_under_their_names() {
        let snmp = b"Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm MaxConn RetransSegs InErrs\nTcp: 1 -1 42 0\n";
        assert_eq!(counter(snmp, b"Tcp:", b"RetransSegs"), Some(42));
        assert_eq!(counter(snmp, b"Tcp:", b"Nothing"), None);
        let status = b"Name:\tx\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(field(status, b"voluntary_ctxt_switches"), Some(17));
        assert_eq!(field(status, b"nonvoluntary_ctxt_switches"), Some(3));
        assert_eq!(field(b"usage_usec 12\nthrottled_usec 5\n", b"throttled_usec"), Some(5));
        assert_eq!(field(b"usage_usec 12\n", b"usage"), None);
        let pressure_text =
            b"some avg10=80.77 avg60=79.12 avg300=49.03 total=6201296720\nfull avg10=0.00 total=7\n";
        assert_eq!(pressure(pressure_text), Some(6_201_296_720));
    }

    #[test]
    fn bytes_of_all_interfaces_add_up() {
        let text = b"Inter-| Receive | Transmit\n face |bytes packets | bytes\n  \
            lo: 100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\neth0: 10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n";
        assert_eq!(net_dev(text), (110, 220));
    }

    #[test]
    fn the_time_of_the_cores_is_told_apart() {
        assert_eq!(cores(b"cpu  10 1 5 1000 7 2 3 4 0 0\ncpu0 1 1 1 1 1 1 1 1\n"), Some([21, 4, 7]));
        assert_eq!(cores(b"cpu0 1 2 3"), None);
    }

    #[test]
    fn what_a_thread_waits_for_is_read() {
        assert_eq!(call(b"running\n"), Some(Call::Running));
        assert_eq!(call(b"-1 0x7ffe 0x7f80\n"), Some(Call::Fault));
        let text = b"202 0x55d0a1f0 0x80 0x2 0x0 0x0 0x0 0x7ffc 0x7f3b\n";
        assert_eq!(call(text), Some(Call::Number(202, [0x55d0_a1f0, 0x80, 2])));
    }

    #[test]
    fn no_bytes_make_a_reader_panic() {
        let texts: [&[u8]; 8] = [
            b"",
            b")",
            b"1 (x) ",
            b"cpu ",
            b"some",
            b"total=",
            b"99999999999999999999999 1",
            b"\xff\xfe:\n\n:",
        ];
        for text in texts {
            let _ =
                (stat(text), schedstat(text), field(text, b"x"), net_dev(text), pressure(text), cores(text));
            let _ = (call(text), counter(text, b"", b""));
        }
    }
}
