//! What must hold for any request, answer, pattern and data file, and for any saved index.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use kendall_testbed::fuzz::{Script, Target, fed, however_cut, with_file};

use crate::database::Database;
use crate::index::saved::{self, Of};
use crate::index::shard::Shard;
use crate::index::whole::{Index, Indexed};
use crate::opening::{Layout, OpenOptions, Saving};
use crate::pattern::{Perl, parse};
use crate::protocol::{Dialect, utf};
use crate::query::Query;
use crate::rows::{Form, Reading, Rows};
use crate::search::Progress;
use crate::semantics::{Alphabet, Backtracking, Matching, Semantics};

/// Options whose defaults are not asked from the system for each case.
static OPTIONS: LazyLock<OpenOptions> =
    LazyLock::new(|| OpenOptions { threads: 1, saving: Saving::Off, ..OpenOptions::default() });

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "textsearch-request", seeds: request_seeds, run: request },
    Target { name: "textsearch-answer", seeds: answer_seeds, run: answer },
    Target { name: "textsearch-pattern", seeds: pattern_seeds, run: pattern },
    Target { name: "textsearch-search", seeds: search_seeds, run: search },
    Target { name: "textsearch-index", seeds: index_seeds, run: index },
];

/// A request can be sent again as it was read, but for carriage returns at its end, and a message of Java is text in one way.
fn request(input: &[u8]) {
    for dialect in Dialect::ALL {
        let Some(framed) = dialect.decode_request(input) else { continue };
        assert!((1..=input.len()).contains(&framed.used_bytes));
        let Ok(text) = framed.text else { continue };
        let _ = Query::parts(&text);
        if let Ok(bytes) = dialect.encode_request(&text) {
            let again = dialect.decode_request(&bytes).expect("it is complete");
            assert_eq!((again.used_bytes, again.text), (bytes.len(), Ok(text)));
        }
    }
    if let Some(text) = utf::decode(input) {
        assert_eq!(utf::encode(&text).expect("it is short")[utf::LENGTH_BYTES..], *input);
    }
}

fn request_seeds() -> Vec<Vec<u8>> {
    let texts = ["1,-2;a.*b", ";a\u{0}\u{1F600}ü\r", ";"];
    let requests =
        Dialect::ALL.map(|dialect| texts.map(|text| dialect.encode_request(text).expect("it fits")));
    requests.into_iter().flatten().collect()
}

/// A client reads an answer to the same end, however it is cut.
fn answer(input: &[u8]) {
    for dialect in Dialect::ALL {
        however_cut(input, |pieces| {
            let mut reader = dialect.reader();
            let end = fed(pieces, |bytes| {
                let read = reader.take(bytes);
                (read.used_bytes, read.ended)
            });
            (end, reader.has_begun())
        });
    }
}

fn answer_seeds() -> Vec<Vec<u8>> {
    let of = |dialect: Dialect| {
        let answers =
            [dialect.encode_answer("1@@@a\n2@@@b\n"), dialect.encode_answer(""), dialect.encode_error("no")];
        answers.map(|answer| [&[3][..], &answer].concat())
    };
    Dialect::ALL.map(of).into_iter().flatten().collect()
}

/// A pattern matches a sentence by automata where it does by backtracking, and it has one canonical form.
fn pattern(input: &[u8]) {
    let Some((&choice, input)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (pattern, sentence) = text.split_once('\n').unwrap_or((text, "some words"));
    let sentence = sentence.lines().next().unwrap_or_default();
    let matching = if choice & 1 == 0 { Matching::Find } else { Matching::Whole };
    let alphabet = if choice & 2 == 0 { Alphabet::Ascii } else { Alphabet::Unicode };
    let backtracking = Backtracking::of((choice & 4 != 0).then_some(1_000));
    let semantics =
        Semantics { matching, alphabet, backtracking, compiled_bytes: 1 << 16, ..Semantics::default() };
    let Ok(query) = Query::new(Vec::new(), pattern, &semantics) else { return };
    let again = Query::new(Vec::new(), pattern, &semantics).map(|query| query.canonical());
    assert_eq!(again, Ok(query.canonical()));
    let Ok(matches) = query.is_match(sentence.as_bytes()) else { return };
    let parsed = parse::parse(pattern, alphabet).expect("it was parsed before");
    if parsed.irregular.is_none() && matching == Matching::Find {
        let perl = Perl::new(&parsed.tree, alphabet, 100_000);
        if let Ok(by_perl) =
            perl.map_err(drop).and_then(|perl| perl.is_match(sentence.as_bytes()).map_err(drop))
        {
            assert_eq!(matches, by_perl, "{pattern:?} in {sentence:?}");
        }
    }
}

fn pattern_seeds() -> Vec<Vec<u8>> {
    [
        "\0a.*b|[^\\d&&[a-z]]{2,3}\nxaab 12",
        "\x02(?i)\\p{L}+\\bÄ\\Q.\\E$\nüä.",
        "\x04(?<=a)(?<n>b)\\k<n>++\nabb",
        "\x01(?:a?){3}\\x{1F600}\\u0041[\\p{javaUpperCase}]\naaa",
    ]
    .map(Vec::from)
    .to_vec()
}

/// Every layout gives the same rows of a file, and each row matches.
fn search(input: &[u8]) {
    let (request, file) = input.split_at(input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len()));
    let Ok(request) = std::str::from_utf8(request) else { return };
    let semantics = Semantics { compiled_bytes: 1 << 16, ..Semantics::default() };
    let Ok(query) = Query::parse(request, &semantics) else { return };
    let query = Arc::new(query);
    let rows = Layout::ALL.map(|layout| {
        let options = OpenOptions { layout, ..OPTIONS.clone() };
        let database = with_file("data", file.strip_prefix(b"\n").unwrap_or_default(), |path| {
            Database::open(path, &options).expect("any file is read")
        });
        assert!(database.contents().rows() <= file.len() as u64);
        rows(&Arc::new(database), &query)
    });
    assert!(
        rows.iter().all(|other| *other == rows[0]),
        "{:?}",
        rows.map(|rows| rows.escape_ascii().to_string())
    );
    for row in rows[0].split(|byte| *byte == b'\n').filter(|row| !row.is_empty()) {
        let mark = row.windows(3).position(|three| three == b"@@@").expect("a row has a type");
        assert_eq!(query.is_match(&row[mark + 3..]).ok(), Some(true));
    }
}

fn rows(database: &Arc<Database>, query: &Arc<Query>) -> Vec<u8> {
    let search = Arc::new(database.search(query));
    while search.advance(Duration::MAX) == Progress::More {}
    let mut out = Vec::new();
    assert_eq!(Rows::new(search, Form::Row).read(&mut out, usize::MAX), Reading::End);
    out
}

fn search_seeds() -> Vec<Vec<u8>> {
    let file = "1@@@some words\n2@@@other words\r\n-3@@@\nno type\n1@@@ü\n";
    ["1,2;word", ";o.*e", ";^$", ";\\bother\\b|x", "1;ü"]
        .map(|request| format!("{request}\n{file}").into_bytes())
        .into_iter()
        .chain([b";\xc3\xbc\n1@@@\xff\n".to_vec()])
        .collect()
}

/// Tables of a saved index, each with its length before it, and their right checksums: what is sound is read as it was written, and
/// searches by it end.
fn index(input: &[u8]) {
    let mut script = Script(input);
    let mut part = || {
        let length = script.number(2) as usize;
        script.bytes(length)
    };
    let words = |bytes: &[u8]| -> Vec<u32> {
        bytes.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four)).collect()
    };
    let (trigrams, first_entries, lines, ends) = (words(part()), words(part()), words(part()), words(part()));
    let segments = part().as_chunks().0.iter().map(|two| u16::from_le_bytes(*two)).collect();
    let shard = Shard { trigrams, first_entries, lines, segments, ends, data: part().to_vec() };
    let of = Of { blocks: 0..1, checksum: 7 };
    let read = with_file("data.index", &[], |path| {
        let never = AtomicBool::new(false);
        saved::write(path, [(of.clone(), &shard)].into_iter(), &never).expect("the file can be written");
        saved::read(path, &[of], &never).expect("it is an index")
    });
    assert_eq!(read.len(), usize::from(shard.is_sound()));
    for read in read {
        assert_eq!(read, shard);
        let mut database = small_database();
        let indexed = Indexed::new(&database.blocks, 0..database.blocks.len(), read);
        (database.index, database.layout) = (Index { shards: vec![indexed] }, Layout::Indexed);
        let database = Arc::new(database);
        for query in QUERIES.iter() {
            rows(&database, query);
        }
    }
}

static QUERIES: LazyLock<Vec<Arc<Query>>> = LazyLock::new(|| {
    let query = |request| Query::parse(request, &Semantics::default()).expect("it is valid");
    ["1,2;word", ";o.*e wo", ";(some|other) words"].map(query).map(Arc::new).into()
});

/// Three hundred rows without an index.
fn small_database() -> Database {
    let options = OpenOptions { layout: Layout::ByType, ..OPTIONS.clone() };
    let file = "1@@@some words\n2@@@other words\n3@@@more\n".repeat(100);
    with_file("data", file.as_bytes(), |path| Database::open(path, &options).expect("it is valid"))
}

fn index_seeds() -> Vec<Vec<u8>> {
    let Shard { trigrams, first_entries, lines, segments, ends, data } =
        Shard::build(&small_database().blocks, 1);
    let bytes = |words: Vec<u32>| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let segments = segments.iter().flat_map(|word| word.to_le_bytes()).collect();
    let parts = [bytes(trigrams), bytes(first_entries), bytes(lines), bytes(ends), segments, data];
    vec![parts.iter().flat_map(|part| [&(part.len() as u16).to_le_bytes(), &part[..]].concat()).collect()]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
