//! Creates the first account of a profile at the terminal.

use std::io::{self, Write};

use anyhow::ensure;
use zeroize::Zeroizing;

use crate::account::{enter, make};
use crate::output::{line, note};
use crate::profile::Account;
use crate::session::{User, connect};

/// Where a directory server listens unless it is asked for another address.
const SERVER: &str = "127.0.0.1:5011";

/// Asks for a server and for an account there, new or not, until both are right; the account and its password.
///
/// # Errors
/// Fails where the input ends, and where the profile cannot be written.
pub async fn set_up(user: &User) -> anyhow::Result<(Account, Zeroizing<String>)> {
    user.profile.check_unused()?;
    line("This profile has no account yet. Ctrl-C ends the questions.")?;
    let mut account = ask_server().await?;
    let is_new =
        ask_word("Make a new account there, or use one that you have? new or mine", ["new", "mine"])?;
    loop {
        account.name = ask("Your name there", "")?;
        let entered =
            if is_new { make(user, account.clone()).await } else { enter(user, account.clone()).await };
        match entered {
            Ok(entered) => return Ok(entered),
            // Neither a profile that cannot be written nor a server that is gone is cured by another answer.
            Err(error) if error.is::<io::Error>() => return Err(error),
            Err(error) => note(&format!("{error:#}")),
        }
    }
}

/// Asks for a server until one answers.
async fn ask_server() -> anyhow::Result<Account> {
    loop {
        let server = ask("Directory server", SERVER)?;
        let digits =
            ask("Fingerprint of its certificate, which it logs; none without TLS on this machine", "none")?;
        let fingerprint = (digits != "none").then_some(digits);
        let account = Account { name: String::new(), server, fingerprint };
        match connect(&account).await {
            Ok(_) => return Ok(account),
            Err(error) => note(&format!("{error:#}")),
        }
    }
}

/// Asks for one of two words, of which the first one is usual; whether it is that.
fn ask_word(question: &str, words: [&str; 2]) -> anyhow::Result<bool> {
    loop {
        let answer = ask(question, words[0])?;
        if let Some(place) = words.iter().position(|word| *word == answer) {
            return Ok(place == 0);
        }
        note(&format!("write {} or {}", words[0], words[1]));
    }
}

/// Asks a question. An empty answer means the default; without a default, the question is repeated.
fn ask(question: &str, usual: &str) -> anyhow::Result<String> {
    loop {
        let hint = if usual.is_empty() { String::new() } else { format!(" [{usual}]") };
        print!("{question}{hint}: ");
        io::stdout().flush()?;
        let mut answer = String::new();
        ensure!(io::stdin().read_line(&mut answer)? > 0, "the input has ended before there was an account");
        match answer.trim() {
            "" if usual.is_empty() => {}
            "" => return Ok(usual.to_owned()),
            answer => return Ok(answer.to_owned()),
        }
    }
}
