//! Whether a log-in to a name without an account takes as long as one to an account: the server's answers to both, in turn.
//!
//! ```console
//! $ kendall serve chat --store memory: --limits off &
//! $ cargo run --release --package kendall-chat --example timing -- 127.0.0.1:5011 5000
//! ```

use std::time::{Duration, Instant};

use kendall_chat::client::security::Security;
use kendall_chat::client::{Client, ClientError};
use kendall_chat::password::Stretch;
use kendall_chat::password::client::LogIn;
use kendall_chat::protocol::{Blame, Request};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, rounds] = &arguments[..] else { return Err("arguments: ADDRESS ROUNDS".into()) };
    let (address, rounds): (_, usize) = (address.parse()?, rounds.parse()?);
    let mut client = Client::connect(address, &Security::Plain).await?;
    match client.register("known-name", "a password", Stretch::Off).await {
        Err(error) if error.blame() != Some(Blame::NameTaken) => return Err(error.into()),
        _ => {}
    }
    let names = ["known-name", "unknown-name"];
    let mut times: [Vec<Duration>; 2] = Default::default();
    for round in 0..rounds {
        // In turn, and each first in half of the rounds, so that what drifts hits both alike.
        for place in [round % 2, (round + 1) % 2] {
            times[place].push(answer_time(&mut client, names[place]).await?);
        }
    }
    for (name, times) in names.iter().zip(&mut times) {
        times.sort();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        println!("{name:15} p10 {:?}, median {:?}, p90 {:?}", at(10), at(50), at(90));
    }
    Ok(())
}

/// From the first message of a log-in to the server's answer.
async fn answer_time(client: &mut Client, name: &str) -> Result<Duration, ClientError> {
    let (_, message) = LogIn::start("a guess");
    let request = Request::LogInStart { name: name.to_owned(), message };
    let begun = Instant::now();
    client.ask(request).await?;
    Ok(begun.elapsed())
}
