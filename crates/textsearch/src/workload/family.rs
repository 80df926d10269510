//! Families of patterns, and the patterns drawn from them.

use std::str::FromStr;

use kendall_stats::random::{Purpose, Rng, stream, unit};

use crate::generate::common_words;

/// A kind of pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Two words: `this man`.
    Literal,
    /// Three times two words: `this man|of course|every day`.
    Alternation,
    /// Two words with four letters between them: `this [a-z]{4} man`.
    Class,
    /// Two words at the beginning of a sentence: `^This man`.
    Anchored,
    /// Two words in any case of letters: `(?i)this man`.
    IgnoringCase,
    /// A word that occurs nowhere.
    Nothing,
    /// A pattern that matches all: `.*`.
    All,
}

impl Family {
    /// Every family, in the order in which they are listed to users.
    pub const ALL: [Self; 7] = [
        Self::Literal,
        Self::Alternation,
        Self::Class,
        Self::Anchored,
        Self::IgnoringCase,
        Self::Nothing,
        Self::All,
    ];

    /// The name in a mix, and of the class of its requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Literal => "literal",
            Self::Alternation => "alternation",
            Self::Class => "class",
            Self::Anchored => "anchored",
            Self::IgnoringCase => "ignoring-case",
            Self::Nothing => "none",
            Self::All => "all",
        }
    }
}

/// The weight of each family.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix(Vec<(Family, f64)>);

/// Reads `literal`, or `literal=4,class=1`.
impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut mix: Vec<(Family, f64)> = Vec::new();
        for part in text.split(',') {
            let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
            let name = name.trim();
            let family = Family::ALL.into_iter().find(|family| family.name() == name).ok_or_else(|| {
                let known = Family::ALL.map(Family::name).join(", ");
                format!(
                    "must be families with weights, as in literal=4,class=1; {name:?} is not one of {known}"
                )
            })?;
            let weight = weight.trim().parse::<f64>().ok().filter(|weight| *weight > 0.0 && *weight <= 1e9);
            let weight = weight.ok_or_else(|| format!("the weight of {name} must be a positive number"))?;
            if mix.iter().any(|(known, _)| *known == family) {
                return Err(format!("{name} is listed twice; give it one weight"));
            }
            mix.push((family, weight));
        }
        Ok(Self(mix))
    }
}

/// Whether patterns are written for servers that match whole sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    /// Unchanged.
    Bare,
    /// The pattern has the form `(.*)X(.*)`.
    Wrapped,
}

/// All different requests that are drawn; the k-th is a pure function of the seed and k.
#[derive(Clone, Debug)]
pub(super) struct Patterns {
    mix: Mix,
    wrapping: Wrapping,
    types_asked: u32,
    types: u32,
    seed: u64,
    words: Vec<&'static str>,
}

impl Patterns {
    pub(super) fn new(mix: Mix, wrapping: Wrapping, types_asked: u32, types: u32, seed: u64) -> Self {
        Self { mix, wrapping, types_asked, types, seed, words: common_words().collect() }
    }

    pub(super) fn families(&self) -> impl Iterator<Item = Family> {
        self.mix.0.iter().map(|(family, _)| *family)
    }

    /// The index in the mix of the family of the k-th request.
    pub(super) fn class(&self, rank: u64) -> usize {
        self.draw_family(&mut stream(self.seed, Purpose::Class, rank))
    }

    /// The index of its family in the mix, and the request.
    pub(super) fn request(&self, rank: u64) -> (u32, String) {
        let mut rng = stream(self.seed, Purpose::Class, rank);
        let class = self.draw_family(&mut rng);
        let types = self.draw_types(&mut rng);
        let pattern = self.draw_pattern(&mut rng, self.mix.0[class].0, rank);
        (class as u32, format!("{types};{pattern}"))
    }

    fn draw_family(&self, rng: &mut Rng) -> usize {
        let all: f64 = self.mix.0.iter().map(|(_, weight)| weight).sum();
        let mut left = unit(rng) * all;
        let drawn = self.mix.0.iter().position(|(_, weight)| {
            left -= weight;
            left < 0.0
        });
        drawn.unwrap_or(self.mix.0.len() - 1)
    }

    /// Different types, each set of this size equally likely (selection sampling).
    fn draw_types(&self, rng: &mut Rng) -> String {
        let mut drawn = Vec::new();
        for kind in 0..self.types {
            let wanted = self.types_asked as usize - drawn.len();
            if unit(rng) * f64::from(self.types - kind) < wanted as f64 {
                drawn.push(kind.to_string());
            }
        }
        drawn.join(",")
    }

    fn draw_pattern(&self, rng: &mut Rng, family: Family, rank: u64) -> String {
        let bare = match family {
            Family::Literal => self.phrase(rng),
            Family::Alternation => (0..3).map(|_| self.phrase(rng)).collect::<Vec<_>>().join("|"),
            Family::Class => format!("{} [a-z]{{4}} {}", self.word(rng), self.word(rng)),
            Family::Anchored => capitalized(&self.phrase(rng)),
            Family::IgnoringCase => format!("(?i){}", self.phrase(rng)),
            // No word of a synthetic database has both letters and digits.
            Family::Nothing => format!("zzq{rank}zz"),
            Family::All => return ".*".into(),
        };
        match (self.wrapping, family) {
            (Wrapping::Bare, Family::Anchored) => format!("^{bare}"),
            (Wrapping::Bare, _) => bare,
            (Wrapping::Wrapped, Family::Anchored) => format!("{bare}(.*)"),
            (Wrapping::Wrapped, _) => format!("(.*)({bare})(.*)"),
        }
    }

    fn phrase(&self, rng: &mut Rng) -> String {
        format!("{} {}", self.word(rng), self.word(rng))
    }

    fn word(&self, rng: &mut Rng) -> &'static str {
        self.words[(unit(rng) * self.words.len() as f64) as usize]
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
