//! Every strategy compared with a naive search, and the laws that all of them keep.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kendall_digest::password::{md5, sha1, sha256};
use kendall_digest::{Engine, Interrupt};
use kendall_recover::search::Space;
use kendall_recover::words::Words;
use kendall_recover::{
    Finder, FinderError, FinderOptions, FoundPassword, Hash, Hunt, PasswordQuery, PasswordSource, Progress,
    Strategy as Order,
};
use kendall_service::Registry;
use kendall_station::Size;
use kendall_testbed::wait_until;
use prometheus_client::encoding::text::encode;
use proptest::prelude::*;

const WORDS: &str = "cab\nabba\nz\nBad\nhello\n??*\nabcabcabc\n";

fn options(strategy: Order) -> FinderOptions {
    let engine = Engine::available().last().unwrap();
    let words = Arc::new(Words::of(WORDS.into()));
    let space = Space::new("abc", ["ab?d", "?d?da"]).unwrap();
    FinderOptions { strategy, words, space, ..FinderOptions::new(engine) }
}

fn finder(strategy: Order) -> Finder {
    Finder::new(options(strategy)).unwrap()
}

fn wanted(password: &[u8], lengths: RangeInclusive<usize>) -> PasswordQuery {
    PasswordQuery { hash: Hash::Sha1(sha1(password)), lengths }
}

fn finish(mut hunt: Hunt) -> Progress {
    loop {
        match hunt.advance(&Interrupt::new(), 100_000) {
            Progress::More { .. } => {}
            end => return end,
        }
    }
}

fn find(finder: &Finder, query: &PasswordQuery) -> Option<FoundPassword> {
    finder.at_once(query).or_else(|| match finish(finder.hunt(query.clone()).unwrap()) {
        Progress::Found(found) => Some(found),
        _ => None,
    })
}

/// All passwords that a strategy should find, by code that shares nothing with it.
fn naive(strategy: Order, lengths: &RangeInclusive<usize>) -> HashSet<String> {
    let digits = || '0'..='9';
    let mut all = HashSet::new();
    for length in lengths.clone() {
        if length == 3 {
            all.extend(digits().map(|digit| format!("ab{digit}")));
            all.extend(digits().flat_map(|one| digits().map(move |two| format!("{one}{two}a"))));
            continue;
        }
        let mut of_length = vec![String::new()];
        for _ in 0..length {
            of_length = of_length.iter().flat_map(|s| ["a", "b", "c"].map(|c| format!("{s}{c}"))).collect();
        }
        all.extend(of_length);
    }
    if matches!(strategy, Order::Rules | Order::Adaptive) {
        let mut endings: Vec<String> = ["", "!", "123"].map(String::from).into();
        endings.extend((0..10).map(|number| format!("{number}")));
        endings.extend((0..100).map(|number| format!("{number:02}")));
        endings.extend((1950..2030).map(|year| format!("{year}")));
        for word in WORDS.lines() {
            let capital = word[..1].to_uppercase() + &word[1..];
            let leet = word
                .replace('a', "4")
                .replace('e', "3")
                .replace('i', "1")
                .replace('o', "0")
                .replace('s', "5");
            let reverse = word.chars().rev().collect();
            let changes = [word.into(), capital, word.to_uppercase(), leet, reverse, word.repeat(2)];
            let made =
                changes.iter().flat_map(|change| endings.iter().map(move |end| format!("{change}{end}")));
            all.extend(made.filter(|made| lengths.contains(&made.len()) && made != word));
        }
    }
    if strategy != Order::Plain {
        all.extend(WORDS.lines().map(String::from));
    }
    all
}

fn strategy() -> impl Strategy<Value = Order> {
    prop::sample::select(Order::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn what_is_there_is_found_and_nothing_else(
        strategy in strategy(),
        least in 1usize..7,
        more in 0usize..3,
        pick: prop::sample::Index,
        other in "[abcdez0-9!]{1,9}",
        algorithm in 0usize..3,
    ) {
        let lengths = least..=least + more;
        let naive = naive(strategy, &lengths);
        let finder = finder(strategy);
        let mut sorted: Vec<_> = naive.iter().cloned().collect();
        sorted.sort_unstable();
        for password in [pick.get(&sorted).clone(), other] {
            let bytes = password.as_bytes();
            let hash = [Hash::Sha1(sha1(bytes)), Hash::Sha256(sha256(bytes)), Hash::Md5(md5(bytes))][algorithm];
            let found = find(&finder, &PasswordQuery { hash, lengths: lengths.clone() });
            prop_assert_eq!(found.is_some(), naive.contains(&password), "{} {:?}", password, found);
            if let Some(found) = found {
                prop_assert_eq!(found.password, bytes);
            }
        }
    }

    /// With any sizes of pieces and any interrupts, each candidate counts once.
    #[test]
    fn interruption_loses_and_repeats_nothing(
        strategy in strategy(),
        units in prop::collection::vec(0u64..5000, 1..20),
        raised in prop::collection::vec(any::<bool>(), 1..20),
        password in prop::sample::select(vec!["cbacba", "cccccc", "Cabcab", "nowhere"]),
    ) {
        let finder = finder(strategy);
        let query = wanted(password.as_bytes(), 5..=7);
        let mut whole = finder.hunt(query.clone()).unwrap();
        let mut pieces = finder.hunt(query).unwrap();
        let end = whole.advance(&Interrupt::new(), u64::MAX);
        let interrupted = Interrupt::new();
        interrupted.raise();
        let mut before = 0;
        let mut steps = units.iter().cycle().zip(raised.iter().cycle());
        loop {
            let (units, raised) = steps.next().expect("they go round");
            if *raised {
                prop_assert_eq!(pieces.advance(&interrupted, *units), Progress::More { tried: before });
            }
            match pieces.advance(&Interrupt::new(), *units) {
                Progress::More { tried } => prop_assert!(tried > std::mem::replace(&mut before, tried)),
                progress => {
                    prop_assert_eq!(progress, end);
                    break;
                }
            }
        }
    }
}

#[test]
fn a_search_that_is_interrupted_from_outside_counts_each_candidate_once() {
    let finder = Finder::new(FinderOptions::new(Engine::available().last().unwrap())).unwrap();
    let mut hunt = finder.hunt(wanted(b"not a password", 5..=5)).unwrap();
    let interrupt = Interrupt::new();
    let (end, interrupted) = thread::scope(|scope| {
        let search = scope.spawn(|| {
            let mut interrupted = 0;
            loop {
                match hunt.advance(&interrupt, u64::MAX) {
                    Progress::More { .. } => interrupted += 1,
                    end => break (end, interrupted),
                }
                interrupt.lower();
            }
        });
        while !search.is_finished() {
            thread::sleep(Duration::from_micros(300));
            interrupt.raise();
        }
        search.join().unwrap()
    });
    assert_eq!(end, Progress::Nowhere { tried: 11_881_376, left_out: 0 });
    assert!(interrupted > 0);
}

#[test]
fn plain_search_goes_as_a_dictionary_does() {
    let finder = Finder::new(FinderOptions::new(Engine::Portable)).unwrap();
    let letters: Vec<String> = ('a'..='z').map(String::from).collect();
    let mut index = 0;
    for first in &letters {
        for second in &letters {
            index += 1;
            let password = format!("{first}{second}").into_bytes();
            let progress = finish(finder.hunt(wanted(&password, 2..=2)).unwrap());
            assert_eq!(
                progress,
                Progress::Found(FoundPassword { password, by: PasswordSource::BruteForce, tried: index })
            );
        }
    }
    // The work for longer ones is that of their first letters.
    let tried = |password: &str| match finish(finder.hunt(wanted(password.as_bytes(), 5..=5)).unwrap()) {
        Progress::Found(found) => found.tried,
        other => panic!("{other:?}"),
    };
    let part = 26u64.pow(3);
    assert!((0..part).contains(&(tried("aazzz") - 1)));
    assert!((part..2 * part).contains(&(tried("abaaa") - 1)));
    assert!((26 * part..27 * part).contains(&(tried("bamid") - 1)));
}

#[test]
fn words_are_known_at_once_whatever_their_length() {
    for strategy in [Order::Dictionary, Order::Rules, Order::Adaptive] {
        let found = finder(strategy).at_once(&wanted(b"abcabcabc", 3..=3));
        assert_eq!(
            found,
            Some(FoundPassword { password: b"abcabcabc".into(), by: PasswordSource::Dictionary, tried: 0 })
        );
    }
    assert_eq!(finder(Order::Plain).at_once(&wanted(b"hello", 5..=5)), None);
}

#[test]
fn an_earlier_search_is_not_repeated() {
    let finder = finder(Order::Plain);
    let there = wanted(b"ccccc", 5..=5);
    assert_eq!(finder.at_once(&there), None);
    assert_eq!(find(&finder, &there).unwrap().by, PasswordSource::BruteForce);
    assert_eq!(
        finder.at_once(&there),
        Some(FoundPassword { password: b"ccccc".into(), by: PasswordSource::Seen, tried: 0 })
    );
    assert_eq!(finder.at_once(&wanted(b"ccccc", 1..=4)), None, "of another length");
    let nowhere = wanted(b"xxxxx", 5..=5);
    let ends = [0; 2].map(|_| finish(finder.hunt(nowhere.clone()).unwrap()));
    let end = |tried| Progress::Nowhere { tried, left_out: 0 };
    assert_eq!(ends, [end(243), end(0)]);
}

#[test]
fn a_search_that_would_take_too_long_is_rejected() {
    let finder = |strategy| {
        let words = Arc::new(Words::of(WORDS.into()));
        Finder::new(FinderOptions { strategy, words, ..FinderOptions::new(Engine::Portable) }).unwrap()
    };
    let twelve = wanted(b"x", 12..=12);
    for strategy in [Order::Plain, Order::Dictionary] {
        let error = finder(strategy).hunt(twelve.clone()).unwrap_err();
        assert_eq!(error, FinderError::TooMany { candidates: 26u64.pow(12), bound: 8_400_000_000 });
        assert!(matches!(finder(strategy).size(&twelve), Size::Unknown));
    }
    assert!(matches!(
        finder(Order::Plain).hunt(wanted(b"x", 20..=55)),
        Err(FinderError::TooMany { candidates: u64::MAX, .. })
    ));
    // Rules make passwords of twelve letters, and the number beyond the limit is reported.
    let long = wanted(b"Abcabcabc123", 12..=12);
    let adaptive = finder(Order::Adaptive);
    assert_eq!(find(&adaptive, &long).unwrap().by, PasswordSource::Rules);
    let Progress::Nowhere { left_out, tried } = finish(adaptive.hunt(twelve).unwrap()) else { panic!() };
    assert_eq!((left_out, tried > 0), (26u64.pow(12), true));
    for (from, to) in [(0, 3), (5, 56), (4, 3), (0, usize::MAX)] {
        let lengths = from..=to;
        let error = finder(Order::Adaptive).hunt(wanted(b"x", lengths)).unwrap_err().to_string();
        assert!(error.ends_with("they must have 1 to 55"), "{error}");
    }
}

#[test]
fn disciplines_get_the_number_of_candidates() {
    let size = |strategy, lengths| match finder(strategy).size(&wanted(b"x", lengths)) {
        Size::UniformUpTo(size) => size,
        other => panic!("{other:?}"),
    };
    assert_eq!(size(Order::Plain, 4..=5), (81 + 243) as f64);
    assert_eq!(size(Order::Dictionary, 3..=3), 110.0);
    let progress = finish(finder(Order::Rules).hunt(wanted(b"x", 4..=5)).unwrap());
    let Progress::Nowhere { tried, .. } = progress else { panic!("{progress:?}") };
    assert!(size(Order::Rules, 4..=5) >= tried as f64, "some changes change nothing");
}

/// Its metrics.
fn metrics(finder: &Finder) -> String {
    let (mut registry, mut text) = (Registry::default(), String::new());
    finder.register(&mut registry);
    encode(&mut text, &registry).unwrap();
    text
}

#[test]
fn adaptive_search_learns_where_passwords_are() {
    let options = FinderOptions::new(Engine::available().last().unwrap());
    let finder = Finder::new(FinderOptions { strategy: Order::Adaptive, ..options }).unwrap();
    let tried = |password: &str| {
        let query = wanted(password.as_bytes(), 4..=4);
        match finish(finder.hunt(query).unwrap()) {
            Progress::Found(found) => found.tried,
            other => panic!("{other:?}"),
        }
    };
    let before = tried("zqxa");
    (0..5).for_each(|i| {
        tried(&format!("zqx{}", char::from(b'b' + i)));
    });
    let after = tried("zqxz");
    assert!(after * 5 < before, "{before} before, {after} after");
    assert!(tried("aqxz") > after, "others come later");
}

#[test]
fn a_table_answers_once_it_is_built() {
    let engine = Engine::available().last().unwrap();
    let finder =
        Finder::new(FinderOptions { table_memory_bytes: 4 << 20, ..FinderOptions::new(engine) }).unwrap();
    wait_until("the table is built", || finder.table().unwrap().cost_ns.is_some());
    for password in ["a", "zz", "abc", "test", "zzzz"] {
        let found = finder.at_once(&wanted(password.as_bytes(), password.len()..=password.len()));
        assert_eq!(
            found,
            Some(FoundPassword { password: password.into(), by: PasswordSource::Table, tried: 0 })
        );
    }
    assert_eq!(finder.at_once(&wanted(b"hello", 5..=5)), None);
    let report = finder.table().unwrap();
    assert_eq!((report.longest, report.passwords, report.hits), (4, 475_254, 5));
    let text = metrics(&finder);
    for line in
        ["hits 5.0\n", "passwords 475254.0\n", "done 1.0\n", "cost_seconds 0.", "break_even_requests "]
    {
        assert!(text.contains(&format!("\nrecover_table_{line}")), "{line} in\n{text}");
    }
    assert!(report.bytes <= 4 << 20 && report.done == 1.0 && report.break_even.unwrap() > 0.0, "{report:?}");
    assert!(Finder::new(FinderOptions::new(engine)).unwrap().table().is_none());
}

#[test]
fn hits_are_counted_by_way_and_length() {
    let finder = finder(Order::Adaptive);
    for (password, lengths) in
        [("hello", 5..=5), ("cbacb", 5..=5), ("cbacb", 5..=5), ("Hello!", 6..=6), ("none", 1..=4)]
    {
        find(&finder, &wanted(password.as_bytes(), lengths));
    }
    let text = metrics(&finder);
    for line in [
        r#"recover_asked_total{length="5"} 3"#,
        r#"recover_found_total{way="dictionary",length="5"} 1"#,
        r#"recover_found_total{way="brute-force",length="5"} 1"#,
        r#"recover_found_total{way="seen",length="5"} 1"#,
        r#"recover_found_total{way="rules",length="6"} 1"#,
        r#"recover_found_by_rule_total{rule="capital+!"} 1"#,
        r#"recover_nowhere_total{length="several"} 1"#,
        // One was found by brute force: (1 + 10 · 0.7) / (1 + 10); none by rules: 10 · 0.3 / (1 + 10).
        r#"recover_learned_probability{length="5",way="brute-force"} 0.727272"#,
        r#"recover_learned_probability{length="5",way="rules"} 0.272727"#,
        r#"recover_learned_probability{length="6",way="rules"} 0.363636"#,
        r#"recover_candidate_seconds{way="brute-force"} "#,
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    assert!(!text.contains("recover_table"), "there is no table");
}
