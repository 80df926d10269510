//! Patterns in Java's syntax: their matches, their canonical forms, and the messages for those that are
//! rejected.

use kendall_textsearch::{Alphabet, Backtracking, Matching, Query, Semantics};

fn query(pattern: &str, semantics: &Semantics) -> Query {
    Query::new(Vec::new(), pattern, semantics).unwrap_or_else(|reason| panic!("{pattern}: {reason}"))
}

fn backtracking() -> Semantics {
    Semantics { backtracking: Backtracking::Within { steps: 100_000 }, ..Semantics::default() }
}

/// Pattern, sentences that match, sentences that do not, by the documentation of Java's `Pattern`.
const FINDS: [(&str, &[&str], &[&str]); 34] = [
    ("a.c", &["abc", "a\tc", "aéc"], &["a\rc", "a\u{85}c", "a\u{2028}c"]),
    ("(?s)a.c", &["a\rc", "a\u{2029}c"], &["ac"]),
    ("(?d)a.c", &["a\rc"], &[]),
    (r"^\w+$", &["ab_1"], &["é", "a b", ""]),
    (r"(?U)^\w+$", &["é", "ab_1"], &["a b"]),
    (r"\d", &["7"], &["٣"]),
    (r"(?U)\d", &["٣"], &["x"]),
    (r"^\W$", &["é", " "], &["a", "ab"]),
    ("(?i)abc", &["ABC", "aBc"], &["ab"]),
    ("(?i)é", &["é"], &["É"]),
    ("(?iu)é", &["é", "É"], &["e"]),
    ("a(?i)b|c", &["ab", "aB", "C"], &["AB"]),
    ("a(?i:b)c", &["aBc"], &["aBC"]),
    (r"\Qa.b*\E+", &["a.b*", "a.b**"], &["aab"]),
    ("[a-c[x-z]]", &["b", "y"], &["d"]),
    ("[a-z&&[^m-p]]", &["a", "z"], &["m", "n"]),
    ("[a-z&&[def]]", &["e"], &["a"]),
    ("[^a[b]]", &["c"], &["a", "b"]),
    ("[]a]", &["]", "a"], &["b"]),
    ("[a-]", &["-", "a"], &["b"]),
    (r"[\w&&[^\d]]", &["a", "_"], &["7"]),
    (r"\x41\u0042\x{43}\0104", &["ABCD"], &["abcd"]),
    (r"\ud83d\ude00", &["\u{1f600}"], &["x"]),
    (r"\p{Lu}\p{IsLatin}\p{Alpha}", &["Éab"], &["aab"]),
    (r"\P{L}", &["1"], &["a"]),
    (r"\p{javaUpperCase}", &["É"], &["é"]),
    (r"a\hb", &["a b", "a\u{a0}b"], &["ab"]),
    (r"a\Rb", &["a\rb", "a\u{85}b"], &["ab"]),
    ("(?x) a b # remark", &["ab"], &["a b"]),
    (r"\bman\b", &["a man.", "man"], &["woman", "manly"]),
    (r"\Aa.*b\z", &["ab", "axb"], &["xab"]),
    ("x{2,3}y", &["xxy", "xxxxy"], &["xy"]),
    ("(?<year>[0-9]{4})-(?<month>[0-9]{2})", &["2026-11"], &["2026"]),
    ("a|", &["", "b"], &[]),
];

#[test]
fn what_java_matches_matches() {
    for (pattern, matching, others) in FINDS {
        let query = query(pattern, &Semantics::default());
        for sentence in matching {
            assert!(query.is_match(sentence.as_bytes()).unwrap(), "{pattern} matches {sentence:?}");
        }
        for sentence in others {
            assert!(!query.is_match(sentence.as_bytes()).unwrap(), "{pattern} does not match {sentence:?}");
        }
    }
}

#[test]
fn backtracking_patterns_match_where_they_are_allowed() {
    let cases: [(&str, &str, &[&str], &[&str]); 9] = [
        (
            "look-around",
            "(?<!not )this man(?= is)",
            &["and this man is"],
            &["not this man is", "this man was"],
        ),
        ("back-reference", r"\b(\w{3,}) \1\b", &["had had the the"], &["the theme", "on on"]),
        ("back-reference", r"(?<w>\w)\k<w>", &["book"], &["bok"]),
        ("back-reference", r"(?i)(a)\1", &["aA"], &["ab"]),
        ("possessive", "^a++ab", &[], &["aaab"]),
        ("possessive", "x*+y", &["xxy"], &["x"]),
        ("atomic", "^(?>a|ab)c", &["ac"], &["abc"]),
        ("look-around", "^(?=.*[0-9])(?=.*[a-z]).{3,}$", &["a1x"], &["abc", "1a"]),
        ("\\X", "^\\X$", &["e\u{301}"], &["ab"]),
    ];
    for (what, pattern, matching, others) in cases {
        let refused = Query::new(Vec::new(), pattern, &Semantics::default()).unwrap_err();
        assert!(refused.reason.contains(what), "{pattern}: {refused}");
        let query = query(pattern, &backtracking());
        for sentence in matching {
            assert!(query.is_match(sentence.as_bytes()).unwrap(), "{pattern} matches {sentence:?}");
        }
        for sentence in others {
            assert!(!query.is_match(sentence.as_bytes()).unwrap(), "{pattern} does not match {sentence:?}");
        }
    }
}

#[test]
fn the_whole_sentence_is_what_matches_or_some_part() {
    let whole = Semantics { matching: Matching::Whole, ..Semantics::default() };
    for (pattern, sentence, is_whole) in [
        ("x", "axb", false),
        ("(.*)x(.*)", "axb", true),
        (".*x", "ax", true),
        (".*x", "axb", false),
        ("a|ab", "ab", true),
    ] {
        assert!(query(pattern, &Semantics::default()).is_match(sentence.as_bytes()).unwrap());
        assert_eq!(query(pattern, &whole).is_match(sentence.as_bytes()).unwrap(), is_whole, "{pattern}");
    }
    // Where `.` stops, `(.*)x(.*)` is not x somewhere.
    assert!(!query("(.*)x(.*)", &whole).is_match("a\rxb".as_bytes()).unwrap());
    assert!(query("(?s)(.*)x(.*)", &whole).is_match("a\rxb".as_bytes()).unwrap());
}

#[test]
fn equivalent_patterns_have_one_canonical_form() {
    let canonical = |request: &str| Query::parse(request, &Semantics::default()).unwrap().canonical();
    assert_eq!(canonical("2,1;(.*)this man(.*)"), canonical("1,2,2;this man"));
    assert_eq!(canonical(";[0-9]+"), canonical(r";\d"));
    assert_ne!(canonical("1;this"), canonical("2;this"));
    assert_ne!(canonical(";this"), canonical(";^this"));
}

#[test]
fn unicode_words_match_where_they_are_enabled() {
    let unicode = Semantics { alphabet: Alphabet::Unicode, ..Semantics::default() };
    assert!(query(r"\bété\b", &unicode).is_match("un été chaud".as_bytes()).unwrap());
    assert!(!query(r"\bt\b", &unicode).is_match("un été".as_bytes()).unwrap());
    assert!(query(r"\bt\b", &Semantics::default()).is_match("un été".as_bytes()).unwrap());
}

#[test]
fn errors_report_what_is_wrong_and_where() {
    let cases = [
        ("a(b", 2, "no closing"),
        ("ab)", 3, "closes no group"),
        ("*a", 1, "repeat"),
        ("a{2,1}", 2, "less than the least"),
        ("a{x}", 2, "{3}"),
        ("a{99999}", 2, "too many"),
        ("[a", 1, "no closing"),
        ("[z-a]", 2, "ends before it begins"),
        (r"\p{Nonsense}", 3, "not a known property"),
        (r"a\", 2, "nothing after"),
        (r"\y", 1, "no meaning"),
        ("(?z)", 3, "not a flag"),
        ("(?<1>a)", 1, "name"),
        (r"(a)\2", 4, "no group 2"),
        (r"\ud83d", 1, "surrogate"),
        ("((a{1000}){1000}){1000}", 1, "larger than"),
    ];
    for (pattern, at, part) in cases {
        let refused = Query::new(Vec::new(), pattern, &backtracking()).unwrap_err();
        assert_eq!(refused.at, at, "{pattern}: {refused}");
        assert!(refused.reason.contains(part), "{pattern}: {refused}");
    }
    let deep = "(".repeat(3000);
    assert!(
        Query::new(Vec::new(), &deep, &Semantics::default()).unwrap_err().reason.contains("nested deeper")
    );
    let long = "a".repeat(5000);
    assert!(Query::new(Vec::new(), &long, &Semantics::default()).unwrap_err().reason.contains("longer than"));
    for request in ["no semicolon", "x;a", "1,,2;a", "99999999999;a"] {
        assert!(Query::parse(request, &Semantics::default()).is_err(), "{request}");
    }
}

#[test]
#[expect(clippy::single_range_in_vec_init, reason = "one match is what is found")]
fn all_matches_are_returned_for_colouring() {
    let spans =
        |pattern: &str, sentence: &str| query(pattern, &backtracking()).matches(sentence.as_bytes()).unwrap();
    assert_eq!(spans("an?", "a banana"), [0..1, 3..5, 5..7, 7..8]);
    assert_eq!(spans("x*", "éxx"), [2..4]);
    assert_eq!(spans(r"(.)\1", "aabb é"), [0..2, 2..4]);
}
