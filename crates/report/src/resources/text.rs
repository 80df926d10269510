//! The measurements of a process, for the terminal.

use kendall_analysis::{Bottleneck, RequestSplit};
use kendall_probe::{Connections, Profile, Summary, ThreadState, Use};

use crate::flame::functions;
use kendall_stats::number::{NONE, percent, significant, time};

/// Functions that are listed.
const MOST_FUNCTIONS: usize = 10;

/// The measurements of a server, one a line, its threads, and the resource that limits it.
pub fn text(summary: &Summary, limit: Option<&Bottleneck>) -> String {
    let lines = used(summary).into_iter().map(|(name, words)| format!("{name:<12} {words}\n"));
    let mut text: String = lines.collect();
    if let Some(server) = &summary.server {
        text += &threads(server);
    }
    if let Some(limit) = limit {
        text += &format!("\n{limit}\n");
    }
    let cost = &summary.cost;
    text += &format!(
        "\nEach reading took {} of CPU time, {} of a core at 100 readings a second.\n",
        time(cost.per_sample_s()),
        percent(cost.share_at_100_per_s())
    );
    for what in &summary.missing {
        text += &format!("Not measured: {what}.\n");
    }
    text
}

/// What a server and the machine used: of what, and how much.
pub(super) fn used(summary: &Summary) -> Vec<(&'static str, String)> {
    let mut used = Vec::new();
    let mut line = |name: &'static str, words: Option<String>| {
        used.push((name, words.unwrap_or_else(|| NONE.to_owned())));
    };
    if let Some(server) = &summary.server {
        line("CPU", Some(cpu(summary, server)));
        line("run queue", Some(run_queue(server)));
        line(
            "switches",
            server.switches_per_s.map(|(own, forced)| {
                format!("{}/s to wait, {}/s forced", significant(own, 2), significant(forced, 2))
            }),
        );
        line("memory", server.memory_peak_bytes.map(|most| format!("{} at most", bytes(most))));
        let per_s = |(read, written)| format!("{}/s read, {}/s written", bytes(read), bytes(written));
        line("disk", server.disk_per_s.map(per_s));
        line(
            "network",
            server.net_per_s.map(|(into, out)| {
                let retransmits =
                    server.retransmits.map_or_else(String::new, |count| format!(", {count:.0} sent again"));
                let drops = server
                    .listen_drops
                    .map_or_else(String::new, |count| format!(", {count:.0} not accepted"));
                format!("{}/s in, {}/s out{retransmits}{drops}, in its namespace", bytes(into), bytes(out))
            }),
        );
        line("connections", server.connections.as_ref().map(connections));
        if let Some(throttled) = server.throttled.filter(|throttled| *throttled > 0.0) {
            line("quota", Some(format!("kept from running {} of the time", percent(throttled))));
        }
    }
    line("machine", machine(summary));
    used
}

/// Where the time of one request went in the server.
pub fn split_text(split: &RequestSplit) -> String {
    let table = split.table();
    let row = |cells: &Vec<String>| format!("  {:<24} {:>9} {:>8}\n", cells[0], cells[1], cells[2]);
    let rows: String = table.rows.iter().map(row).collect();
    format!("\n{}\n{rows}{}\n", split.title(), split.note())
}

/// The functions of a profile that used most by themselves.
pub fn profile_text(profile: &Profile) -> String {
    let mut text = String::new();
    if profile.samples > 0 {
        let Profile { samples, hz, lost, cost_s, .. } = profile;
        text += &format!(
            "\n{samples} stacks at {hz} a second of CPU time, {lost} lost; taking and naming them cost {}.\n",
            time(*cost_s)
        );
    }
    if profile.folded.is_empty() {
        return text + "\nIt used too little CPU to sample a stack.\n";
    }
    let all: u64 = profile.folded.iter().map(|(_, count)| count).sum();
    text += &format!("{:>8}  {:>10}  function\n", "itself", "with calls");
    for function in functions(&profile.folded).into_iter().take(MOST_FUNCTIONS) {
        let share = |count: u64| percent(count as f64 / all.max(1) as f64);
        text += &format!("{:>8}  {:>10}  {}\n", share(function.own), share(function.all), function.name);
    }
    profile.notes.iter().for_each(|note| text += &format!("{note}\n"));
    text
}

fn cpu(summary: &Summary, server: &Use) -> String {
    let kernel = server
        .system_cores
        .map_or_else(String::new, |cores| format!(", {} in the kernel", significant(cores, 2)));
    format!("{} of {} cores{kernel}", significant(server.cpu_cores, 3), significant(summary.cores, 2))
}

fn run_queue(server: &Use) -> String {
    let waiting = format!("{} threads ready without a core", significant(server.waiting_threads, 2));
    match server.run_queue_wait_s {
        Some((p50_s, p99_s)) => format!("{waiting}; wait for one p50 {}, p99 {}", wait(p50_s), wait(p99_s)),
        None => waiting,
    }
}

/// A wait for a core. The kernel counts in nanoseconds what a thread that is idle most of the time waits, and that says nothing.
fn wait(time_s: f64) -> String {
    if time_s < 1e-6 { "under 1 µs".to_owned() } else { time(time_s) }
}

fn connections(seen: &Connections) -> String {
    let mut words = format!("{:.0} at most", seen.most);
    if let Some(round_trip_s) = seen.round_trip_s {
        words += &format!(", round trip {}", time(round_trip_s));
    }
    if let Some((mean, most)) = seen.accept_queue {
        words += &format!(", accept queue {} on average and {most:.0} at most", significant(mean, 2));
    }
    if let Some((count, busy, _)) = seen.back_end {
        words +=
            &format!(", {count:.0} to other servers of which {} wait for an answer", significant(busy, 2));
    }
    words
}

fn machine(summary: &Summary) -> Option<String> {
    let machine = &summary.machine;
    let mut words = format!("{} of {} cores busy", significant(machine.busy_cores?, 2), machine.cores);
    if let Some(stolen) = machine.stolen_cores {
        words += &format!(", {} taken by other machines", significant(stolen, 1));
    }
    if let Some(pressure) = machine.cpu_pressure {
        words += &format!(", some thread without a core {} of the time", percent(pressure));
    }
    Some(words)
}

fn threads(server: &Use) -> String {
    let mut text = format!("\n{:<24} {:>6} {:>8}  found\n", "thread", "cores", "waiting");
    for thread in &server.threads {
        let place = |(place, share): &(ThreadState, f64)| format!("{} {}", place.name(), percent(*share));
        let places: Vec<String> = thread.places.iter().take(3).map(place).collect();
        let (cores, waiting) = (significant(thread.cpu_cores, 2), percent(thread.waiting));
        text += &format!("{:<24} {cores:>6} {waiting:>8}  {}\n", thread.thread, places.join(", "));
    }
    let (count, cores) = server.other_threads;
    if count > 0 {
        text += &format!("{:<24} {:>6}\n", format!("and {count} more"), significant(cores, 2));
    }
    text
}

/// A number of bytes with the unit that fits.
pub(super) fn bytes(bytes: f64) -> String {
    let (unit, size) = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)]
        .into_iter()
        .find(|(_, size)| bytes >= *size)
        .unwrap_or(("B", 1.0));
    format!("{} {unit}", significant(bytes / size, 2))
}
