//! The methods of authentication by name.

use std::fmt;
use std::str::FromStr;

/// How an account's password is proved. OPAQUE is for users; the other two are there to be compared with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthMethod {
    /// OPAQUE: the server never sees the password.
    #[default]
    Opaque,
    /// The password in clear over TLS; the server hashes it with Argon2id.
    Argon2id,
    /// SCRAM-SHA-256: the client derives keys with PBKDF2, and proves that it has them.
    Scram,
}

impl AuthMethod {
    /// All methods.
    pub const ALL: [Self; 3] = [Self::Opaque, Self::Argon2id, Self::Scram];

    /// The method's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Opaque => "opaque",
            Self::Argon2id => "argon2id",
            Self::Scram => "scram",
        }
    }
}

impl fmt::Display for AuthMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AuthMethod {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|method| method.name() == text);
        found.ok_or_else(|| format!("must be opaque, argon2id or scram, not {text:?}"))
    }
}
