//! Passwords: from a file or from the terminal, never from the command line or the environment, where other users could read
//! them.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::{Context, bail, ensure};

/// The shortest password that a new account may have: NIST SP 800-63B, section 5.1.1.1.
const SHORTEST: usize = 8;

/// Asks for a password.
pub(crate) fn read(file: Option<&Path>, question: &str) -> anyhow::Result<String> {
    match file {
        Some(file) => from_file(file),
        None if io::stdin().is_terminal() => {
            rpassword::prompt_password(format!("{question}: ")).context("cannot read the password")
        }
        None => bail!("there is no terminal to ask for the password: name a file with --password-file"),
    }
}

/// Asks for a new password, at a terminal twice.
pub(crate) fn read_new(file: Option<&Path>) -> anyhow::Result<String> {
    let password = read(file, "New password")?;
    let length = password.chars().count();
    ensure!(length >= SHORTEST, "the password has {length} characters: it needs at least {SHORTEST}");
    if file.is_none() {
        ensure!(read(None, "The same again")? == password, "the two passwords are not the same");
    }
    Ok(password)
}

fn from_file(file: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read the password file {}", file.display()))?;
    let password = text.lines().next().unwrap_or_default();
    ensure!(!password.is_empty(), "the first line of {} is empty: write the password there", file.display());
    Ok(password.to_owned())
}
