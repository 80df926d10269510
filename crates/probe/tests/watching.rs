//! What the probe sees of little servers.
//!
//! This program starts itself again as each of them, so that they are their own processes.

use std::process::Command;
use std::thread;
use std::time::Duration;

use kendall_archive::series::Series;
use kendall_probe::{Children, Config, Role, Summary, Target, Watch, WatchResult};
use kendall_record::clock::now_ns;
use kendall_testbed::Again;

kendall_testbed::main!(
    serve,
    readings_are_written_relative_to_the_trial_and_agree_with_the_summary,
    a_profile_shows_which_function_uses_the_cpu,
    a_profile_has_the_stacks_of_child_processes,
    a_profile_of_an_interpreter_says_so_with_the_remedy,
    watching_costs_little_and_says_how_much,
    a_process_that_is_not_there_is_an_error_that_names_it,
);

const WATCHED: Duration = Duration::from_millis(1200);

/// Starts this test again as a server.
fn start(what: &str) -> Again {
    Again::start(what).0
}

/// What the probe sees of a server.
fn watched(server: &Again) -> Summary {
    let target = Target { role: Role::Server, pid: server.pid(), children: Children::Watched };
    let watch = Watch::start(&Config::default(), &[target]).unwrap();
    thread::sleep(WATCHED);
    watch.end(0).unwrap().summary
}

fn serve(what: &str) {
    Again::ready("");
    match what {
        "two functions" => loop {
            std::hint::black_box(long(std::hint::black_box(3_000_000)));
            std::hint::black_box(short(std::hint::black_box(1_000_000)));
        },
        "one thread" => spin(),
        _ => loop {
            thread::sleep(Duration::from_secs(1));
        },
    }
}

/// Three times the work of [`short`].
#[inline(never)]
fn long(steps: u64) -> u64 {
    (0..steps).fold(1, |state, step| std::hint::black_box(state ^ step).rotate_left(7))
}

#[inline(never)]
fn short(steps: u64) -> u64 {
    (0..steps).fold(2, |state, step| std::hint::black_box(state ^ step).rotate_left(9))
}

fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

fn readings_are_written_relative_to_the_trial_and_agree_with_the_summary() {
    let server = start("one thread");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("resources.parquet");
    let target = Target { role: Role::Server, pid: server.pid(), children: Children::Watched };
    let config = Config { record: Some(&path), ..Config::default() };
    let began_ns = now_ns();
    let watch = Watch::start(&config, &[target]).unwrap();
    thread::sleep(WATCHED);
    let summary = watch.end(began_ns).unwrap().summary;
    let series = Series::read(&path).unwrap();
    assert!(series.time_ns.windows(2).all(|pair| pair[0] <= pair[1]));
    let spinning = &summary.server.as_ref().unwrap().threads[0].thread;
    let rows = series.label("thread").zip(series.values("cpu_s")).zip(&series.time_ns);
    let rows: Vec<(f64, i64)> = rows
        .filter(|((thread, _), _)| thread == spinning)
        .filter_map(|((_, cpu_s), at_ns)| Some(((*cpu_s)?, *at_ns)))
        .collect();
    let (first, last) = (rows[0], rows[rows.len() - 1]);
    assert!(first.1 >= 0 && last.1 <= now_ns() - began_ns);
    let cores = (last.0 - first.0) / summary.length_s;
    let reported = summary.server.as_ref().unwrap().threads[0].cpu_cores;
    assert!((cores / reported - 1.0).abs() < 0.02, "{cores} {reported}");
    // A line over time is the same CPU time, in bins.
    let line = summary.timeline.lines.iter().find(|line| &line.thread == spinning).unwrap();
    let binned_s = line.cpu_cores.iter().sum::<f64>() * summary.timeline.bin_s;
    assert!((binned_s / (last.0 - first.0) - 1.0).abs() < 0.02, "{binned_s}");
}

fn a_profile_shows_which_function_uses_the_cpu() {
    // One has three times the work of the other. Of 400 samples or more, a ratio beyond 2 to 5 has a probability below 2·10⁻⁴; but a host
    // that takes the core away during one of the two counts as that one's work.
    kendall_testbed::unless_disturbed(|| match work_of_long_to_short()? {
        Some(ratio) if !(2.0..5.0).contains(&ratio) => Err(format!("{ratio} to 1")),
        Some(_) => Ok(()),
        None => {
            kendall_testbed::left_out("this kernel allows no profile");
            Ok(())
        }
    });
}

/// The samples in [`long`] for each in [`short`], of a server that calls both in turn; `None` where nothing can be sampled.
fn work_of_long_to_short() -> Result<Option<f64>, String> {
    let server = start("two functions");
    let target = Target { role: Role::Server, pid: server.pid(), children: Children::Watched };
    let watch = Watch::start(&Config { profile_hz: Some(499), ..Config::default() }, &[target]).unwrap();
    thread::sleep(WATCHED);
    let WatchResult { summary, profile } = watch.end(0).unwrap();
    let profile = profile.unwrap();
    if profile.samples == 0 {
        eprintln!("{}", profile.notes.join(" "));
        return Ok(None);
    }
    let within = |function: &str| {
        let name = format!("watching::{function}");
        let stacks = profile.folded.iter().filter(|(stack, _)| stack.split(';').any(|frame| frame == name));
        stacks.map(|(_, count)| *count as f64).sum::<f64>()
    };
    // The stack goes from the thread's start through [`serve`] to the function.
    let whole = |stack: &str| stack.contains("watching::serve") && stack.contains(";watching::long");
    if !profile.folded.iter().any(|(stack, _)| whole(stack)) {
        return Err(profile.to_text());
    }
    // 499 samples a second of CPU time: at half as many, a third of the machine's time would be missing.
    let expected = 499.0 * summary.server.unwrap().cpu_cores * summary.length_s;
    if (profile.samples as f64) < 0.5 * expected || profile.lost > profile.samples / 20 {
        return Err(format!("{} of {expected} samples, {} lost", profile.samples, profile.lost));
    }
    Ok(Some(within("long") / within("short")))
}

fn a_profile_has_the_stacks_of_child_processes() {
    if !kendall_testbed::has_peer("timeout", "--version") {
        return;
    }
    // Its parent waits for it all the while, and ends it. It rests, because other tests measure meanwhile.
    let works = "while sleep 0.02; do i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done; done";
    let mut parent = Command::new("timeout").args(["2", "sh", "-c", works]).spawn().unwrap();
    thread::sleep(Duration::from_millis(200));
    let target = Target { role: Role::Server, pid: parent.id(), children: Children::Watched };
    let watch = Watch::start(&Config { profile_hz: Some(499), ..Config::default() }, &[target]).unwrap();
    thread::sleep(WATCHED);
    let profile = watch.end(0).unwrap().profile.unwrap();
    parent.wait().unwrap();
    if profile.hz != 499 {
        return kendall_testbed::left_out("this kernel allows no profile");
    }
    assert!(profile.samples > 0, "{:?}", profile.notes);
}

fn a_profile_of_an_interpreter_says_so_with_the_remedy() {
    if !kendall_testbed::has_peer("python3", "--version") {
        return;
    }
    let mut program = Command::new("python3").args(["-c", "while True: pass"]).spawn().unwrap();
    // It may be a shell at first, that becomes the interpreter.
    thread::sleep(Duration::from_millis(500));
    let target = Target { role: Role::Server, pid: program.id(), children: Children::Watched };
    let watch = Watch::start(&Config { profile_hz: Some(499), ..Config::default() }, &[target]).unwrap();
    thread::sleep(WATCHED);
    let profile = watch.end(0).unwrap().profile.unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    if profile.samples == 0 {
        return kendall_testbed::left_out("this kernel allows no profile");
    }
    let notes = profile.notes.join(" ");
    assert!(notes.contains("a program in Python") && notes.contains("python -X perf"), "{notes}");
}

fn watching_costs_little_and_says_how_much() {
    // Where a reading costs much, a hundredth of a core is kept by reading less often than asked; opening the files comes on top. On a
    // busy machine readings come too late, and cost more.
    kendall_testbed::unless_disturbed(|| {
        let server = start("rest");
        let cost = watched(&server).cost;
        let planned = WATCHED.as_secs_f64() / cost.every_s;
        let share = (cost.samples + cost.skipped) as f64 / planned;
        let cores = cost.cpu_s / WATCHED.as_secs_f64();
        // It reads as often as asked, or as often as its share of a core allows.
        let is_kept = share < 1.5 && (share > 0.5 || cores > 0.003) && cores > 0.0 && cores < 0.03;
        if is_kept { Ok(()) } else { Err(format!("{cost:?}")) }
    });
}

fn a_process_that_is_not_there_is_an_error_that_names_it() {
    let target = Target { role: Role::Server, pid: u32::MAX, children: Children::Left };
    let config = Config::default();
    let message = Watch::start(&config, &[target]).unwrap_err().to_string();
    assert!(message.contains("4294967295"), "{message}");
}
