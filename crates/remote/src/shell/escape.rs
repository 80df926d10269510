//! Escapes in what a user types, as ssh has them: `~` at the beginning of a line and a letter. No I/O.

/// What an escape asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// `~.`: end the session.
    End,
    /// `~d`: detach from the session.
    Detach,
    /// `~?`: list the escapes.
    Help,
}

/// The escapes, for `~?`.
pub(crate) const HELP: &str = "Escapes, at the beginning of a line:\r\n  ~.  end the session\r\n  ~d  detach: the session continues\r\n  ~?  this list\r\n  ~~  a tilde\r\n";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Position {
    #[default]
    LineStart,
    AfterTilde,
    InLine,
}

/// Finds escapes in a stream of bytes.
#[derive(Debug, Default)]
pub(crate) struct EscapeFilter {
    position: Position,
}

impl EscapeFilter {
    /// Appends to `plain` what goes to the program. Stops after an escape, and returns it with the rest of the bytes.
    pub(crate) fn filter<'a>(&mut self, bytes: &'a [u8], plain: &mut Vec<u8>) -> Option<(Escape, &'a [u8])> {
        for (index, byte) in bytes.iter().enumerate() {
            let position = self.position;
            self.position = match byte {
                b'\r' | b'\n' => Position::LineStart,
                _ => Position::InLine,
            };
            match (position, byte) {
                (Position::LineStart, b'~') => {
                    self.position = Position::AfterTilde;
                    continue;
                }
                (Position::AfterTilde, b'.' | b'd' | b'?') => {
                    self.position = Position::LineStart;
                    let escape = match byte {
                        b'.' => Escape::End,
                        b'd' => Escape::Detach,
                        _ => Escape::Help,
                    };
                    return Some((escape, &bytes[index + 1..]));
                }
                (Position::AfterTilde, b'~') => {}
                (Position::AfterTilde, _) => plain.push(b'~'),
                _ => {}
            }
            plain.push(*byte);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &str, piece: usize) -> (String, Vec<Escape>) {
        let (mut filter, mut plain, mut found) = (EscapeFilter::default(), Vec::new(), Vec::new());
        for piece in input.as_bytes().chunks(piece) {
            let mut rest = piece;
            while let Some((escape, after)) = filter.filter(rest, &mut plain) {
                found.push(escape);
                rest = after;
            }
        }
        (String::from_utf8(plain).unwrap(), found)
    }

    #[test]
    fn escapes_are_found_at_line_starts_alone_however_the_input_is_divided() {
        for piece in 1..9 {
            assert_eq!(
                all("ls ~.\r~~x\r~/bin ~d\r~?~d", piece),
                ("ls ~.\r~x\r~/bin ~d\r".into(), vec![Escape::Help, Escape::Detach])
            );
            assert_eq!(all("~.", piece), (String::new(), vec![Escape::End]));
            assert_eq!(all("a~.\n~\r~.", piece), ("a~.\n~\r".into(), vec![Escape::End]));
        }
    }
}
