//! `kendall textsearch`: searches a file of typed sentences from the terminal, and generates such files and their
//! indexes.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kendall_files::Output;
use kendall_system::{Caller, Console, Kind, Parameter, Settings, Subcommand, SubcommandEnd, Subcommands};

use crate::{
    Alphabet, Backtracking, Database, Form, Generate, Layout, Matching, OpenOptions, Progress, Query,
    Reading, Rows, Saving, Search, Semantics, Size, generate,
};

/// The size of the pieces in which rows are printed.
const PIECE_BYTES: usize = 64 * 1024;
/// How long the printing thread searches before it checks for rows to print again.
const SEARCHED_BETWEEN: Duration = Duration::from_millis(1);
/// The text around a match on a terminal.
const COLOUR: (&[u8], &[u8]) = (b"\x1b[1;31m", b"\x1b[0m");

const IS_SET: &str = "it must be given or has a default, and its kind checked it";

const FILE: Parameter =
    Parameter { name: "file", help: "file of lines type@@@sentence", kind: Kind::File, default: None };

/// The subcommands of this system.
pub(crate) const SUBCOMMANDS: Subcommands = Subcommands {
    about: "Search typed sentences from the terminal, or make some to search",
    all: &[
        Subcommand {
            name: "query",
            about: "Print the rows of a file that match: kendall textsearch query sentences.txt '1,2;this man'",
            arguments: &[
                FILE,
                Parameter {
                    name: "request",
                    help: "TYPES;PATTERN: integers with commas between them, none for all types, and a pattern in Java's syntax",
                    kind: Kind::Text(|_| Ok(())),
                    default: None,
                },
            ],
            options: &[
                Parameter {
                    name: "match",
                    help: "whether the pattern must be found in a sentence (find) or match all of it (whole)",
                    kind: Kind::Word(check::<Matching>),
                    default: Some("find"),
                },
                Parameter {
                    name: "answer",
                    help: "part of a row to print: row (type@@@sentence) or sentence",
                    kind: Kind::Word(check::<Form>),
                    default: Some("row"),
                },
                Parameter {
                    name: "unicode",
                    help: "\\w, \\d, \\s, \\b and (?i) mean the letters and digits of all scripts instead of ASCII",
                    kind: Kind::Switch,
                    default: None,
                },
                Parameter {
                    name: "backtracking",
                    help: "allow look-around, back-references and the like, with at most this number of steps for a sentence",
                    kind: Kind::Whole { least: 1, most: u32::MAX as u64 },
                    default: None,
                },
                Parameter {
                    name: "layout",
                    help: "layout and search of sentences: flat, by-type or indexed, with the index that kendall \
                           textsearch index has made; query makes none, because that takes longer than one search",
                    kind: Kind::Word(check::<Layout>),
                    default: Some("indexed"),
                },
                Parameter {
                    name: "count",
                    help: "print the number of rows that match instead of the rows",
                    kind: Kind::Switch,
                    default: None,
                },
                Parameter {
                    name: "colour",
                    help: "whether matches are coloured: auto (at a terminal, unless NO_COLOR is set), always or never",
                    kind: Kind::Word(check::<Colour>),
                    default: Some("auto"),
                },
                Parameter {
                    name: "explain",
                    help: "report to standard error what was read, the plan of the search and its reasons, and the time of both",
                    kind: Kind::Switch,
                    default: None,
                },
            ],
            caller: Caller::User,
            run: query,
        },
        Subcommand {
            name: "index",
            about: "Make the index that is kept beside a file, in a file of the same name with .index behind it, or check \
                    whether it exists and fits: kendall textsearch index sentences.txt",
            arguments: &[FILE],
            options: &[Parameter {
                name: "check",
                help: "make nothing, and fail if the index does not exist or is not of these rows",
                kind: Kind::Switch,
                default: None,
            }],
            caller: Caller::User,
            run: index,
        },
        Subcommand {
            name: "generate",
            about: "Make a synthetic file of typed sentences: kendall textsearch generate sentences.txt --rows 3000000",
            arguments: &[Parameter {
                name: "file",
                help: "file to write; one that exists is replaced",
                kind: Kind::File,
                default: None,
            }],
            options: &[
                Parameter {
                    name: "rows",
                    help: "number of rows; this or --bytes must be given",
                    kind: Kind::Whole { least: 1, most: u64::MAX },
                    default: None,
                },
                Parameter {
                    name: "bytes",
                    help: "size in bytes; the file gets as many rows as fill it",
                    kind: Kind::Whole { least: 1, most: u64::MAX },
                    default: None,
                },
                Parameter {
                    name: "types",
                    help: "number of types, numbered from 0",
                    kind: Kind::Whole { least: 1, most: u32::MAX as u64 },
                    default: Some("6"),
                },
                Parameter {
                    name: "seed",
                    help: "seed of the sentences",
                    kind: Kind::Whole { least: 0, most: u64::MAX },
                    default: Some("1"),
                },
            ],
            caller: Caller::User,
            run: generate_file,
        },
    ],
};

/// When matches are coloured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    Auto,
    Always,
    Never,
}

impl FromStr for Colour {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(format!("must be auto, always or never, not {name:?}")),
        }
    }
}

fn check<T: FromStr<Err = String>>(name: &str) -> Result<(), String> {
    name.parse::<T>().map(drop)
}

/// A word that its kind has checked.
fn word<T: FromStr>(settings: &Settings, name: &str) -> T {
    settings.word(name).and_then(|word| word.parse().ok()).expect(IS_SET)
}

fn file(settings: &Settings) -> &Path {
    Path::new(settings.word("file").expect(IS_SET))
}

/// The form in which matching rows are printed.
struct Printing {
    form: Form,
    counts_only: bool,
    colours: bool,
}

fn query(settings: &Settings, console: &mut dyn Console) -> Result<SubcommandEnd, String> {
    let semantics = Semantics {
        matching: word(settings, "match"),
        alphabet: if settings.is_on("unicode") { Alphabet::Unicode } else { Alphabet::Ascii },
        backtracking: Backtracking::of(settings.whole("backtracking")),
        ..Semantics::default()
    };
    // A request that is rejected is rejected before a large file is read.
    let request = settings.word("request").expect(IS_SET);
    let query = Arc::new(Query::parse(request, &semantics).map_err(|error| format!("{request:?}: {error}"))?);
    let options =
        OpenOptions { layout: word(settings, "layout"), saving: Saving::Existing, ..OpenOptions::default() };
    let database = Database::open(file(settings), &options).map_err(|error| error.to_string())?;
    let database = Arc::new(database);
    let begun = Instant::now();
    let search = Arc::new(database.search(&query));
    let printing = Printing {
        form: word(settings, "answer"),
        counts_only: settings.is_on("count"),
        colours: match word(settings, "colour") {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => console.takes_colours(),
        },
    };
    let further = options.threads.saturating_sub(1);
    let printed = search.run_beside(further, || print_rows(&printing, &search, console.output()));
    match printed {
        // The reader of the pipe has closed it.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(SubcommandEnd::Done),
        printed => printed.map_err(|error| format!("cannot write to standard output: {error}"))?,
    }
    if let Some(error) = search.failure() {
        return Err(error.to_string());
    }
    if printing.counts_only {
        console.print(&format!("{}\n", search.rows_found()))?;
    }
    if settings.is_on("explain") {
        explain(&database, &search, begun.elapsed(), console);
    }
    Ok(SubcommandEnd::Done)
}

/// Prints rows in the order of the file while they are found, and searches while no row is ready to be printed.
fn print_rows(printing: &Printing, search: &Arc<Search>, out: &mut dyn Write) -> io::Result<()> {
    let mut rows = Rows::new(Arc::clone(search), printing.form);
    let mut piece = Vec::new();
    loop {
        piece.clear();
        let reading = rows.read(&mut piece, PIECE_BYTES);
        match printing {
            Printing { counts_only: true, .. } => {}
            Printing { colours: true, form, .. } => coloured(&piece, *form, search.query(), out)?,
            Printing { .. } => out.write_all(&piece)?,
        }
        match reading {
            Reading::Full => {}
            Reading::End => return out.flush(),
            Reading::Waiting => {
                if search.advance(SEARCHED_BETWEEN) == Progress::AllTaken {
                    rows.wait();
                }
            }
        }
    }
}

fn coloured(rows: &[u8], form: Form, query: &Query, out: &mut dyn Write) -> io::Result<()> {
    for row in rows.split_inclusive(|&byte| byte == b'\n') {
        let after_type = row.windows(3).position(|three| three == b"@@@").map_or(0, |at| at + 3);
        let (kind, sentence) = row.split_at(if form == Form::Row { after_type } else { 0 });
        let sentence = sentence.strip_suffix(b"\n").unwrap_or(sentence);
        out.write_all(kind)?;
        let mut at = 0;
        // A sentence that matched is within the limit of steps; otherwise it stays plain.
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

fn explain(database: &Database, search: &Search, took: Duration, console: &mut dyn Console) {
    let contents = database.contents();
    let types: Vec<String> =
        contents.rows_by_type.iter().map(|(kind, rows)| format!("{kind}: {rows}")).collect();
    console.note(&format!(
        "{}: {} rows ({}), read in {:.1?}",
        contents.path.display(),
        contents.rows(),
        types.join(", "),
        contents.read_in
    ));
    if database.layout() == Layout::Indexed {
        console.note(&format!(
            "{} of these rows are indexed, read in {:.1?}",
            contents.indexed_rows, contents.index_in
        ));
    }
    console.note(&format!("plan: {}", search.plan()));
    console.note(&format!(
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

fn index(settings: &Settings, console: &mut dyn Console) -> Result<SubcommandEnd, String> {
    let file = file(settings);
    let saving = if settings.is_on("check") { Saving::Existing } else { Saving::Beside };
    let options = OpenOptions { saving, ..OpenOptions::default() };
    let database = Database::open(file, &options).map_err(|error| error.to_string())?;
    let contents = database.contents();
    if let Some(fault) = &contents.index_source.fault {
        return Err(fault.to_string());
    }
    let (rows, indexed) = (contents.rows(), contents.indexed_rows);
    if indexed < rows {
        return Err(format!(
            "{}: the index covers {indexed} of {rows} rows; make it with: kendall textsearch index {0}",
            file.display()
        ));
    }
    let done = if contents.index_source.shards_built > 0 { "made" } else { "there, and read" };
    console.print(&format!(
        "{}: the index of {rows} rows is {done} in {:.1?}; it has {:.1} MB for {:.1} MB of sentences\n",
        file.display(),
        contents.index_in,
        contents.index_bytes as f64 / 1e6,
        contents.sentence_bytes as f64 / 1e6
    ))?;
    Ok(SubcommandEnd::Done)
}

fn generate_file(settings: &Settings, console: &mut dyn Console) -> Result<SubcommandEnd, String> {
    let size = match (settings.whole("rows"), settings.whole("bytes")) {
        (Some(rows), None) => Size::Rows(rows),
        (None, Some(bytes)) => Size::Bytes(bytes),
        (None, None) => return Err("no size is given; use --rows 3000000, or --bytes 100000000".into()),
        (Some(_), Some(_)) => return Err("rows and bytes exclude each other; keep one of them".into()),
    };
    let (file, types) = (file(settings), settings.whole("types").expect(IS_SET) as u32);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let what = Generate { size, types, seed: settings.whole("seed").expect(IS_SET), threads };
    let begun = Instant::now();
    let failed = |error: io::Error| format!("cannot write {}: {error}", file.display());
    let mut output = Output::open(file).map_err(failed)?;
    let made = generate(&what, &mut BufWriter::new(output.file())).map_err(failed)?;
    output.finish().map_err(failed)?;
    console.print(&format!(
        "{}: {} rows of {types} types, {:.1} MB, in {:.1?}\n",
        file.display(),
        made.rows,
        made.bytes as f64 / 1e6,
        begun.elapsed()
    ))?;
    Ok(SubcommandEnd::Done)
}
