//! File names on a command line: `HOST:PATH` at a server, and any other path on this machine.

use std::path::PathBuf;

/// A file of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A path of this machine.
    Local(PathBuf),
    /// A path in a server's folder.
    Remote {
        /// The host, by its name in the file of hosts.
        host: String,
        /// The path as it was written, in bytes; empty for the folder itself.
        path: Vec<u8>,
    },
}

impl Operand {
    /// Reads an operand. As with `scp`, it is remote where a colon comes before the first slash: `./a:b` is a file here.
    pub fn new(text: &std::ffi::OsStr) -> Self {
        let bytes = text.as_encoded_bytes();
        let end = bytes.iter().position(|byte| matches!(byte, b':' | b'/'));
        match end.map(|end| (&bytes[..end], bytes[end], &bytes[end + 1..])) {
            Some((host, b':', path)) if !host.is_empty() => {
                Self::Remote { host: String::from_utf8_lossy(host).into_owned(), path: path.to_vec() }
            }
            _ => Self::Local(text.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_before_the_first_slash_makes_an_operand_remote() {
        let remote = |host: &str, path: &str| Operand::Remote { host: host.into(), path: path.into() };
        for (text, expected) in [
            ("backup:a/b", remote("backup", "a/b")),
            ("backup:", remote("backup", "")),
            ("backup:a:b", remote("backup", "a:b")),
            ("./a:b", Operand::Local("./a:b".into())),
            ("a/b:c", Operand::Local("a/b:c".into())),
            (":a", Operand::Local(":a".into())),
            ("a", Operand::Local("a".into())),
        ] {
            assert_eq!(Operand::new(text.as_ref()), expected, "{text}");
        }
    }
}
