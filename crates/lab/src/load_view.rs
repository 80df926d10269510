//! The display of a run while it is under way: on a terminal a few lines, redrawn ten times a second; otherwise a line every five
//! seconds.
//!
//! The display is drawn below the existing output and cleared at the end. It never takes over the screen, so nothing needs to be
//! restored on Ctrl-C or a panic. It has its own thread at low priority and reads only the counters that the generator publishes;
//! the generator never waits for it.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kendall_archive::live::Sample;
use kendall_load::Progress;
use kendall_record::Outcome;
use kendall_stats::number::{NONE, percent, significant, time};

/// The time between two redraws.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// The time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// The time that one of the small bars stands for.
const SPAN: Duration = Duration::from_millis(500);
/// The most bars that are kept.
const SPANS: usize = 240;
/// The width of the text left and right of the bars.
const LEFT: usize = 11;
const RIGHT: usize = 14;

/// The limits that end a run.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// After this many requests.
    pub requests: Option<u64>,
    /// After this time.
    pub duration: Option<Duration>,
}

/// Shows a run while `work` makes it; `recent` returns the quantiles of the last requests.
pub fn watch<T>(
    goal: Goal,
    progress: &Progress,
    recent: impl Fn() -> Option<RecentQuantiles> + Send,
    work: impl FnOnce() -> T,
) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let shown = scope.spawn(|| {
            // Lowering the priority can fail; the thread then runs at the default priority.
            let _ = rustix::process::setpriority_process(None, 19);
            show(goal, progress, recent, &over);
        });
        // The guard also works where the work panics: the scope waits for its threads.
        let _over = Over(&over, shown.thread().clone());
        work()
    })
}

/// Ends the display thread.
struct Over<'a>(&'a AtomicBool, thread::Thread);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.unpark();
    }
}

fn show(goal: Goal, progress: &Progress, recent: impl Fn() -> Option<RecentQuantiles>, over: &AtomicBool) {
    let mut seen = History::new(goal, Instant::now());
    let terminal = io::stderr().is_terminal().then(|| {
        let style = ProgressStyle::with_template("{msg}").expect("the template is valid");
        ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10)).with_style(style)
    });
    let mut line_at = LINE_EVERY;
    while !over.load(Ordering::Relaxed) {
        thread::park_timeout(DRAW_EVERY);
        let now = Instant::now();
        seen.add_reading(&Counts::of(progress), now, &recent);
        match &terminal {
            Some(bar) => {
                let width = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0);
                bar.set_message(seen.lines(usize::from(width), now).join("\n"));
            }
            None if now - seen.start >= line_at => {
                line_at += LINE_EVERY;
                // If standard error is closed, the display has no reader.
                drop(writeln!(io::stderr(), "{}", seen.line(now)));
            }
            None => {}
        }
    }
    if let Some(bar) = terminal {
        bar.finish_and_clear();
    }
}

/// The counters of the generator.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent: u64,
    ended: [u64; Outcome::ALL.len()],
    in_flight: u64,
    waiting: u64,
}

impl Counts {
    fn of(progress: &Progress) -> Self {
        Self {
            sent: progress.sent.load(Ordering::Relaxed),
            ended: Outcome::ALL.map(|outcome| progress.count(outcome)),
            in_flight: progress.in_flight.load(Ordering::Relaxed),
            waiting: progress.waiting.load(Ordering::Relaxed),
        }
    }

    fn answered(&self) -> u64 {
        self.ended[Outcome::Answered as usize]
    }

    fn without_right_answer(&self) -> u64 {
        self.ended.iter().sum::<u64>() - self.answered()
    }
}

/// The quantiles of some response times, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecentQuantiles {
    /// The median.
    pub p50_s: f64,
    /// The 99th percentile.
    pub p99_s: f64,
}

impl RecentQuantiles {
    /// The quantiles of a published sample; `None` where no request was answered in it.
    pub fn of(sample: &Sample) -> Option<Self> {
        Some(Self { p50_s: sample.p50_s?, p99_s: sample.p99_s? })
    }
}

/// The quantiles of the requests answered since the last call.
pub fn recent(progress: &Progress) -> Option<RecentQuantiles> {
    let responses = progress.take_responses().filter(|responses| !responses.is_empty())?;
    let at = |p| responses.value_at_quantile(p) as f64 / 1e9;
    Some(RecentQuantiles { p50_s: at(0.5), p99_s: at(0.99) })
}

/// The counts of one span.
#[derive(Clone, Copy, Debug)]
struct Span {
    sent_per_s: f64,
    in_flight: f64,
    quantiles: Option<RecentQuantiles>,
    errors: u64,
}

/// The counts so far.
struct History {
    goal: Goal,
    start: Instant,
    /// The start of the current span, and the counts at that time.
    since: Instant,
    before: Counts,
    now: Counts,
    spans: VecDeque<Span>,
}

impl History {
    fn new(goal: Goal, start: Instant) -> Self {
        let none = Counts::default();
        Self { goal, start, since: start, before: none, now: none, spans: VecDeque::new() }
    }

    fn add_reading(
        &mut self,
        counts: &Counts,
        now: Instant,
        quantiles: impl FnOnce() -> Option<RecentQuantiles>,
    ) {
        self.now = *counts;
        let passed = now - self.since;
        if passed < SPAN {
            return;
        }
        if self.spans.len() == SPANS {
            self.spans.pop_front();
        }
        self.spans.push_back(Span {
            sent_per_s: (counts.sent - self.before.sent) as f64 / passed.as_secs_f64(),
            in_flight: (counts.in_flight + counts.waiting) as f64,
            quantiles: quantiles(),
            errors: counts.without_right_answer() - self.before.without_right_answer(),
        });
        (self.since, self.before) = (now, *counts);
    }

    /// The share of the run that is done, and the time left by the stricter of its limits.
    fn done(&self, now: Instant) -> Option<(f64, Duration)> {
        let passed = now - self.start;
        let by_time = self.goal.duration.map(|all| passed.as_secs_f64() / all.as_secs_f64());
        let by_count = self.goal.requests.map(|all| self.now.sent as f64 / all as f64);
        let share = by_time.into_iter().chain(by_count).reduce(f64::max)?.min(1.0);
        let left_s = passed.as_secs_f64() * (1.0 / share.max(1e-6) - 1.0);
        Some((share, Duration::from_secs_f64(left_s.min(1e9))))
    }

    /// The display as lines that fit a terminal.
    fn lines(&self, width: usize, now: Instant) -> Vec<String> {
        let room = width.saturating_sub(LEFT + RIGHT + 1).clamp(8, SPANS);
        let spans = || self.spans.iter().skip(self.spans.len().saturating_sub(room));
        let series = |name: &str, of: &dyn Fn(&Span) -> Option<f64>, text: &dyn Fn(f64) -> String| {
            let values: Vec<Option<f64>> = spans().map(of).collect();
            let last = values.iter().rev().find_map(|value| *value).map_or_else(|| NONE.to_owned(), text);
            format!("{name:<LEFT$}{} {last}", bars(&values))
        };
        let quantile = |of: fn(&RecentQuantiles) -> f64| move |span: &Span| span.quantiles.as_ref().map(of);
        let rate = |value: f64| format!("{}/s", significant(value, 3));
        let mut lines = vec![
            self.counted(),
            series("rate", &|span| Some(span.sent_per_s), &rate),
            series("in flight", &|span| Some(span.in_flight), &|value| significant(value, 3)),
            series("p50", &quantile(|quantiles| quantiles.p50_s), &time),
            series("p99", &quantile(|quantiles| quantiles.p99_s), &time),
        ];
        if self.now.without_right_answer() > 0 {
            lines.push(series("errors", &|span| Some(span.errors as f64), &|_| self.errors()));
        }
        lines.extend(self.done(now).map(|(share, left)| {
            let full = (share * room as f64).round() as usize;
            let (done, todo) = ("━".repeat(full), "╌".repeat(room - full));
            format!("{:<LEFT$}{done}{todo} {} left", percent(share), clock(left))
        }));
        lines.into_iter().map(|line| line.chars().take(width.saturating_sub(1)).collect()).collect()
    }

    fn counted(&self) -> String {
        let Counts { sent, in_flight, waiting, .. } = self.now;
        let all = self.goal.requests.map_or_else(String::new, |all| format!(" of {all}"));
        let waiting = if waiting > 0 { format!(", {waiting} wait for a connection") } else { String::new() };
        format!("{sent}{all} sent, {} answered, {in_flight} in flight{waiting}", self.now.answered())
    }

    /// Errors by kind.
    fn errors(&self) -> String {
        let kinds = Outcome::ALL.into_iter().filter(|&outcome| outcome != Outcome::Answered);
        let count = |outcome: Outcome| self.now.ended[outcome as usize];
        let some = kinds.filter(|&outcome| count(outcome) > 0);
        some.map(|outcome| format!("{} {}", count(outcome), outcome.name())).collect::<Vec<_>>().join(", ")
    }

    /// The display as one line, for a log.
    fn line(&self, now: Instant) -> String {
        let mut line = format!("{:>5} s: {}", (now - self.start).as_secs(), self.counted());
        if let Some(span) = self.spans.back() {
            line += &format!(", {}/s", significant(span.sent_per_s, 3));
            if let Some(RecentQuantiles { p50_s, p99_s }) = span.quantiles {
                line += &format!(", p50 {}, p99 {}", time(p50_s), time(p99_s));
            }
        }
        if self.now.without_right_answer() > 0 {
            line += &format!("; {}", self.errors());
        }
        if let Some((_, left)) = self.done(now) {
            line += &format!("; {} left", clock(left));
        }
        line
    }
}

/// "0:07", "12:30".
fn clock(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// Small bars, the highest of them full; a gap stands for no value.
fn bars(values: &[Option<f64>]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = values.iter().flatten().copied().fold(0.0, f64::max);
    let bar = |value: &Option<f64>| match value {
        Some(value) if highest > 0.0 => {
            // Rounding may make it slightly more than seven eighths.
            let height = (value / highest * BARS.len() as f64 - 1e-9).ceil() as usize;
            BARS[height.clamp(1, BARS.len()) - 1]
        }
        Some(_) => BARS[0],
        None => ' ',
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(sent: u64, answered: u64, refused: u64, waiting: u64) -> Counts {
        let mut ended = [0; Outcome::ALL.len()];
        ended[Outcome::Answered as usize] = answered;
        ended[Outcome::Refused as usize] = refused;
        Counts { sent, ended, in_flight: sent - answered - refused - waiting, waiting }
    }

    /// This many spans of half a second at 1,000/s, with a response time that grows.
    fn history(spans: u64, goal: Goal) -> (History, Instant) {
        let start = Instant::now();
        let mut history = History::new(goal, start);
        for span in 1..=spans {
            let quantiles = RecentQuantiles { p50_s: 0.001 * span as f64, p99_s: 0.005 * span as f64 };
            let now = start + SPAN * span as u32;
            history.add_reading(&counts(500 * span, 500 * span - 10, 3, 2), now, || Some(quantiles));
        }
        (history, start + SPAN * spans as u32)
    }

    #[test]
    fn the_lines_say_what_is_going_on_and_fit_the_terminal() {
        let goal = Goal { requests: None, duration: Some(Duration::from_secs(10)) };
        let (history, now) = history(8, goal);
        let lines = history.lines(60, now);
        assert_eq!(
            lines,
            [
                "4000 sent, 3990 answered, 5 in flight, 2 wait for a connection",
                "rate       ████████ 1000/s",
                "in flight  ████████ 7.00",
                "p50        ▁▂▃▄▅▆▇█ 8.00 ms",
                "p99        ▁▂▃▄▅▆▇█ 40.0 ms",
                "errors     █▁▁▁▁▁▁▁ 3 refused",
                "40 %       ━━━━━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ 0:06 left",
            ]
            .map(|line| line.chars().take(59).collect::<String>())
        );
        for width in [10, 30, 200, 1000] {
            assert!(history.lines(width, now).iter().all(|line| line.chars().count() < width), "{width}");
        }
        let (long, now) = self::history(2 * SPANS as u64, goal);
        assert!(long.spans.len() == SPANS && long.lines(1000, now)[1].chars().count() < 300);
    }

    #[test]
    fn a_log_has_it_in_one_line() {
        let (history, now) = history(10, Goal { requests: Some(20_000), duration: None });
        assert_eq!(
            history.line(now),
            "    5 s: 5000 of 20000 sent, 4990 answered, 5 in flight, 2 wait for a connection, 1000/s, p50 10.0 ms, p99 50.0 ms; 3 \
             refused; 0:15 left"
        );
    }

    /// The display before any request is sent, and of a run without a known end.
    #[test]
    fn nothing_seen_is_shown_as_nothing() {
        let history = History::new(Goal { requests: None, duration: None }, Instant::now());
        let lines = history.lines(80, history.start);
        assert_eq!(lines.len(), 5);
        assert!(lines[3].ends_with(NONE), "{lines:?}");
    }

    #[test]
    fn the_work_is_done_once_and_what_it_gives_is_handed_on() {
        let goal = Goal { requests: Some(1), duration: None };
        assert_eq!(watch(goal, &Progress::default(), || None, || 7), 7);
    }
}
