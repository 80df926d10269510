//! Finds the functions that use the CPU, by stacks of running threads that the kernel samples at a fixed rate.
//!
//! The event is the kernel's CPU clock, because virtual machines seldom have hardware counters. A sample is the registers and a
//! piece of the stack. The unwind tables that every program has ([`stack`]) give the frames, so programs without frame pointers
//! work as well. Functions get their names at the end ([`symbol`]).

mod interpreter;
pub(crate) mod perf_map;
mod program;
mod stack;
mod symbol;

use crate::thread::THREAD;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder as Event, SampleFlag, Sampler};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use stack::{Frame, STACK_BYTES, Space, USER_REGISTERS};

/// The default number of samples per second of CPU time: not a divisor of the round rates at which servers run periodic work.
pub const DEFAULT_HZ: u32 = 99;
/// The number of kernel buffers: one for each thread and core.
const MOST_RINGS: usize = 256;
/// The size of a buffer: seven samples.
const RING_BYTES: usize = 8 * STACK_BYTES as usize;
/// The longest time between two readings of the buffers.
const DRAIN_EVERY: Duration = Duration::from_millis(20);
/// The most samples that a thread on one core takes in that time, so that late readings lose none.
const DRAIN_SAMPLES: u32 = 3;
/// The most distinct stacks; later ones are counted in `(more)`.
const MOST_STACKS: usize = 1 << 16;

/// The sampled stacks of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Samples per second of CPU time.
    pub hz: u32,
    /// The number of samples.
    pub samples: u64,
    /// Samples that were lost because a buffer was full.
    pub lost: u64,
    /// The CPU time of taking and naming the samples, in seconds.
    pub cost_s: f64,
    /// Remarks for the reader, for example that a permission was missing.
    pub notes: Vec<String>,
    /// Each stack, outermost function first, joined by semicolons, and its number of samples: the folded format of Gregg's flame
    /// graphs. The first frame is the thread.
    pub folded: Vec<(String, u64)>,
}

impl Profile {
    /// The stacks as text: a line a stack, with its count at the end.
    pub fn to_text(&self) -> String {
        self.folded.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect()
    }

    /// Everything except the stacks, which have their own file.
    #[must_use]
    pub fn without_stacks(&self) -> Self {
        Self { folded: Vec::new(), notes: self.notes.clone(), ..*self }
    }

    /// Adds stacks from a text in the format of [`Profile::to_text`]; skips invalid lines.
    #[must_use]
    pub fn with_stacks(mut self, text: &str) -> Self {
        let stack = |line: &str| {
            let (stack, count) = line.rsplit_once(' ')?;
            Some((stack.to_owned(), count.parse().ok()?))
        };
        self.folded = text.lines().filter_map(stack).collect();
        self
    }

    /// The profile without stacks: CPU time by thread, in milliseconds.
    pub fn of_threads(why: &str, threads: impl IntoIterator<Item = (String, f64)>) -> Self {
        let folded = threads.into_iter().map(|(thread, cpu_s)| (thread, (1e3 * cpu_s).round() as u64));
        Self {
            hz: 1000,
            samples: 0,
            lost: 0,
            cost_s: 0.0,
            notes: vec![format!(
                "There are no stacks, because {why}: what is shown is the CPU time of threads."
            )],
            folded: folded.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

/// Tries to sample the stacks of this process, and returns what would be missing from them, as sentences.
///
/// # Errors
/// Fails where the kernel does not permit any.
pub fn try_profile() -> io::Result<Vec<String>> {
    Ok(Rings::open(std::process::id(), &[], DEFAULT_HZ)?.notes)
}

/// A profile in progress.
#[derive(Debug)]
pub(crate) struct Profiling {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Profile>>,
}

impl Profiling {
    /// Starts to sample the threads of a process and of its descendants, and the threads and processes that they start.
    ///
    /// # Errors
    /// Fails where the kernel does not permit it.
    pub(crate) fn start(root: u32, descendants: &[u32], hz: u32) -> io::Result<Self> {
        let rings = Rings::open(root, descendants, hz)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = Builder::new().name(format!("{}-2", THREAD)).spawn(move || rings.run(&stopped))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends it. `None` if its thread has failed.
    pub(crate) fn end(mut self) -> Option<Profile> {
        self.halt()
    }

    fn halt(&mut self) -> Option<Profile> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take()?.join().ok()
    }
}

impl Drop for Profiling {
    fn drop(&mut self) {
        self.halt();
    }
}

/// Whether samples are taken within system calls as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    UserAndKernel,
    User,
}

/// The buffers that the kernel writes samples to.
struct Rings {
    hz: u32,
    rings: Vec<Sampler>,
    notes: Vec<String>,
}

impl Rings {
    fn open(root: u32, descendants: &[u32], hz: u32) -> io::Result<Self> {
        let mut tids = threads(root)?;
        for pid in descendants {
            // The process may have ended in between.
            tids.extend(threads(*pid).unwrap_or_default());
        }
        let mut notes = Vec::new();
        let scope = match ring(root, Some(0), hz, Scope::UserAndKernel) {
            Ok(_) => Scope::UserAndKernel,
            Err(_) => {
                notes.push("Time within system calls is not in it, for lack of permission.".to_owned());
                Scope::User
            }
        };
        // An event that threads inherit must belong to one core.
        let cores = cores();
        let inherits = tids.len() * cores.len() <= MOST_RINGS;
        let places: Vec<(u32, Option<usize>)> = if inherits {
            tids.iter().flat_map(|tid| cores.iter().map(move |core| (*tid, Some(*core)))).collect()
        } else {
            notes.push(format!(
                "It has the first {} threads only, and none that started later.",
                tids.len().min(MOST_RINGS)
            ));
            tids.iter().take(MOST_RINGS).map(|tid| (*tid, None)).collect()
        };
        let (mut rings, mut refused, mut why) = (Vec::new(), 0, None);
        for (tid, core) in places {
            match ring(tid, core, hz, scope) {
                Ok(ring) => rings.push(ring),
                Err(error) => {
                    refused += 1;
                    why = Some(error);
                }
            }
        }
        match why {
            Some(why) if rings.is_empty() => return Err(why),
            Some(why) => notes.push(format!("{refused} of its buffers were refused ({why}).")),
            None => {}
        }
        Ok(Self { hz, rings, notes })
    }

    fn run(mut self, stop: &AtomicBool) -> Profile {
        let mut found = CollectedStacks::default();
        let drain_every = DRAIN_EVERY.min(Duration::from_secs(1) * DRAIN_SAMPLES / self.hz.max(1));
        loop {
            let last = stop.load(Ordering::Relaxed);
            for ring in &mut self.rings {
                while let Some(record) = ring.next_record() {
                    // A record that cannot be read counts as lost.
                    match record.parse_record() {
                        Ok(record) => found.take(&record),
                        Err(_) => found.lost += 1,
                    }
                }
            }
            if last {
                break;
            }
            std::thread::sleep(drain_every);
        }
        drop(self.rings);
        let CollectedStacks { stacks, spaces, threads, samples, lost, more, .. } = found;
        let symbol::Folded { mut folded, own_names } = symbol::folded(stacks, &spaces, &threads);
        let note = |pid: &u32| interpreter::Interpreter::of(*pid)?.note(own_names.iter().map(String::as_str));
        let mut notes = self.notes;
        // All processes of a server run the same language; one note is enough.
        notes.extend(spaces.keys().find_map(note));
        if more > 0 {
            folded.push(("(more)".into(), more));
        }
        let cost = clock_gettime(ClockId::ThreadCPUTime);
        let cost_s = cost.tv_sec as f64 + cost.tv_nsec as f64 / 1e9;
        Profile { hz: self.hz, samples, lost, cost_s, notes, folded }
    }
}

/// The threads of a process, in ascending order.
fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
    let mut tids: Vec<u32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    tids.sort_unstable();
    Ok(tids)
}

fn ring(tid: u32, core: Option<usize>, hz: u32, scope: Scope) -> io::Result<Sampler> {
    let mut event = Event::new(Software::CPU_CLOCK);
    event
        .observe_pid(tid as i32)
        .sample_period(1_000_000_000 / u64::from(hz.max(1)))
        .sample(SampleFlag::IP | SampleFlag::TID | SampleFlag::REGS_USER | SampleFlag::STACK_USER)
        .sample_regs_user(USER_REGISTERS)
        .sample_stack_user(STACK_BYTES)
        .exclude_hv(true)
        .exclude_kernel(scope == Scope::User);
    match core {
        Some(core) => event.one_cpu(core).inherit(true),
        None => event.any_cpu(),
    };
    let mut counter = event.build()?;
    counter.enable()?;
    counter.sampled(RING_BYTES)
}

/// The numbers of the online cores.
fn cores() -> Vec<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    };
    let cores: Vec<usize> = text.trim().split(',').filter_map(range).flatten().collect();
    if cores.is_empty() {
        (0..std::thread::available_parallelism().map_or(1, Into::into)).collect()
    } else {
        cores
    }
}

/// A sampled stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Stack {
    pid: u32,
    tid: u32,
    /// The innermost first.
    frames: Vec<Frame>,
}

/// The samples of the perf buffers, collected so far.
#[derive(Default)]
struct CollectedStacks {
    stacks: HashMap<Stack, u64>,
    spaces: HashMap<u32, Space>,
    /// The names of threads, by their numbers.
    threads: HashMap<u32, String>,
    images: program::Images,
    samples: u64,
    lost: u64,
    more: u64,
}

impl CollectedStacks {
    fn take(&mut self, record: &Record<'_>) {
        let sample = match record {
            Record::Sample(sample) => sample,
            Record::Lost(lost) => {
                self.lost += lost.lost;
                return;
            }
            Record::LostSamples(lost) => {
                self.lost += lost.lost;
                return;
            }
            _ => return,
        };
        let (Some(pid), Some(tid), Some(at)) = (sample.pid(), sample.tid(), sample.ip()) else { return };
        self.samples += 1;
        self.threads.entry(tid).or_insert_with(|| {
            let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
            name.map_or_else(|_| format!("thread {tid}"), |name| name.trim_end().to_owned())
        });
        let space = self.spaces.entry(pid).or_insert_with(|| Space::of(pid));
        let registers = sample.regs_user().map_or(&[][..], |registers| &registers.regs);
        let frames = space.frames(at, registers, sample.stack_user().unwrap_or(&[]), &mut self.images);
        let stack = Stack { pid, tid, frames };
        if self.stacks.len() >= MOST_STACKS && !self.stacks.contains_key(&stack) {
            self.more += 1;
        } else {
            *self.stacks.entry(stack).or_default() += 1;
        }
    }
}
