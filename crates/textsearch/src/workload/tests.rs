use std::collections::HashMap;
use std::io::Write as _;

use super::*;
use crate::query::Query;
use crate::semantics::Semantics;

fn drawn(mix: &str, types_asked: u32) -> Requests {
    let mix = mix.parse().unwrap();
    Requests::Drawn { patterns: 200, mix, wrapping: Wrapping::Bare, types_asked, types: 6 }
}

fn parameters(requests: Requests, popularity: f64) -> Parameters {
    Parameters { requests, popularity, dialect: Dialect::Lines, reuse: Reuse::Keep }
}

fn workload(requests: Requests, popularity: f64, seed: u64) -> TextSearchWorkload {
    TextSearchWorkload::new(([127, 0, 0, 1], 1).into(), &parameters(requests, popularity), seed).unwrap()
}

fn text(workload: &TextSearchWorkload, index: u64) -> String {
    String::from_utf8(workload.request(index).bytes.to_vec()).unwrap()
}

const ALL: &str = "literal,alternation=2,class,anchored,ignoring-case,none,all=0.5";

#[test]
fn a_request_depends_on_seed_and_index_alone() {
    let forwards: Vec<_> = (0..100).map(|i| text(&workload(drawn(ALL, 2), 1.0, 5), i)).collect();
    let mut backwards: Vec<_> = (0..100).rev().map(|i| text(&workload(drawn(ALL, 2), 1.0, 5), i)).collect();
    backwards.reverse();
    assert_eq!(forwards, backwards);
    assert_ne!(forwards, (0..100).map(|i| text(&workload(drawn(ALL, 2), 1.0, 6), i)).collect::<Vec<_>>());
}

#[test]
fn every_request_is_valid_and_has_the_given_number_of_types() {
    for wrapping in [Wrapping::Bare, Wrapping::Wrapped] {
        for asked in [0, 1, 3, 6] {
            let mix = ALL.parse().unwrap();
            let requests = Requests::Drawn { patterns: 200, mix, wrapping, types_asked: asked, types: 6 };
            let workload = workload(requests, 0.0, 1);
            for index in 0..300 {
                let text = text(&workload, index);
                let query = Query::parse(text.strip_suffix('\n').unwrap(), &Semantics::default()).unwrap();
                assert_eq!(query.kinds().len(), asked as usize, "{text}");
                assert!(query.kinds().iter().all(|kind| (0..6).contains(kind)), "{text}");
            }
        }
    }
}

/// Counts within five standard deviations of their binomial laws: a false alarm in 1.7 million each.
#[test]
fn popularity_is_zipfs_law_and_families_come_as_weighted() {
    let n = 20_000;
    let agrees = |count: usize, p: f64| {
        (count as f64 - f64::from(n) * p).abs() <= 5.0 * (f64::from(n) * p * (1.0 - p)).sqrt()
    };
    for exponent in [0.0, 1.0] {
        let workload = workload(drawn("literal", 0), exponent, 3);
        let all: f64 = (1..=200).map(|rank| f64::from(rank).powf(-exponent)).sum();
        let mut counts: HashMap<usize, usize> = HashMap::new();
        (0..n).for_each(|index| *counts.entry(workload.rank(index as u64)).or_default() += 1);
        for rank in [1, 2, 10, 200] {
            let p = f64::from(rank).powf(-exponent) / all;
            assert!(agrees(counts[&(rank as usize - 1)], p), "{exponent} {rank} {counts:?}");
        }
    }
    let requests = Requests::Drawn {
        patterns: MOST_PATTERNS,
        mix: "literal=3,none".parse().unwrap(),
        wrapping: Wrapping::Bare,
        types_asked: 0,
        types: 6,
    };
    let workload = workload(requests, 0.0, 4);
    let literals = (0..n).filter(|&index| workload.request(index as u64).class == 0).count();
    // Repeated ranks are too few to matter.
    assert!(agrees(literals, 0.75), "{literals}");
    let names: Vec<String> = workload.classes().into_iter().map(|class| class.name).collect();
    assert_eq!(names, ["literal", "none"]);
}

#[test]
fn a_file_of_requests_is_sent_as_it_stands_in_both_dialects() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "2,3,4;now(.*)\n\n;(.*)this is not my(.*)3;(.*)\r\n").unwrap();
    let requests = Requests::File(file.path().to_owned());
    let lines = workload(requests.clone(), 0.0, 1);
    let mut sent: Vec<String> = (0..50).map(|index| text(&lines, index)).collect();
    sent.sort();
    sent.dedup();
    assert_eq!(sent, ["2,3,4;now(.*)\n", ";(.*)this is not my(.*)3;(.*)\n"]);
    let utf = Parameters { dialect: Dialect::Utf, ..parameters(requests, 50.0) };
    let utf = TextSearchWorkload::new(([127, 0, 0, 1], 1).into(), &utf, 1).unwrap();
    // With an exponent this large, it is always the first.
    assert_eq!(&utf.request(7).bytes[..], b"\0\x0d2,3,4;now(.*)");
}

#[test]
fn invalid_parameters_are_rejected() {
    let refused = |requests: Requests, popularity| {
        let parameters = parameters(requests, popularity);
        TextSearchWorkload::new(([127, 0, 0, 1], 1).into(), &parameters, 1).unwrap_err().to_string()
    };
    assert!(refused(drawn("literal", 7), 1.0).contains("7 different types, since the data have 6"));
    assert!(refused(drawn("literal", 1), -1.0).contains("popularity is -1"));
    assert!(refused(Requests::File("/nowhere".into()), 1.0).contains("cannot read /nowhere"));
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "1;a\nb\n").unwrap();
    assert!(refused(Requests::File(file.path().into()), 1.0).contains("line 2: no `;`"));
    let empty = tempfile::NamedTempFile::new().unwrap();
    assert!(refused(Requests::File(empty.path().into()), 1.0).contains("0 different requests"));
    let wrong = |mix: &str| mix.parse::<Mix>().unwrap_err();
    assert!(wrong("literals").contains("not one of literal, alternation"));
    assert!(wrong("literal=0").contains("positive number"));
    assert!(wrong("literal,literal").contains("twice"));
}
