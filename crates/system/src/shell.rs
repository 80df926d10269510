//! Quoting for a shell.

/// A word in the notation of a POSIX shell: unchanged, or in single quotes.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/%+=@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for word in ["plain/path:80", "", "two words", "it's", "${HOME}", "a;b|c", "*", "\n", "é"] {
            let output = std::process::Command::new("/bin/sh")
                .args(["-c", &format!("printf %s {}", quoted(word))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
        assert_eq!(quoted("plain/path:80"), "plain/path:80");
    }
}
