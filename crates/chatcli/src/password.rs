//! Passwords: from a file or from the terminal, never from the command line or the environment, where other users could read
//! them.

use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use zeroize::Zeroizing;

/// The shortest password that a new account may have: NIST SP 800-63B, section 5.1.1.1.
const SHORTEST: usize = 8;
/// The longest file that a password is read from.
const MOST_FILE_BYTES: u64 = 1_000_000;

/// Asks for a password.
pub(crate) fn read(file: Option<&Path>, question: &str) -> anyhow::Result<Zeroizing<String>> {
    match file {
        Some(file) => from_file(file),
        None if io::stdin().is_terminal() => {
            let password = rpassword::prompt_password(format!("{question}: "));
            password.map(Zeroizing::new).context("cannot read the password")
        }
        None => bail!("there is no terminal to ask for the password: name a file with --password-file"),
    }
}

/// Asks for a new password, at a terminal twice.
pub(crate) fn read_new(file: Option<&Path>) -> anyhow::Result<Zeroizing<String>> {
    let password = read(file, "New password")?;
    let length = password.chars().count();
    ensure!(length >= SHORTEST, "the password has {length} characters: it needs at least {SHORTEST}");
    if file.is_none() {
        ensure!(read(None, "The same again")? == password, "the two passwords are not the same");
    }
    Ok(password)
}

fn from_file(file: &Path) -> anyhow::Result<Zeroizing<String>> {
    let text = kendall_files::read_text(file, MOST_FILE_BYTES)
        .map(Zeroizing::new)
        .with_context(|| format!("cannot read the password file {}", file.display()))?;
    let password = text.lines().next().unwrap_or_default();
    ensure!(!password.is_empty(), "the first line of {} is empty: write the password there", file.display());
    Ok(Zeroizing::new(password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_end_is_no_password_file() {
        let why = format!("{:#}", from_file(Path::new("/dev/zero")).unwrap_err());
        assert!(why.contains("/dev/zero") && why.contains("longer than the limit of 1 MB"), "{why}");
    }
}
