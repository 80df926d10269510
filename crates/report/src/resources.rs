//! The use of resources by server, generator and machine in the trials: as a table, over time, and by
//! function.

mod text;

use text::bytes;
pub use text::{profile_text, split_text, text};

use kendall_analysis::{Bottleneck, RequestSplit, Table};
use kendall_probe::{Profile, Summary, Use};

use crate::figure::{self, Figure};
use crate::flame;
use kendall_analysis::{Report, Resources};
use kendall_stats::number::{NONE, percent, significant, time};

/// The section of a page.
pub(crate) struct Section {
    pub(crate) sentences: Vec<String>,
    pub(crate) over_time: Option<Figure>,
    pub(crate) table: Table,
    pub(crate) threads: Table,
    pub(crate) split: Option<Split>,
    pub(crate) flames: Vec<Flame>,
    pub(crate) note: String,
}

/// Where the time of one request went in the server.
pub(crate) struct Split {
    pub(crate) title: String,
    pub(crate) table: Table,
    pub(crate) note: String,
}

impl Split {
    fn of(split: &RequestSplit) -> Self {
        Self { title: split.title(), table: split.table(), note: split.note() }
    }
}

/// The stacks of a server.
pub(crate) struct Flame {
    pub(crate) title: String,
    pub(crate) svg: String,
    pub(crate) notes: String,
    /// The functions that used most by themselves.
    pub(crate) table: Table,
}

/// Flame graphs on a page; those of other trials are in the record.
const MOST_FLAMES: usize = 3;

impl Section {
    /// The section of a report, if any trial was watched.
    pub(crate) fn of(report: &Report) -> Option<Self> {
        let busiest = Resources::busiest(&report.resources)?;
        let point = busiest.point.and_then(|point| report.points.get(point));
        let place = point.map_or_else(String::new, |point| format!(" at {}", report.place(point)));
        let Resources { trial, summary, .. } = busiest;
        let title = format!("Cores used over time in trial {trial}{place}, in which the server used most");
        let flames = report.resources.iter().filter_map(|one| Some((one, one.profile.as_ref()?)));
        let mut flames: Vec<_> = flames.collect();
        flames.sort_by(|a, b| b.0.server_cores().total_cmp(&a.0.server_cores()));
        let flames = flames.into_iter().take(MOST_FLAMES);
        Some(Self {
            sentences: busiest.limit.iter().map(ToString::to_string).collect(),
            over_time: figure::cores(summary, title),
            table: table(report),
            threads: threads(summary),
            split: busiest.split.as_ref().map(Split::of),
            flames: flames
                .map(|(one, profile)| Flame::of(&format!(" in trial {}", one.trial), profile))
                .collect(),
            note: note(report.resources.iter().map(|one| &one.summary)),
        })
    }
}

/// The resource measurements of one server under load.
#[derive(Clone, Copy, Debug)]
pub struct ServerResources<'a> {
    /// The use of resources by server, generator and machine.
    pub summary: &'a Summary,
    /// The resource that limited the server.
    pub limit: Option<&'a Bottleneck>,
    /// The split of the time of one request in the server.
    pub split: Option<&'a RequestSplit>,
    /// The stacks of the server, where they were sampled.
    pub profile: Option<&'a Profile>,
}

/// The section of the page of one load.
pub(crate) struct OneServer {
    pub(crate) sentence: Option<String>,
    pub(crate) over_time: Option<Figure>,
    /// What it used: of what, and how much.
    pub(crate) used: Vec<(&'static str, String)>,
    pub(crate) threads: Table,
    pub(crate) split: Option<Split>,
    pub(crate) flame: Option<Flame>,
    pub(crate) note: String,
}

impl OneServer {
    pub(crate) fn of(watched: &ServerResources<'_>) -> Self {
        let ServerResources { summary, limit, split, profile } = *watched;
        Self {
            sentence: limit.map(ToString::to_string),
            over_time: figure::cores(summary, "Cores used over time".to_owned()),
            used: text::used(summary),
            threads: threads(summary),
            split: split.map(Split::of),
            flame: profile.map(|profile| Flame::of("", profile)),
            note: note(std::iter::once(summary)),
        }
    }
}

/// A row a trial.
fn table(report: &Report) -> Table {
    const HEAD: [&str; 11] = [
        "trial",
        "server CPU [cores]",
        "waiting for a core [threads]",
        "run-queue wait p50",
        "p99",
        "switches [1/s]",
        "memory",
        "written to disk",
        "busiest thread [cores]",
        "generator CPU [cores]",
        "probe [share of a core]",
    ];
    let row = |one: &Resources| {
        let Summary { server, generator, cost, length_s, .. } = &one.summary;
        let of = |text: fn(&Use) -> Option<String>| {
            server.as_ref().and_then(text).unwrap_or_else(|| NONE.to_owned())
        };
        vec![
            one.trial.clone(),
            of(|server| Some(significant(server.cpu_cores, 3))),
            of(|server| Some(significant(server.waiting_threads, 2))),
            of(|server| server.run_queue_wait_s.map(|(p50_s, _)| time(p50_s))),
            of(|server| server.run_queue_wait_s.map(|(_, p99_s)| time(p99_s))),
            of(|server| server.switches_per_s.map(|(own, taken)| significant(own + taken, 2))),
            of(|server| server.memory_peak_bytes.map(bytes)),
            of(|server| server.disk_per_s.map(|(_, written)| format!("{}/s", bytes(written)))),
            of(|server| server.threads.first().map(|thread| significant(thread.cpu_cores, 2))),
            generator.as_ref().map_or_else(|| NONE.to_owned(), |one| significant(one.cpu_cores, 2)),
            percent(cost.cpu_s / length_s.max(1e-9)),
        ]
    };
    Table { head: HEAD.map(str::to_owned).to_vec(), rows: report.resources.iter().map(row).collect() }
}

/// The threads of a server.
fn threads(summary: &Summary) -> Table {
    let head = ["thread", "cores", "waiting for a core", "where it was found"].map(str::to_owned).to_vec();
    let threads = summary.server.iter().flat_map(|server| &server.threads);
    let row = |thread: &kendall_probe::ThreadUse| {
        let places = thread.places.iter().take(3);
        let places: Vec<String> =
            places.map(|(place, share)| format!("{} {}", place.name(), percent(*share))).collect();
        let places = if places.is_empty() { NONE.to_owned() } else { places.join(", ") };
        vec![thread.thread.clone(), significant(thread.cpu_cores, 2), percent(thread.waiting), places]
    };
    Table { head, rows: threads.map(row).collect() }
}

/// What watching cost, and what it could not see.
fn note<'a>(summaries: impl Iterator<Item = &'a Summary> + Clone) -> String {
    let costs = || summaries.clone().map(|summary| &summary.cost);
    let cpu_s: f64 = costs().map(|cost| cost.cpu_s).sum();
    let samples: u64 = costs().map(|cost| cost.samples).sum();
    let per_sample_s = cpu_s / samples.max(1) as f64;
    let mut note = format!(
        "Each reading takes {} of CPU time on average, {} of a core at 100 readings a second.",
        time(per_sample_s),
        percent(100.0 * per_sample_s)
    );
    let mut missing: Vec<&String> = summaries.flat_map(|summary| &summary.missing).collect();
    missing.sort();
    missing.dedup();
    for what in missing {
        note += &format!(" Not seen: {what}.");
    }
    note
}

impl Flame {
    fn of(place: &str, profile: &Profile) -> Self {
        let all: u64 = profile.folded.iter().map(|(_, count)| count).sum();
        let head = ["function", "self", "with what it calls"].map(str::to_owned).to_vec();
        let row = |function: flame::Function| {
            let share = |count: u64| percent(count as f64 / all.max(1) as f64);
            vec![function.name, share(function.own), share(function.all)]
        };
        let cost = if profile.samples == 0 {
            String::new()
        } else {
            format!(
                "{} samples at {} a second of CPU time, {} lost; taking and naming them cost {} of CPU. ",
                profile.samples,
                profile.hz,
                profile.lost,
                time(profile.cost_s)
            )
        };
        Self {
            title: format!("Functions of the server{place}"),
            svg: flame::flame(&profile.folded, &format!("Flame graph of the server{place}")),
            notes: cost + &profile.notes.join(" "),
            table: Table {
                head,
                rows: flame::functions(&profile.folded).into_iter().take(15).map(row).collect(),
            },
        }
    }
}
