//! A synthetic database: rows `type@@@sentence` of a documented law, generated from a seed, so that nothing needs to be
//! downloaded.
//!
//! The law. Types are drawn uniformly. A sentence is English with probability 4/5, otherwise French; it has a lognormal number of
//! words (median 11, σ of the logarithm 0.55, 1 to 120). The word of rank r of its language has a probability proportional to 1 /
//! (r + 2.7), Zipf's law as Mandelbrot corrected it. The first ranks are common words of the language, the rest up to 20,000 are
//! made of syllables; no word follows itself. One word in fifty is a name. A comma follows one word in fourteen; the sentence
//! begins with a capital and ends in a full stop, and 19 times in 20 in a blank, as the data of the course does. In addition,
//! phrases are [planted](PLANTED) at random in this many sentences of a million.
//!
//! The same seed, types and number of rows give the same bytes, on any number of threads, and a larger file begins with the rows
//! of a smaller one.

use std::io::{self, Write};
use std::thread;

use kendall_stats::random::{Purpose, Rng, stream, unit};

/// The number of different words of a language.
const WORDS: usize = 20_000;
/// The number of rows that are drawn from one stream.
const ROWS_PER_STREAM: u64 = 8192;
const MEDIAN_WORDS: f64 = 11.0;
const SIGMA: f64 = 0.55;
const MOST_WORDS: usize = 120;

const ENGLISH: &str = include_str!("generate/english.txt");
const FRENCH: &str = include_str!("generate/french.txt");
const NAMES: &str = include_str!("generate/names.txt");

const WEEKDAYS: [&str; 5] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"];

/// The phrases planted in addition to the words of the law, and in how many sentences of a million.
pub const PLANTED: [(&str, u32); 10] = [
    ("this man", 100),
    ("this man is", 1),
    ("Shakespeare", 86),
    ("ministres,pouvoir", 48),
    ("ministres;pouvoir", 16),
    ("of course there was nothing", 33),
    ("of course he said nothing", 33),
    // At the end of a sentence, with its full stop.
    ("and these were his last words", 119),
    ("Anna of Johnson", 8),
    ("Peter von Anderson", 8),
];
/// Patterns to time searches by, each of another kind and with its name: from words that occur in hardly any sentence to a
/// pattern that needs backtracking.
pub const TIMED: [(&str, &str); 19] = [
    ("two words", "this man"),
    ("rare word", "Shakespeare"),
    ("common word", "the"),
    ("end of a sentence", r" his last words\."),
    ("words with anything between", "of course(.*) nothing"),
    ("words with a class between", "ministres[,;]+pouvoir"),
    ("words at a distance", "everybody.........but"),
    ("beginning of a sentence", "^Les gens"),
    ("alternation", "Monday|Tuesday|Wednesday|Thursday|Friday"),
    ("digits", "[0-9]{4}"),
    ("ignoring case", "(?i)shakespeare"),
    ("nowhere", "zzyzzx"),
    ("rare letters", "[jkqxz]{5}"),
    ("classes around a word", "[A-Z][a-z]+ (de|of|von) [A-Z][a-z]*son"),
    ("classes and boundaries", r"\b[A-Z]\w+ing\b.*\d"),
    ("repeats of repeats", r"(\w{3,8} ){6}[A-Z]"),
    ("everything", ".*"),
    ("back-reference", r"\b(\w{3,}) \1\b"),
    ("look-around", "(?<!not )this man(?= is)"),
];

/// A day from Monday to Friday, a year, and a doubled word: in this many sentences of a million.
const WEEKDAY: u32 = 13_070;
const YEAR: u32 = 110_000;
const TWICE: u32 = 1_300;

/// The description of the file to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generate {
    /// The size of the file.
    pub size: Size,
    /// The number of types; they are numbered from 0.
    pub types: u32,
    /// The seed of the draws.
    pub seed: u64,
    /// The number of threads that generate it.
    pub threads: usize,
}

/// The size of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The number of rows.
    Rows(u64),
    /// The number of bytes of the file; there are as many rows as it needs.
    Bytes(u64),
}

/// The size of the generated file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// Rows.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Writes a database.
/// # Errors
/// Fails if writing to `out` does.
pub fn generate(what: &Generate, out: &mut impl Write) -> io::Result<Generated> {
    let languages = Languages::new();
    let threads = what.threads.max(1) as u64;
    let mut done = Generated::default();
    for first in (0..).step_by(threads as usize) {
        let texts: Vec<String> = thread::scope(|scope| {
            let make = |index| {
                scope.spawn({
                    let languages = &languages;
                    move || languages.rows(what, index)
                })
            };
            let made: Vec<_> = (first..first + threads).map(make).collect();
            made.into_iter().map(|made| made.join().expect("drawing words does not fail")).collect()
        });
        for text in texts {
            let (rows, bytes) = wanted(what.size, done, &text);
            out.write_all(&text.as_bytes()[..bytes])?;
            done.rows += rows;
            done.bytes += bytes as u64;
            if bytes < text.len() || what.size == Size::Rows(done.rows) {
                out.flush()?;
                return Ok(done);
            }
        }
    }
    unreachable!("the numbers of streams do not end")
}

/// The common words of English at the start of the law, the most common first: words to search for.
pub fn common_words() -> impl Iterator<Item = &'static str> {
    ENGLISH.split_whitespace()
}

/// How many rows, and bytes, of this text are still needed.
fn wanted(size: Size, done: Generated, text: &str) -> (u64, usize) {
    let (mut rows, mut bytes) = (0, 0);
    for row in text.split_inclusive('\n') {
        let enough = match size {
            Size::Rows(wanted) => done.rows + rows >= wanted,
            Size::Bytes(wanted) => done.bytes + bytes as u64 >= wanted,
        };
        if enough {
            break;
        }
        rows += 1;
        bytes += row.len();
    }
    (rows, bytes)
}

struct Languages {
    english: Vec<String>,
    french: Vec<String>,
    names: Vec<&'static str>,
    /// For each rank, the cumulated probability.
    cumulated: Vec<f64>,
}

impl Languages {
    fn new() -> Self {
        let mut cumulated: Vec<f64> = (1..=WORDS)
            .scan(0.0, |sum, rank| {
                *sum += 1.0 / (rank as f64 + 2.7);
                Some(*sum)
            })
            .collect();
        let all = cumulated[WORDS - 1];
        cumulated.iter_mut().for_each(|sum| *sum /= all);
        Self {
            english: vocabulary(ENGLISH, ["er", "ing", "ed", "ly", "s", "tion", "ness", ""], 1),
            french: vocabulary(FRENCH, ["e", "er", "es", "ment", "tion", "ait", "eur", ""], 2),
            names: NAMES.split_whitespace().collect(),
            cumulated,
        }
    }

    /// The rows of one stream.
    fn rows(&self, what: &Generate, index: u64) -> String {
        let mut rng = stream(what.seed, Purpose::Request, index);
        let mut text = String::with_capacity(100 * ROWS_PER_STREAM as usize);
        for _ in 0..ROWS_PER_STREAM {
            let kind = (unit(&mut rng) * f64::from(what.types.max(1))) as u32;
            text.push_str(&kind.to_string());
            text.push_str("@@@");
            self.sentence(&mut rng, &mut text);
            text.push('\n');
        }
        text
    }

    fn sentence(&self, rng: &mut Rng, text: &mut String) {
        let words = if unit(rng) < 0.8 { &self.english } else { &self.french };
        let count = MEDIAN_WORDS * libm::exp(SIGMA * normal(rng));
        let count = (count as usize).clamp(1, MOST_WORDS);
        let planted = self.planted(rng);
        let place = (unit(rng) * count as f64) as usize;
        let start = text.len();
        let mut last = usize::MAX;
        for index in 0..count {
            if index == place
                && let Some(phrase) = &planted
            {
                text.push_str(phrase);
                text.push(' ');
            }
            if unit(rng) < 0.02 {
                text.push_str(self.names[(unit(rng) * self.names.len() as f64) as usize]);
            } else {
                let mut rank = self.rank(rng);
                if rank == last {
                    rank = (rank + 1) % WORDS;
                }
                last = rank;
                text.push_str(&words[rank]);
            }
            text.push_str(if index + 1 < count && unit(rng) < 1.0 / 14.0 { ", " } else { " " });
        }
        text.pop();
        let at_end = planted.as_ref().is_some_and(|phrase| phrase.ends_with("last words"));
        if let (true, Some(phrase)) = (at_end, &planted) {
            text.push(' ');
            text.push_str(phrase);
        }
        capitalize(text, start);
        text.push('.');
        if unit(rng) < 0.95 {
            text.push(' ');
        }
    }

    fn rank(&self, rng: &mut Rng) -> usize {
        let drawn = unit(rng);
        self.cumulated.partition_point(|&sum| sum <= drawn).min(WORDS - 1)
    }

    /// A phrase that is planted in this sentence, if any.
    fn planted(&self, rng: &mut Rng) -> Option<String> {
        let mut drawn = (unit(rng) * 1e6) as u32;
        let mut is = |per_million: u32| {
            let is = drawn < per_million;
            drawn = drawn.wrapping_sub(per_million);
            is
        };
        if is(YEAR) {
            return Some((1500 + (unit(rng) * 520.0) as u32).to_string());
        }
        if is(WEEKDAY) {
            return Some(WEEKDAYS[(unit(rng) * 5.0) as usize].to_owned());
        }
        if is(TWICE) {
            let word = self.english.iter().skip(self.rank(rng)).find(|word| word.len() >= 3)?;
            return Some(format!("{word} {word}"));
        }
        PLANTED.iter().find(|(_, per_million)| is(*per_million)).map(|(phrase, _)| (*phrase).to_owned())
    }
}

/// Common words, and then words of syllables with these endings, up to [`WORDS`].
fn vocabulary(common: &str, endings: [&str; 8], language: u64) -> Vec<String> {
    const ONSETS: [&str; 20] = [
        "b", "br", "c", "ch", "d", "f", "fl", "g", "h", "l", "m", "n", "p", "pr", "r", "s", "st", "t", "tr",
        "v",
    ];
    const NUCLEI: [&str; 10] = ["a", "e", "i", "o", "u", "a", "ea", "ou", "i", "e"];
    const CODAS: [&str; 10] = ["", "", "", "r", "l", "s", "t", "m", "n", "st"];
    let mut rng = stream(language, Purpose::Sample, 0);
    let mut words: Vec<String> = common.split_whitespace().map(str::to_owned).collect();
    while words.len() < WORDS {
        let mut word = String::new();
        for _ in 0..1 + (unit(&mut rng) * 1.6) as usize {
            for parts in [&ONSETS[..], &NUCLEI, &CODAS] {
                word.push_str(parts[(unit(&mut rng) * parts.len() as f64) as usize]);
            }
        }
        word.push_str(endings[(unit(&mut rng) * 8.0) as usize]);
        words.push(word);
    }
    words
}

fn capitalize(text: &mut String, at: usize) {
    if let Some(first) = text[at..].chars().next() {
        let end = at + first.len_utf8();
        text.replace_range(at..end, &first.to_uppercase().to_string());
    }
}

/// A number of the standard normal law, by Box and Muller's method (1958), through `libm` so that it is the same everywhere.
fn normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - unit(rng)));
    radius * libm::cos(std::f64::consts::TAU * unit(rng))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(size: Size, threads: usize) -> (Vec<u8>, Generated) {
        let mut out = Vec::new();
        let generated = generate(&Generate { size, types: 5, seed: 7, threads }, &mut out).unwrap();
        (out, generated)
    }

    #[test]
    fn threads_do_not_change_the_rows_and_a_larger_file_begins_with_a_smaller_one() {
        let (short, generated) = made(Size::Rows(10_000), 1);
        let (long, _) = made(Size::Rows(20_000), 3);
        assert!(long.starts_with(&short));
        assert_eq!(generated, Generated { rows: 10_000, bytes: short.len() as u64 });
        assert_eq!(short.iter().filter(|&&byte| byte == b'\n').count(), 10_000);
    }

    #[test]
    fn the_last_row_reaches_the_given_number_of_bytes() {
        let (text, generated) = made(Size::Bytes(100_000), 2);
        assert!(text.len() >= 100_000 && text.ends_with(b"\n"));
        let last = text[..text.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap();
        assert!(last < 100_000);
        assert_eq!(generated.bytes, text.len() as u64);
    }

    /// Counts of 40,000 rows within five standard deviations of their binomial laws: a false alarm in a million seeds or so.
    #[test]
    fn the_law_is_kept() {
        let rows = 40_000;
        let (text, _) = made(Size::Rows(rows), 2);
        let text = String::from_utf8(text).unwrap();
        let check = |name: &str, p: f64, seen: usize| {
            let (mean, sigma) = (rows as f64 * p, (rows as f64 * p * (1.0 - p)).sqrt());
            assert!((seen as f64 - mean).abs() < 5.0 * sigma, "{name}: {seen}, expected {mean} ± {sigma}");
        };
        for kind in 0..5 {
            let of_kind = text.lines().filter(|row| row.starts_with(&format!("{kind}@@@"))).count();
            check(&format!("type {kind}"), 0.2, of_kind);
        }
        let per_million = |count: u32| f64::from(count) / 1e6;
        let holding =
            |words: &[&str]| text.lines().filter(|row| words.iter().any(|word| row.contains(word))).count();
        check("weekdays", per_million(WEEKDAY), holding(&WEEKDAYS));
        let year = |row: &&str| row.as_bytes().windows(4).any(|four| four.iter().all(u8::is_ascii_digit));
        check("years", per_million(YEAR), text.lines().filter(year).count());
        let blank = text.lines().filter(|row| row.ends_with(". ")).count();
        check("blanks", 0.95, blank);
    }
}
