//! Searches compared with the simplest reference: each line of the file, tried separately.

use std::io::Write as _;
use std::sync::Arc;

use kendall_textsearch::{
    Database, Form, Layout, OpenOptions, Query, Reading, Rows, Saving, Search, SearchMethod, Semantics,
};
use proptest::prelude::*;
use tempfile::NamedTempFile;

/// What a query finds in a file, row by row, without a database.
fn expected(file: &[u8], query: &Query) -> String {
    let mut answer = String::new();
    for row in String::from_utf8_lossy(file).split_terminator('\n') {
        let row = row.strip_suffix('\r').unwrap_or(row);
        let Some((kind, sentence)) = row.split_once("@@@") else { continue };
        let Ok(kind) = kind.parse::<i32>() else { continue };
        if (query.kinds().is_empty() || query.kinds().contains(&kind))
            && query.is_match(sentence.as_bytes()).unwrap()
        {
            answer.push_str(row);
            answer.push('\n');
        }
    }
    answer
}

fn open(file: &[u8], layout: Layout) -> Arc<Database> {
    let mut data = NamedTempFile::new().unwrap();
    data.write_all(file).unwrap();
    let options = OpenOptions { layout, threads: 2, saving: Saving::Off, ..OpenOptions::default() };
    Arc::new(Database::open(data.path(), &options).unwrap())
}

fn answer(search: Search) -> String {
    search.run().unwrap();
    let (found, search) = (search.rows_found(), Arc::new(search));
    let mut out = Vec::new();
    assert_eq!(Rows::new(search, Form::Row).read(&mut out, usize::MAX), Reading::End);
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out.lines().count() as u64, found);
    out
}

/// Sentences of few letters, so that patterns match, with irregular characters.
fn sentences() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "a", "b", "ab", "A", " ", "1", "é", "\u{85}", "\r", "_", "ba", "@@@", "\u{2028}",
    ]);
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

fn files() -> impl Strategy<Value = Vec<(i32, String)>> {
    prop::collection::vec((prop::sample::select(vec![-3, 0, 1, 2, 7]), sentences()), 0..200)
}

fn patterns() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a", "b", "ab", "ba", "1", " ", "é", ".", "\\w", "\\W", "\\d", "[ab]", "[^a]", "\\b", "^", "$",
        "(?i)b", "\\s", "", "aba", "abab", "[a-z]{3}", ".*", "(.*)", "\\B",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join("|"))),
            (inner, prop::sample::select(vec!["*", "+", "?", "{2}", "{1,3}", "*?"]))
                .prop_map(|(part, repeat)| format!("(?:{part}){repeat}")),
        ]
    })
}

fn text(rows: &[(i32, String)]) -> Vec<u8> {
    rows.iter().map(|(kind, sentence)| format!("{kind}@@@{sentence}\n")).collect::<String>().into_bytes()
}

/// Every layout and every method that is possible for a request finds the same as a search line by line.
fn all_find_the_same(
    rows: &[(i32, String)],
    request: &str,
    semantics: &Semantics,
) -> Result<(), proptest::test_runner::TestCaseError> {
    let file = text(rows);
    let query = Arc::new(Query::parse(request, semantics).unwrap());
    let wanted = expected(&file, &query);
    for layout in Layout::ALL {
        let database = open(&file, layout);
        prop_assert_eq!(&answer(database.search(&query)), &wanted, "{:?}", layout);
        for method in SearchMethod::ALL {
            if let Some(search) = database.search_by(&query, method) {
                prop_assert_eq!(&answer(search), &wanted, "{:?} by {}", layout, method);
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_layout_finds_what_line_by_line_finds(
        rows in files(),
        pattern in patterns(),
        types in prop::sample::select(vec!["", "1", "-3,2", "0,1,2,7,-3", "5"]),
        whole: bool,
    ) {
        let matching = if whole { kendall_textsearch::Matching::Whole } else { kendall_textsearch::Matching::Find };
        let semantics = Semantics { matching, ..Semantics::default() };
        all_find_the_same(&rows, &format!("{types};{pattern}"), &semantics)?;
    }

    #[test]
    fn what_backtracks_finds_what_line_by_line_finds(
        rows in files(),
        pattern in prop::sample::select(vec![
            r"(a|b)\1", r"\b(\w+) \1", "a(?!b)", "(?<!a)b", "(?<=^|é)a", r"^(.)[^a]*\1$", r"(?=.*1)(?=.*b)", r"a\X", "(?>a*)b", "$(?<!1)",
            r"(?i)(ab).*\1", "é(?=a)", r"\b(a|b+)(?:.*)\1", r"\b(?:(ab)|_+)(?=.)", r"\b[ab]?(1)",
        ]),
        types in prop::sample::select(vec!["", "1", "0,1,2"]),
        whole: bool,
    ) {
        let matching = if whole { kendall_textsearch::Matching::Whole } else { kendall_textsearch::Matching::Find };
        let backtracking = kendall_textsearch::Backtracking::Within { steps: 100_000 };
        let semantics = Semantics { matching, backtracking, ..Semantics::default() };
        all_find_the_same(&rows, &format!("{types};{pattern}"), &semantics)?;
    }
}

#[test]
fn a_window_of_nearly_all_lines_does_not_match_the_others() {
    let rows: Vec<(i32, String)> =
        (0..200).map(|row| (1, if row % 10 == 0 { "is" } else { "so the end" }.to_owned())).collect();
    let file = text(&rows);
    let database = open(&file, Layout::Indexed);
    for pattern in ["the", "the|xyz", r"\w{3}"] {
        let query = Arc::new(Query::parse(&format!(";{pattern}"), &Semantics::default()).unwrap());
        let wanted = expected(&file, &query);
        assert_eq!(wanted.lines().count(), 180);
        assert_eq!(answer(database.search(&query)), wanted, "{pattern}");
        let by_index = database.search_by(&query, SearchMethod::Index).expect("there is an index");
        assert_eq!(answer(by_index), wanted, "{pattern}");
    }
}
