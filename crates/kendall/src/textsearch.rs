//! `kendall textsearch`: ask a file of typed sentences from the terminal, and make such files.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use kendall_textsearch::{
    Alphabet, Database, Form, Generate, Layout, Matching, OpenOptions, Progress, Query, Reading, Rows,
    Saving, Search, Semantics, Size, backtracking, generate,
};

use crate::print;

/// Rows are printed in pieces of this.
const PIECE_BYTES: usize = 64 * 1024;
/// What stands around a match on a terminal.
const COLOUR: (&[u8], &[u8]) = (b"\x1b[1;31m", b"\x1b[0m");

#[derive(Subcommand)]
pub(crate) enum Textsearch {
    /// Print the rows of a file that match: kendall textsearch query sentences.txt '1,2;this man'
    Query(Ask),
    /// Make the index that is kept beside a file, or say whether it is there and fits: kendall textsearch index sentences.txt
    Index(IndexFile),
    /// Make a synthetic file of typed sentences: kendall textsearch generate sentences.txt --rows 3000000
    Generate(Make),
}

#[derive(Args)]
pub(crate) struct Ask {
    /// File of lines type@@@sentence
    file: PathBuf,

    /// TYPES;PATTERN: integers with commas between them, none for all types, and a pattern as Java writes it
    request: String,

    /// Whether the pattern must be found in a sentence (find) or match all of it (whole)
    #[arg(long = "match", value_name = "HOW", default_value = "find", value_parser = Matching::from_str)]
    matching: Matching,

    /// What is printed of a row: row (type@@@sentence) or sentence
    #[arg(long, value_name = "WHAT", default_value = "row", value_parser = Form::from_str)]
    answer: Form,

    /// \w, \d, \s, \b and (?i) mean the letters and digits of all scripts and not those of ASCII
    #[arg(long)]
    unicode: bool,

    /// Allow look-around, back-references and the like, with so many steps at most for a sentence
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u32).range(1..))]
    backtracking: Option<u32>,

    /// How sentences lie and are searched: flat, by-type or indexed, with the index that kendall textsearch index has made; none is
    /// made here, for that takes longer than one search
    #[arg(long, default_value = "indexed", value_parser = Layout::from_str)]
    layout: Layout,

    /// Print how many rows match, and not the rows
    #[arg(long)]
    count: bool,

    /// Whether matches are coloured
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    colour: Colour,

    /// Say to standard error what was read, how the search was planned and why so, and how long both took
    #[arg(long)]
    explain: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Colour {
    /// Where standard output is a terminal and NO_COLOR is not set
    Auto,
    Always,
    Never,
}

#[derive(Args)]
pub(crate) struct IndexFile {
    /// File of lines type@@@sentence; the index is kept in a file of the same name with .index behind it
    file: PathBuf,

    /// Make nothing, and fail if the index is not there or is not of these rows
    #[arg(long)]
    check: bool,
}

#[derive(Args)]
pub(crate) struct Make {
    /// File to write; one that exists is replaced
    file: PathBuf,

    /// So many rows
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), required_unless_present = "bytes")]
    rows: Option<u64>,

    /// As many rows as are needed for so many bytes
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "rows")]
    bytes: Option<u64>,

    /// How many types there are, numbered from 0
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    types: u32,

    /// What the sentences are drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn textsearch(command: Textsearch) -> anyhow::Result<ExitCode> {
    match command {
        Textsearch::Query(ask) => query(&ask),
        Textsearch::Index(index) => index_file(&index),
        Textsearch::Generate(make) => generate_file(&make),
    }
}

fn query(ask: &Ask) -> anyhow::Result<ExitCode> {
    let semantics = Semantics {
        matching: ask.matching,
        alphabet: if ask.unicode { Alphabet::Unicode } else { Alphabet::Ascii },
        backtracking: backtracking(ask.backtracking),
        ..Semantics::default()
    };
    // A request that is refused is refused before a large file is read.
    let query = Arc::new(Query::parse(&ask.request, &semantics)?);
    let options = OpenOptions { layout: ask.layout, saving: Saving::Existing, ..OpenOptions::default() };
    let database = Arc::new(Database::open(&ask.file, &options)?);
    let begun = Instant::now();
    let search = Arc::new(database.search(&query));
    let printed = search.run_beside(options.threads.saturating_sub(1), || print_rows(ask, &search));
    match printed {
        // Whoever closed the pipe has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
        printed => printed.context("cannot write to standard output")?,
    }
    if let Some(error) = search.failure() {
        bail!("{error}");
    }
    if ask.count {
        print::out(&format!("{}\n", search.rows_found()))?;
    }
    if ask.explain {
        explain(&database, &search, begun.elapsed());
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints rows in the order of the file while they are found, and searches where there are none to print.
fn print_rows(ask: &Ask, search: &Arc<Search>) -> io::Result<()> {
    let colours = match ask.colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
        }
    };
    let mut out = io::stdout().lock();
    let mut rows = Rows::new(Arc::clone(search), ask.answer);
    let mut piece = Vec::new();
    loop {
        piece.clear();
        let reading = rows.read(&mut piece, PIECE_BYTES);
        if !ask.count {
            match colours {
                true => coloured(&piece, ask.answer, search.query(), &mut out)?,
                false => out.write_all(&piece)?,
            }
        }
        match reading {
            Reading::Full => {}
            Reading::End => return out.flush(),
            Reading::Waiting => {
                if search.advance(Duration::from_millis(1)) == Progress::AllTaken {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }
}

fn coloured(rows: &[u8], form: Form, query: &Query, out: &mut impl Write) -> io::Result<()> {
    for row in rows.split_inclusive(|&byte| byte == b'\n') {
        let after_type = row.windows(3).position(|three| three == b"@@@").map_or(0, |at| at + 3);
        let (kind, sentence) = row.split_at(if form == Form::Row { after_type } else { 0 });
        let sentence = sentence.strip_suffix(b"\n").unwrap_or(sentence);
        out.write_all(kind)?;
        let mut at = 0;
        // A sentence that was found is not too much for the limit of steps; if all the same, it stays plain.
        for found in query.matches(sentence).unwrap_or_default() {
            out.write_all(&sentence[at..found.start])?;
            out.write_all(COLOUR.0)?;
            out.write_all(&sentence[found.clone()])?;
            out.write_all(COLOUR.1)?;
            at = found.end;
        }
        out.write_all(&sentence[at..])?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn explain(database: &Database, search: &Search, took: Duration) {
    let contents = database.contents();
    let types: Vec<String> =
        contents.rows_by_type.iter().map(|(kind, rows)| format!("{kind}: {rows}")).collect();
    print::note(&format!(
        "{}: {} rows ({}), read in {:.1?}",
        contents.path.display(),
        contents.rows(),
        types.join(", "),
        contents.read_in
    ));
    if database.layout() == Layout::Indexed {
        print::note(&format!(
            "{} of these rows are indexed, read in {:.1?}",
            contents.indexed_rows, contents.index_in
        ));
    }
    print::note(&format!("plan: {}", search.plan()));
    print::note(&format!(
        "searched {} as {} in {} parts: {} rows, {took:.1?}",
        match search.query().kinds() {
            [] => "all types".to_owned(),
            kinds => format!("types {kinds:?}"),
        },
        database.layout().name(),
        search.parts().1,
        search.rows_found(),
    ));
}

fn index_file(index: &IndexFile) -> anyhow::Result<ExitCode> {
    let saving = if index.check { Saving::Existing } else { Saving::Beside };
    let database = Database::open(&index.file, &OpenOptions { saving, ..OpenOptions::default() })?;
    let contents = database.contents();
    if let Some(fault) = &contents.index_source.fault {
        bail!("{fault}");
    }
    let (rows, indexed) = (contents.rows(), contents.indexed_rows);
    if indexed < rows {
        bail!(
            "{}: the index covers {indexed} of {rows} rows; make it with: kendall textsearch index {0}",
            index.file.display()
        );
    }
    let done = if contents.index_source.shards_built > 0 { "made" } else { "there, and read" };
    print::out(&format!(
        "{}: the index of {rows} rows is {done} in {:.1?}; it has {:.1} MB for {:.1} MB of sentences\n",
        index.file.display(),
        contents.index_in,
        contents.index_bytes as f64 / 1e6,
        contents.sentence_bytes as f64 / 1e6
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn generate_file(make: &Make) -> anyhow::Result<ExitCode> {
    let size = make.rows.map_or_else(|| Size::Bytes(make.bytes.unwrap_or(0)), Size::Rows);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let what = Generate { size, types: make.types, seed: make.seed, threads };
    let begun = Instant::now();
    let failed = || format!("cannot write {}", make.file.display());
    let mut out = BufWriter::new(File::create(&make.file).with_context(failed)?);
    let made = generate(&what, &mut out).with_context(failed)?;
    print::out(&format!(
        "{}: {} rows of {} types, {:.1} MB, in {:.1?}\n",
        make.file.display(),
        made.rows,
        make.types,
        made.bytes as f64 / 1e6,
        begun.elapsed()
    ))?;
    Ok(ExitCode::SUCCESS)
}
