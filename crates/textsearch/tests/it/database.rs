//! Databases of files with irregularities, and the files kept beside them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kendall_textsearch::{
    Backtracking, Cache, Database, Form, Generate, OpenOptions, Origin, Progress, Query, Reading, Rows,
    Saving, SearchError, SearchMethod, Semantics, Size, generate,
};
use tempfile::TempDir;

fn write(folder: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("data");
    fs::write(&path, bytes).unwrap();
    path
}

fn open(path: &Path, saving: Saving) -> Arc<Database> {
    Arc::new(Database::open(path, &OpenOptions { saving, threads: 2, ..OpenOptions::default() }).unwrap())
}

fn made(rows: u64) -> Vec<u8> {
    let mut out = Vec::new();
    generate(&Generate { size: Size::Rows(rows), types: 5, seed: 3, threads: 2 }, &mut out).unwrap();
    out
}

fn find(database: &Arc<Database>, request: &str) -> String {
    let query = Arc::new(Query::parse(request, &Semantics::default()).unwrap());
    let search = Arc::new(database.search(&query));
    search.run().unwrap();
    let mut out = Vec::new();
    Rows::new(search, Form::Row).read(&mut out, usize::MAX);
    String::from_utf8(out).unwrap()
}

#[test]
fn irregular_lines_are_reported_and_no_row_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = b"1@@@one@@@two\n2@@@\nno type\n3@@@ends in CR\r\n\n4@@@\xff\xfe bytes\n007@@@spy\n99999999999@@@x\n-5@@@last";
    let database = open(&write(&folder, file), Saving::Off);
    let oddities = &database.contents().oddities;
    assert_eq!(oddities.without_type, 4);
    assert_eq!(oddities.first_without_type, Some((3, "no type".to_owned())));
    assert_eq!((oddities.carriage_returns, oddities.not_utf8, oddities.empty), (1, 1, 1));
    let all = "1@@@one@@@two\n2@@@\n3@@@ends in CR\n4@@@\u{fffd}\u{fffd} bytes\n-5@@@last\n";
    assert_eq!(find(&database, ";"), all);
    assert_eq!(find(&database, ";^one@@@two$"), "1@@@one@@@two\n");
    assert_eq!(find(&database, "2;^$"), "2@@@\n");
    assert_eq!(find(&database, "-5,3;a|e"), "3@@@ends in CR\n-5@@@last\n");
}

#[test]
fn files_that_cannot_be_loaded_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| Database::open(path, &OpenOptions::default()).unwrap_err();
    assert!(matches!(refused(folder.path()), SearchError::NotAFile(_)));
    assert!(matches!(refused(&folder.path().join("absent")), SearchError::Read { .. }));
    let mut long = b"1@@@short\n2@@@".to_vec();
    long.resize(40 << 20, b'x');
    assert!(matches!(refused(&write(&folder, &long)), SearchError::LineTooLong { at_byte: 10, .. }));
    let empty = open(&write(&folder, b""), Saving::Off);
    assert_eq!(find(&empty, ";.*"), "");
}

#[test]
fn an_index_is_kept_and_serves_the_same_text_only() {
    let folder = tempfile::tempdir().unwrap();
    let text = made(20_000);
    let path = write(&folder, &text);
    let beside = path.with_added_extension("index");
    let request = "1,3;Monday(.*)the|Friday";
    let first = open(&path, Saving::Beside);
    assert_eq!(
        (first.contents().index_source.shards_built, first.contents().index_source.shards_read),
        (1, 0)
    );
    let wanted = find(&first, request);
    assert!(!wanted.is_empty());
    let source = |database: &Arc<Database>| {
        let source = &database.contents().index_source;
        (source.shards_built, source.shards_read)
    };
    let again = open(&path, Saving::Beside);
    assert_eq!(source(&again), (0, 1));
    assert_eq!(find(&again, request), wanted);
    // Another text of the same length, in the same file.
    let mut other = text.clone();
    let at = other.windows(6).position(|word| word == b"Monday").unwrap();
    other[at] = b'Z';
    fs::write(&path, &other).unwrap();
    let changed = open(&path, Saving::Beside);
    assert_eq!(source(&changed), (1, 0));
    assert_eq!(find(&changed, ";Zonday").lines().count(), 1);
    // Torn, at many places, and with a flipped bit.
    let whole = fs::read(&beside).unwrap();
    for length in [17, 20, 40, 1000, whole.len() / 2, whole.len() - 1] {
        fs::write(&beside, &whole[..length]).unwrap();
        assert_eq!(source(&open(&path, Saving::Beside)), (1, 0), "cut at {length}");
    }
    for at in [16, 25, 33, 100, whole.len() - 5] {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        fs::write(&beside, &flipped).unwrap();
        assert_eq!(source(&open(&path, Saving::Beside)), (1, 0), "flipped at {at}");
    }
    assert_eq!(source(&open(&path, Saving::Beside)), (0, 1));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing partial is left");
}

#[test]
fn a_file_that_is_not_an_index_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, &made(100));
    let beside = path.with_added_extension("index");
    fs::write(&beside, "the index of a book").unwrap();
    let database = open(&path, Saving::Beside);
    assert!(database.contents().index_source.fault.as_ref().unwrap().contains("is not an index"));
    assert_eq!(fs::read(&beside).unwrap(), b"the index of a book");
    assert!(!find(&database, ";the").is_empty());
}

#[test]
fn without_memory_for_an_index_text_is_scanned() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, &made(20_000));
    let options = OpenOptions { index_memory_bytes: 1000, saving: Saving::Off, ..OpenOptions::default() };
    let scanned = Arc::new(Database::open(&path, &options).unwrap());
    assert_eq!((scanned.contents().index_bytes, scanned.contents().indexed_rows), (0, 0));
    let indexed = open(&path, Saving::Off);
    assert_eq!(indexed.contents().indexed_rows, 20_000);
    for pattern in ["Shakespeare", "[0-9]{4}", "^The", "(Monday|Friday).*[0-9]", "(\\w{3,8} ){6}[A-Z]", "the"]
    {
        let request = format!(";{pattern}");
        assert_eq!(find(&scanned, &request), find(&indexed, &request), "{pattern}");
        let query = Arc::new(Query::parse(&request, &Semantics::default()).unwrap());
        assert_ne!(scanned.search(&query).plan().method(), SearchMethod::Index);
    }
}

#[test]
fn several_threads_find_what_one_finds_and_rows_come_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(&write(&folder, &made(60_000)), Saving::Off);
    let wanted = find(&database, ";[a-m]{4}");
    let query = Arc::new(Query::parse(";[a-m]{4}", &Semantics::default()).unwrap());
    let search = Arc::new(database.search(&query));
    let mut out = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| while search.advance(Duration::ZERO) == Progress::More {});
        }
        let mut rows = Rows::new(Arc::clone(&search), Form::Row);
        loop {
            let before = out.len();
            match rows.read(&mut out, before + 500) {
                Reading::End => break,
                Reading::Full => assert!(out.len() < before + 500 + 2000),
                Reading::Waiting => std::thread::yield_now(),
            }
        }
    });
    assert!(search.is_complete());
    assert_eq!(String::from_utf8(out).unwrap(), wanted);
}

#[test]
fn a_cancelled_search_ends() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(&write(&folder, &made(60_000)), Saving::Off);
    let semantics =
        Semantics { backtracking: Backtracking::Within { steps: 10_000_000 }, ..Semantics::default() };
    let query = Arc::new(Query::parse(r";(\w+)(.*)(\w+).*\1\3$", &semantics).unwrap());
    let search = Arc::new(database.search(&query));
    std::thread::scope(|scope| {
        let working = scope.spawn(|| while search.advance(Duration::MAX) == Progress::More {});
        search.cancel();
        working.join().unwrap();
    });
    assert!(search.is_cancelled() && !search.is_complete());
    assert_eq!(search.advance(Duration::MAX), Progress::AllTaken);
    let mut rest = Vec::new();
    assert_eq!(Rows::new(search, Form::Row).read(&mut rest, usize::MAX), Reading::End);
}

#[test]
fn expensive_patterns_are_rejected_or_answered() {
    let folder = tempfile::tempdir().unwrap();
    let hard = format!("1@@@{}\n1@@@{}!\n", "a".repeat(28), "a".repeat(31));
    let database = open(&write(&folder, hard.as_bytes()), Saving::Off);
    // Twenty repeats of what may be anything: a finite automaton can.
    assert_eq!(find(&database, ";^(.*a){20}$").lines().count(), 1);
    assert_eq!(find(&database, ";^(a+)+$").lines().count(), 1);
    let within = |steps| Semantics { backtracking: Backtracking::Within { steps }, ..Semantics::default() };
    let refused = Query::parse(r";^(a+)+\1?$", &Semantics::default()).unwrap_err().to_string();
    assert!(refused.contains("character 7") && refused.contains("back-reference"), "{refused}");
    // No sentence has the part that automata can check: nothing needs to be tried.
    let query = Arc::new(Query::parse(r";^(a+)+\1?!!$", &within(10_000)).unwrap());
    assert!(database.search(&query).run().is_ok());
    let query = Arc::new(Query::parse(r";^(?=(a+)+$)a*!$", &within(10_000)).unwrap());
    let search = database.search(&query);
    assert!(matches!(search.run(), Err(SearchError::TooManySteps { steps: 10_000 })));
}

#[test]
fn answers_are_kept_within_their_bound_and_for_their_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, &made(5_000));
    let (database, reloaded) = (open(&path, Saving::Off), open(&path, Saving::Off));
    let finished = |cache: &Cache, request: &str| {
        let query = cache.query(request, &Semantics::default()).unwrap();
        let search = Arc::new(database.search(&query));
        cache.keep(&search);
        assert!(cache.answer(&database, &query).is_none(), "it is not done yet");
        search.run().unwrap();
        cache.keep(&search);
        search
    };
    let cache = Cache::new(1 << 20, 1 << 20);
    let search = finished(&cache, "1;this");
    let same = Query::parse("1;(.*)this(.*)", &Semantics::default()).unwrap();
    assert!(Arc::ptr_eq(&cache.answer(&database, &same).unwrap(), &search));
    assert!(cache.answer(&reloaded, &same).is_none());
    let query = cache.query("1;this", &Semantics::default()).unwrap();
    assert!(Arc::ptr_eq(&query, search.query()));
    // A pattern counts in addition to its matches.
    let most = 2 * cache.answer_bytes();
    let small = Cache::new(1 << 20, most);
    for pattern in ["this", "that", "man", "house", "king"] {
        finished(&small, &format!("1;{pattern}"));
        assert!(small.answer_bytes() > 0 && small.answer_bytes() <= most);
    }
    assert!(small.answer(&database, &same).is_none());
    small.forget_answers();
    assert_eq!(small.answer_bytes(), 0);
    let none = Cache::new(0, 0);
    let search = finished(&none, "1;this");
    assert_eq!((none.query_bytes(), none.answer_bytes()), (0, 0));
    assert!(!Arc::ptr_eq(&none.query("1;this", &Semantics::default()).unwrap(), search.query()));
}

#[test]
fn the_memory_of_searches_counts_as_that_of_their_patterns() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(&write(&folder, &made(5_000)), Saving::Off);
    let cache = Cache::new(4 << 20, 0);
    let mut largest = 0;
    for letter in 'a'..='z' {
        // The automaton has too many states for a table, so searches make those that they meet.
        let request = format!(";[aeiou][a-zA-Z ,.]{{12}}[tsrn][a-z ]{{6}}[qxz{letter}][a-z ]{{3}}[qj]");
        let before = cache.query_bytes();
        let query = cache.query(&request, &Semantics::default()).unwrap();
        let at_first = cache.query_bytes().saturating_sub(before);
        let search = Arc::new(database.search(&query));
        search.run().unwrap();
        cache.keep(&search);
        largest = largest.max(cache.query_bytes().saturating_sub(before + at_first));
        assert!(cache.query_bytes() <= 4 << 20);
    }
    assert!(largest > 256 << 10, "{largest}");
}

#[test]
fn a_running_search_is_shared_by_equivalent_requests() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, &made(5_000));
    let (database, reloaded) = (open(&path, Saving::Off), open(&path, Saving::Off));
    let cache = Cache::new(1 << 20, 1 << 20);
    let ask = |database: &Arc<Database>, request: &str| {
        cache.search(database, &cache.query(request, &Semantics::default()).unwrap())
    };
    let (first, origin) = ask(&database, "1;this");
    assert_eq!(origin, Origin::New);
    let (second, origin) = ask(&database, "1;(.*)this(.*)");
    assert_eq!(origin, Origin::Shared);
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(ask(&database, "2;this").1, Origin::New);
    assert_eq!(ask(&reloaded, "1;this").1, Origin::New);
    let (third, _) = ask(&database, "1;that");
    third.cancel();
    assert_eq!(ask(&database, "1;that").1, Origin::New);
    let (again, origin) = ask(&database, "1;this");
    // Another database had a search of the same rows meanwhile.
    assert_eq!(origin, Origin::New);
    again.run().unwrap();
    cache.keep(&again);
    let (kept, origin) = ask(&database, "1;this");
    assert_eq!(origin, Origin::Kept);
    assert!(Arc::ptr_eq(&kept, &again));
}
