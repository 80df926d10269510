//! How long searches take, each beside the other ways to do it and beside ripgrep and grep.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kendall_textsearch::{
    Backtracking, Database, Form, Generate, Layout, OpenOptions, Progress, Query, Reading, Rows, Search,
    SearchMethod, Semantics, Size, TIMED, generate,
};
use rustix::time::{ClockId, clock_gettime};

use crate::common::{ROUNDS, median, ratio};

const ROWS: u64 = 3_000_000;
pub(crate) fn section(page: &mut String) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = folder.path().join("rows");
    let sentences = folder.path().join("sentences");
    make(&data, &sentences);
    let built = open(&data);
    let again = open(&data);
    let (first, second) = (built.contents(), again.contents());
    let ready_s = (second.read_in + second.index_in).as_secs_f64();
    let (floor_ms, megabytes) = (floor_ms(&sentences), first.sentence_bytes as f64 / 1e6);
    let _ = write!(
        page,
        "\n## Text search\n\nA synthetic database of {ROWS} rows and {megabytes:.0} MB of sentences of five types. Read in {:.2} s and indexed in {:.2} s \
         on all processors; the index takes {:.0} MB. Opened again, it is ready in {ready_s:.2} s: read in {:.2} s, the saved index in \
         {:.2} s. To read all sentences once, and do nothing with them, takes one core {floor_ms:.1} ms ({:.0} GB/s): no scan can be faster.\n\n\
         All types are searched, with what matches counted and kept as numbers of lines. Of ours, the processor time of one thread, \
         plan included, and the time on two threads; of every other way that can do the pattern, the fastest, and how \
         much longer the planned one takes; of ripgrep and grep (`rg -j1 --count --no-unicode --no-mmap`, `grep --count` with LC_ALL=C, \
         either with -P where the pattern needs it) the time to count the lines of a file of the sentences, less the time that the \
         program takes for an empty file; of Java ({}) that of one thread to find the pattern in each line of a list. So all are warm: \
         files are in memory, and starting and opening do not count.\n\n\
         | kind | pattern | rows | plan | CPU, ms | 2 threads, ms | fastest other way | ms | plan : it | ripgrep, ms | grep, ms | Java, ms | better of ripgrep and grep : ours |\n\
         | --- | --- | ---: | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        first.read_in.as_secs_f64(),
        first.index_in.as_secs_f64(),
        second.index_bytes as f64 / 1e6,
        second.read_in.as_secs_f64(),
        second.index_in.as_secs_f64(),
        megabytes / floor_ms,
        if is_there("java") { "the fastest of two rounds" } else { "not installed here" },
    );
    drop(built);
    let java = java(&sentences);
    let ratios: Vec<f64> = TIMED
        .iter()
        .zip(java)
        .filter_map(|((kind, pattern), java)| row(page, &again, (kind, pattern), &sentences, java))
        .collect();
    let _ = writeln!(
        page,
        "\nAt the median of these patterns, the better of ripgrep and grep takes {} times as long.",
        ratio(median(ratios.into_iter()))
    );
    programs(page, &again, &data, &sentences);
    one_type(page, &again);
    first_rows(page, &again);
}

/// How long one core takes to read a file's bytes in memory, in ms.
fn floor_ms(file: &Path) -> f64 {
    let text = std::fs::read(file).expect("it was made");
    let read = |_| {
        let begun = Instant::now();
        std::hint::black_box(text.iter().fold(0, |all, byte| all ^ byte));
        begun.elapsed().as_secs_f64() * 1e3
    };
    median((0..5).map(read))
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Of each pattern, how many lines Java finds, and in how many ms; `None` where it is not there or takes no such pattern.
fn java(sentences: &Path) -> Vec<Option<(u64, f64)>> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/textsearch/Lines.java");
    let mut command = Command::new("java");
    command.arg("-Xmx4g").arg(program).arg(sentences).args(TIMED.map(|one| one.1));
    let told = command.output().map(|output| output.stdout).unwrap_or_default();
    let told = String::from_utf8_lossy(&told).into_owned();
    let mut lines = told.lines().map(|line| {
        let (found, ms) = line.split_once(' ')?;
        Some((found.parse().ok()?, ms.parse().ok()?))
    });
    TIMED.map(|_| lines.next().flatten()).to_vec()
}

fn make(data: &Path, sentences: &Path) {
    let what = Generate { size: Size::Rows(ROWS), types: 5, seed: 1, threads: 2 };
    let mut out = BufWriter::new(File::create(data).expect("the folder is ours"));
    generate(&what, &mut out).expect("the disk has room");
    drop(out);
    let mut out = BufWriter::new(File::create(sentences).expect("the folder is ours"));
    for row in BufReader::new(File::open(data).expect("it was made")).lines().map_while(Result::ok) {
        let (_, sentence) = row.split_once("@@@").expect("rows have types");
        writeln!(out, "{sentence}").expect("the disk has room");
    }
}

fn open(data: &Path) -> Arc<Database> {
    let options = OpenOptions { layout: Layout::Indexed, ..OpenOptions::default() };
    Arc::new(Database::open(data, &options).expect("it was made"))
}

/// One line of the table; how many times as long the better of the two programs takes.
fn row(
    page: &mut String,
    database: &Arc<Database>,
    (kind, pattern): (&str, &str),
    sentences: &Path,
    java: Option<(u64, f64)>,
) -> Option<f64> {
    let semantics =
        Semantics { backtracking: Backtracking::Within { steps: 1_000_000 }, ..Semantics::default() };
    let query = Arc::new(Query::new(Vec::new(), pattern, &semantics).expect("it is a pattern"));
    let (ours, two) = (&|| database.search(&query), &|| on_two_threads(database, &query));
    let (mut own, mut both, mut rows) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let (time, found) = cpu(ours);
        own.push(time);
        both.push(two());
        rows = found;
    }
    let own_ms = median(own.into_iter());
    let plan = database.search(&query).plan().method();
    let others = SearchMethod::ALL.into_iter().filter(|&way| way != plan).filter_map(|way| {
        database.search_by(&query, way)?;
        let times = (0..ROUNDS).map(|_| cpu(&|| database.search_by(&query, way).expect("it could")).0);
        Some((way, median(times)))
    });
    let other = others.min_by(|a, b| a.1.total_cmp(&b.1));
    let peers = [ripgrep(pattern, sentences, rows), grep(pattern, sentences, rows)];
    let empty = sentences.with_file_name("empty");
    File::create(&empty).expect("the folder is ours");
    let starts = [ripgrep("x", &empty, 0), grep("x", &empty, 0)];
    let peers = [0, 1].map(|i| Some((peers[i]? - starts[i]?).max(0.0)));
    let better = peers.iter().flatten().copied().min_by(f64::total_cmp).map(|ms| ms / own_ms);
    let java_ms = java.filter(|(found, _)| *found == rows).map(|(_, ms)| ms);
    let number = |ms: Option<f64>| ms.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.0}"));
    let _ = writeln!(
        page,
        "| {kind} | `{}` | {rows} | {plan} | {own_ms:.3} | {:.3} | {} | {} | {} | {} | {} | {} | {} |",
        pattern.replace('|', "\\|"),
        median(both.into_iter()),
        other.map_or("–", |(way, _)| way.name()),
        other.map_or_else(|| "–".to_owned(), |(_, ms)| format!("{ms:.3}")),
        other.map_or_else(|| "–".to_owned(), |(_, ms)| format!("{:.2}", own_ms / ms)),
        number(peers[0]),
        number(peers[1]),
        number(java_ms),
        better.map_or_else(|| "–".to_owned(), ratio),
    );
    better
}

/// The same patterns by whole programs: each starts, opens its file, which is in memory, and counts.
fn programs(page: &mut String, database: &Arc<Database>, data: &Path, sentences: &Path) {
    page.push_str(
        "\n**Whole programs**, from their start to their end, files in memory, one count: `kendall textsearch query --count` with the saved \
         index on all processors, ripgrep and grep as above.\n\n\
         | pattern | kendall, ms | ripgrep, ms | grep, ms | better of ripgrep and grep : kendall |\n| --- | ---: | ---: | ---: | ---: |\n",
    );
    let semantics =
        Semantics { backtracking: Backtracking::Within { steps: 1_000_000 }, ..Semantics::default() };
    for (_, pattern) in TIMED {
        let query = Arc::new(Query::new(Vec::new(), pattern, &semantics).expect("it is a pattern"));
        let rows = cpu(&|| database.search(&query)).1;
        let ours = kendall_query(pattern, data, rows);
        let peers = [ripgrep(pattern, sentences, rows), grep(pattern, sentences, rows)];
        let better = peers.iter().flatten().copied().min_by(f64::total_cmp);
        let number = |ms: Option<f64>| ms.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.0}"));
        let faster = better.zip(ours).map_or_else(|| "–".to_owned(), |(peer, own)| ratio(peer / own));
        let pattern = pattern.replace('|', "\\|");
        let [ripgrep, grep] = peers.map(number);
        let _ = writeln!(page, "| `{pattern}` | {} | {ripgrep} | {grep} | {faster} |", number(ours));
    }
}

fn kendall_query(pattern: &str, data: &Path, rows: u64) -> Option<f64> {
    let mut command = Command::new(crate::common::kendall());
    command.args(["textsearch", "query", "--count", "--backtracking", "1000000"]).arg(data);
    timed(command.arg(format!(";{pattern}")), pattern, rows)
}

/// The processor time of a search on this thread, in ms, and how many rows it finds.
fn cpu(search: &dyn Fn() -> Search) -> (f64, u64) {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("it is not negative");
    let begun = now();
    let search = search();
    search.run().expect("no pattern takes too many steps");
    ((now() - begun).as_secs_f64() * 1e3, search.rows_found())
}

/// The time of a search on two threads, in ms.
fn on_two_threads(database: &Arc<Database>, query: &Arc<Query>) -> f64 {
    let begun = Instant::now();
    let search = database.search(query);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| while search.advance(Duration::from_millis(1)) == Progress::More {});
        }
    });
    begun.elapsed().as_secs_f64() * 1e3
}

fn ripgrep(pattern: &str, file: &Path, rows: u64) -> Option<f64> {
    let mut command = Command::new("rg");
    command.args(["--no-config", "-j1", "--count", "--no-unicode", "--no-mmap"]);
    counted(command.arg(if backtracks(pattern) { "-P" } else { "--no-pcre2" }), pattern, file, rows)
}

fn grep(pattern: &str, file: &Path, rows: u64) -> Option<f64> {
    let mut command = Command::new("grep");
    command.env("LC_ALL", "C").arg("--count");
    let perl = backtracks(pattern) || pattern.contains("(?") || pattern.contains("\\d");
    counted(command.arg(if perl { "-P" } else { "-E" }), pattern, file, rows)
}

fn backtracks(pattern: &str) -> bool {
    pattern.contains("\\1") || pattern.contains("(?<")
}

fn counted(command: &mut Command, pattern: &str, file: &Path, rows: u64) -> Option<f64> {
    timed(command.arg("-e").arg(pattern).arg(file), pattern, rows)
}

/// How long a program takes that counts as many lines as we find, in ms; `None` if it is not there or counts others.
fn timed(command: &mut Command, pattern: &str, rows: u64) -> Option<f64> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let told = command.output().ok()?.stdout;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        let counted = String::from_utf8_lossy(&told).trim().parse().unwrap_or(0u64);
        if counted != rows {
            println!(
                "`{pattern}`: {} counts {counted} lines, we find {rows}",
                command.get_program().display()
            );
            return None;
        }
    }
    Some(median(times.into_iter()))
}

/// What a request of the published study costs: one type, and a literal.
fn one_type(page: &mut String, database: &Arc<Database>) {
    let query = Arc::new(Query::parse("1;(.*)this man(.*)", &Semantics::default()).expect("it is a request"));
    let times = (0..20).map(|_| cpu(&|| database.search(&query)).0);
    let _ = writeln!(
        page,
        "\nThe published request `1;(.*)this man(.*)`, one type of five: {:.3} ms; on the machine of the study 650 ms.",
        median(times)
    );
}

/// How long it takes from a request to its first row, where the index says little or nothing.
fn first_rows(page: &mut String, database: &Arc<Database>) {
    let _ = write!(page, "\nFrom a request to its first row:");
    for request in [";.*", ";the", ";[0-9]{4}", r";(\w{3,8} ){6}[A-Z]"] {
        let first = |_| {
            let begun = Instant::now();
            let query = Arc::new(Query::parse(request, &Semantics::default()).expect("it is a request"));
            let search = Arc::new(database.search(&query));
            let (mut rows, mut text) = (Rows::new(Arc::clone(&search), Form::Row), Vec::new());
            while rows.read(&mut text, 1) == Reading::Waiting {
                search.advance(Duration::ZERO);
            }
            begun.elapsed().as_secs_f64() * 1e3
        };
        let _ = write!(page, " `{request}` {:.3} ms,", median((0..20).map(first)));
    }
    page.truncate(page.len() - 1);
    page.push_str(".\n");
}
