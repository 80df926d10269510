//! The parser of Java's syntax, after the documentation of `java.util.regex.Pattern`.

use std::collections::HashMap;

use super::class::{folded, negated, predefined, set, terminators};
use super::reader::{Flags, Irregular, Parser};
use super::tree::{Anchor, Greed, Node, Side, Want};
use crate::error::PatternError;
use crate::semantics::Alphabet;

/// The most repeats of a part.
const MOST_REPEATS: u32 = 10_000;

pub(crate) struct Parsed {
    pub(crate) tree: Node,
    /// The first part that is not possible with a finite automaton.
    pub(crate) irregular: Option<Irregular>,
}

pub(crate) fn parse(text: &str, alphabet: Alphabet) -> Result<Parsed, PatternError> {
    let text: Vec<char> = text.chars().collect();
    let flags = Flags {
        ignore_case: false,
        unicode_case: false,
        dot_all: false,
        comments: false,
        unix_lines: false,
        alphabet,
    };
    let mut parser = Parser {
        text: &text,
        next: 0,
        flags,
        groups: 0,
        names: HashMap::new(),
        irregular: None,
        references: Vec::new(),
    };
    let tree = parser.alternatives(0)?;
    if parser.peek().is_some() {
        let at = parser.at();
        return Err(parser.error(at, "this `)` closes no group; write `\\)` for the character"));
    }
    for (at, group) in std::mem::take(&mut parser.references) {
        if group > parser.groups {
            return Err(parser.error(at, &format!("there is no group {group}")));
        }
    }
    Ok(Parsed { tree, irregular: parser.irregular })
}

impl Parser<'_> {
    /// Up to the end of the group, whose flags end with it.
    fn alternatives(&mut self, depth: usize) -> Result<Node, PatternError> {
        let flags = self.flags;
        let mut branches = vec![self.sequence(depth)?];
        while self.eat('|') {
            branches.push(self.sequence(depth)?);
        }
        self.flags = flags;
        Ok(Node::either(branches))
    }

    fn sequence(&mut self, depth: usize) -> Result<Node, PatternError> {
        let mut nodes = Vec::new();
        loop {
            self.skip_blanks();
            if matches!(self.peek(), None | Some('|' | ')')) {
                return Ok(Node::concat(nodes));
            }
            let at = self.at();
            if self.eat_all("\\Q") {
                let mut quoted: Vec<Node> = self.quoted().into_iter().map(|c| self.character(c)).collect();
                if let Some(last) = quoted.pop() {
                    nodes.append(&mut quoted);
                    nodes.push(self.repeated(at, last)?);
                }
                continue;
            }
            if let Some(atom) = self.atom(depth)? {
                nodes.push(self.repeated(at, atom)?);
            }
        }
    }

    fn character(&self, c: char) -> Node {
        Node::Class(folded(set(&[(c, c)]), self.case()))
    }

    /// One part without its repeats; `None` where there was only a flag.
    fn atom(&mut self, depth: usize) -> Result<Option<Node>, PatternError> {
        let at = self.at();
        let Some(c) = self.next() else { return Ok(None) };
        Ok(Some(match c {
            '(' => return self.group(at, depth + 1),
            '[' => Node::Class(self.class(depth + 1)?),
            '.' => Node::Class(match self.flags {
                Flags { dot_all: true, .. } => negated(set(&[])),
                Flags { unix_lines: true, .. } => negated(set(&[('\n', '\n')])),
                _ => negated(terminators()),
            }),
            '^' => Node::Anchor(Anchor::Start),
            '$' => Node::Anchor(Anchor::End),
            '\\' => self.escape(at)?,
            '*' | '+' | '?' => {
                let reason =
                    format!("there is nothing before this `{c}` to repeat; write `\\{c}` for the character");
                return Err(self.error(at, &reason));
            }
            '{' => {
                return Err(self
                    .error(at, "there is nothing before this `{` to repeat; write `\\{` for the character"));
            }
            c => self.character(c),
        }))
    }

    /// After an opening parenthesis.
    fn group(&mut self, open: usize, depth: usize) -> Result<Option<Node>, PatternError> {
        self.check_depth(open, depth)?;
        let looks = [
            ("?=", Side::Ahead, Want::There),
            ("?!", Side::Ahead, Want::Absent),
            ("?<=", Side::Behind, Want::There),
            ("?<!", Side::Behind, Want::Absent),
        ];
        for (mark, to, want) in looks {
            if self.eat_all(mark) {
                self.irregular(open, "look-around");
                let node = Box::new(self.inside(open, depth)?);
                return Ok(Some(Node::Look { node, to, want }));
            }
        }
        if self.eat_all("?:") {
            return self.inside(open, depth).map(Some);
        }
        if self.eat_all("?>") {
            self.irregular(open, "an atomic group");
            return Ok(Some(Node::Atomic(Box::new(self.inside(open, depth)?))));
        }
        if self.eat_all("?<") {
            let name = self.take_until('>').filter(|name| is_name(name)).ok_or_else(|| {
                self.error(open, "the name of this group must be letters and digits and end in `>`")
            })?;
            let number = self.groups + 1;
            if self.names.insert(name.clone(), number).is_some() {
                return Err(self.error(open, &format!("there are two groups of the name `{name}`")));
            }
            return self.capture(open, depth).map(Some);
        }
        if self.eat('?') {
            return self.flags(open, depth);
        }
        if self.peek() == Some('*') {
            return Err(self.error(open + 1, "there is nothing before this `*` to repeat"));
        }
        self.capture(open, depth).map(Some)
    }

    fn capture(&mut self, open: usize, depth: usize) -> Result<Node, PatternError> {
        self.groups += 1;
        let number = self.groups;
        Ok(Node::Capture { node: Box::new(self.inside(open, depth)?), number })
    }

    fn inside(&mut self, open: usize, depth: usize) -> Result<Node, PatternError> {
        let node = self.alternatives(depth)?;
        if !self.eat(')') {
            return Err(self.error(open, "this `(` has no closing `)`; write `\\(` for the character"));
        }
        Ok(node)
    }

    /// After `(?`: flags for the rest of the group, or for a separate group.
    fn flags(&mut self, open: usize, depth: usize) -> Result<Option<Node>, PatternError> {
        let before = self.flags;
        let mut on = true;
        loop {
            let at = self.at();
            match self.next() {
                Some('i') => self.flags.ignore_case = on,
                Some('u') => self.flags.unicode_case = on,
                Some('s') => self.flags.dot_all = on,
                Some('x') => self.flags.comments = on,
                Some('d') => self.flags.unix_lines = on,
                // A sentence is one line.
                Some('m') => {}
                Some('U') => self.flags.alphabet = if on { Alphabet::Unicode } else { Alphabet::Ascii },
                Some('-') if on => on = false,
                Some(')') => return Ok(None),
                Some(':') => {
                    let node = self.inside(open, depth)?;
                    self.flags = before;
                    return Ok(Some(node));
                }
                Some(c) => {
                    let reason = format!("`{c}` is not a flag: Java has d, i, m, s, u, x and U");
                    return Err(self.error(at, &reason));
                }
                None => return Err(self.error(open, "this `(` has no closing `)`")),
            }
        }
    }

    /// A repeat after an atom.
    fn repeated(&mut self, start: usize, node: Node) -> Result<Node, PatternError> {
        self.skip_blanks();
        let at = self.at();
        let (least, most) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                self.next += 1;
                let bounds = self.bounds(at)?;
                return Ok(self.greed(start, node, bounds));
            }
            _ => return Ok(node),
        };
        self.next += 1;
        Ok(self.greed(start, node, (least, most)))
    }

    fn greed(&mut self, start: usize, node: Node, (least, most): (u32, Option<u32>)) -> Node {
        let greed = if self.eat('?') {
            Greed::Lazy
        } else if self.eat('+') {
            self.irregular(start, "a possessive repeat");
            Greed::Possessive
        } else {
            Greed::Greedy
        };
        Node::Repeat { node: Box::new(node), least, most, greed }
    }

    /// After `{`.
    fn bounds(&mut self, open: usize) -> Result<(u32, Option<u32>), PatternError> {
        let wrong = "repeats are written `{3}`, `{3,}` or `{3,5}`; write `\\{` for the character";
        let least = self.number(open)?.ok_or_else(|| self.error(open, wrong))?;
        let most = if self.eat(',') { self.number(open)? } else { Some(least) };
        if !self.eat('}') {
            return Err(self.error(open, wrong));
        }
        if most.is_some_and(|most| most < least) {
            return Err(self.error(open, "the most of these repeats is less than the least"));
        }
        Ok((least, most))
    }

    fn number(&mut self, open: usize) -> Result<Option<u32>, PatternError> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.next += 1;
            let value = number.unwrap_or(0) * 10 + digit;
            if value > MOST_REPEATS {
                return Err(self.error(open, &format!("more than {MOST_REPEATS} repeats are too many")));
            }
            number = Some(value);
        }
        Ok(number)
    }

    /// After a backslash outside of a class.
    fn escape(&mut self, at: usize) -> Result<Node, PatternError> {
        let letter = self.next().ok_or_else(|| self.error(at, "there is nothing after this backslash"))?;
        Ok(match letter {
            'b' if self.peek() == Some('{') => {
                return Err(
                    self.error(at, "grapheme boundaries are not supported; `\\b` alone is one of words")
                );
            }
            'b' => Node::Anchor(Anchor::WordBoundary),
            'B' => Node::Anchor(Anchor::NoWordBoundary),
            // The first search begins where the sentence does.
            'A' | 'G' => Node::Anchor(Anchor::Start),
            'z' | 'Z' => Node::Anchor(Anchor::End),
            'R' => Node::Class(predefined('v', self.flags.alphabet).expect("it is predefined")),
            'X' => {
                self.irregular(at, "`\\X`");
                Node::Grapheme
            }
            'p' | 'P' => Node::Class(self.property(letter)?),
            'k' => self.named_reference(at)?,
            '1'..='9' => self.reference(at, letter),
            _ => match predefined(letter, self.flags.alphabet) {
                Some(class) => Node::Class(class),
                None => {
                    let c = self.escaped_character(at, letter)?;
                    self.character(c)
                }
            },
        })
    }

    /// As many digits as are a known group.
    fn reference(&mut self, at: usize, first: char) -> Node {
        self.irregular(at, "a back-reference");
        let mut group = first.to_digit(10).expect("it is a digit");
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            if group * 10 + digit > self.groups {
                break;
            }
            group = group * 10 + digit;
            self.next += 1;
        }
        self.references.push((at, group));
        Node::Again { group, case: self.case() }
    }

    fn named_reference(&mut self, at: usize) -> Result<Node, PatternError> {
        self.irregular(at, "a back-reference");
        let name = if self.eat('<') { self.take_until('>') } else { None };
        let name = name.ok_or_else(|| self.error(at, "a reference to a group is written `\\k<name>`"))?;
        let group = *self
            .names
            .get(&name)
            .ok_or_else(|| self.error(at, &format!("there is no group of the name `{name}` before this")))?;
        Ok(Node::Again { group, case: self.case() })
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(|c| c.is_ascii_alphanumeric())
}
