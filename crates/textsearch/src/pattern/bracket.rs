//! Sets of characters in Java's notation: `[a-z&&[^m]]`, `\d`, `\p{Lu}`.

use regex_syntax::hir::ClassUnicode;

use super::class::{folded, negated, predefined, property, set};
use super::reader::Parser;
use crate::error::PatternError;

impl Parser<'_> {
    /// After `\p` or `\P`.
    pub(crate) fn property(&mut self, letter: char) -> Result<ClassUnicode, PatternError> {
        let at = self.at();
        let name: String = match self.next() {
            Some('{') => {
                let rest = self.take_until('}');
                rest.ok_or_else(|| self.error(at, "the name of this property has no closing `}`"))?
            }
            Some(one) => one.into(),
            None => return Err(self.error(at, "the name of a property is missing, as in `\\p{Lu}`")),
        };
        let (negative, bare) = name.strip_prefix('^').map_or((false, &name[..]), |rest| (true, rest));
        let class = property(bare, self.alphabet())
            .ok_or_else(|| self.error(at, &format!("`{name}` is not a known property of characters")))?;
        let class = folded(class, self.case());
        Ok(if negative != (letter == 'P') { negated(class) } else { class })
    }

    /// After `[`.
    pub(crate) fn class(&mut self, depth: usize) -> Result<ClassUnicode, PatternError> {
        let open = self.at() - 1;
        self.check_depth(open, depth)?;
        let negative = self.eat('^');
        let mut all: Option<ClassUnicode> = None;
        let mut part = ClassUnicode::empty();
        let mut parts = 0;
        loop {
            self.skip_blanks();
            let at = self.at();
            match self.next() {
                None => {
                    return Err(
                        self.error(open, "this `[` has no closing `]`; write `\\[` for the character")
                    );
                }
                Some(']') if parts > 0 || all.is_some() => break,
                Some('[') => part.union(&self.class(depth + 1)?),
                Some('&') if self.eat('&') => {
                    if parts == 0 {
                        return Err(self.error(at, "there is nothing before this `&&`"));
                    }
                    part = intersection(all.take(), part);
                    all = Some(std::mem::replace(&mut part, ClassUnicode::empty()));
                    parts = 0;
                    continue;
                }
                Some('\\') => match self.class_escape(at)? {
                    Member::One(from) => part.union(&self.range(at, from)?),
                    Member::Set(set) => part.union(&set),
                    Member::Quoted(chars) => {
                        let ranges: Vec<(char, char)> = chars.into_iter().map(|c| (c, c)).collect();
                        part.union(&folded(set(&ranges), self.case()));
                    }
                },
                Some(from) => part.union(&self.range(at, from)?),
            }
            parts += 1;
        }
        let class = intersection(all, part);
        Ok(if negative { negated(class) } else { class })
    }

    /// A character in a class, and the range that it may begin.
    fn range(&mut self, at: usize, from: char) -> Result<ClassUnicode, PatternError> {
        let mut to = from;
        let ahead = self.peek_at(1);
        if self.peek() == Some('-') && !matches!(ahead, None | Some(']' | '[')) {
            self.next();
            let end = self.at();
            to = match self.next() {
                Some('\\') => match self.class_escape(end)? {
                    Member::One(to) => to,
                    _ => return Err(self.error(at, "a range must end in a character, as in `a-z`")),
                },
                Some(to) => to,
                None => return Err(self.error(at, "this range has no end")),
            };
        }
        if to < from {
            return Err(self.error(at, "this range ends before it begins"));
        }
        Ok(folded(set(&[(from, to)]), self.case()))
    }

    /// After a backslash within a class.
    fn class_escape(&mut self, at: usize) -> Result<Member, PatternError> {
        let letter = self.next().ok_or_else(|| self.error(at, "there is nothing after this backslash"))?;
        Ok(match letter {
            'Q' => Member::Quoted(self.quoted()),
            'p' | 'P' => Member::Set(self.property(letter)?),
            _ => match predefined(letter, self.alphabet()) {
                Some(class) => Member::Set(class),
                None => Member::One(self.escaped_character(at, letter)?),
            },
        })
    }
}

enum Member {
    One(char),
    Set(ClassUnicode),
    Quoted(Vec<char>),
}

fn intersection(all: Option<ClassUnicode>, part: ClassUnicode) -> ClassUnicode {
    match all {
        None => part,
        Some(mut all) => {
            all.intersect(&part);
            all
        }
    }
}
