//! What idle users cost a directory server in memory, and how soon a watcher learns that a user has come.
//!
//! ```console
//! $ kendall serve chat --store memory: --limits off &
//! $ cargo run --release --package kendall-chat --example idle -- 127.0.0.1:5011 10000 $!
//! ```
//!
//! The arguments are the server's address, how many users log in, and the server's process. With a fourth, the
//! fingerprint of its certificate, the users come over TLS.

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use kendall_chat::client::security::{Security, read_fingerprint};
use kendall_chat::client::{Client, ClientError};
use kendall_chat::password::Stretch;
use kendall_chat::protocol::{Blame, Presence, Push};

/// Users who come while one watches.
const WATCHED: usize = 200;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, users, process, fingerprint @ ..] = &arguments[..] else {
        return Err("arguments: ADDRESS USERS PROCESS [FINGERPRINT]".into());
    };
    let (address, users): (SocketAddr, usize) = (address.parse()?, users.parse()?);
    let security = match fingerprint {
        [fingerprint, ..] => Security::pinned(read_fingerprint(fingerprint)?),
        [] => Security::Plain,
    };
    let before = resident_kib(process)?;
    let begun = Instant::now();
    let mut all = Vec::new();
    for user in 0..users {
        all.push(enter(address, &security, &format!("idle{user}x")).await?);
    }
    println!("{users} users are there after {:.1} s", begun.elapsed().as_secs_f64());
    let (mean, longest) = presence(address, &security).await?;
    println!("a watcher learns of a user who comes after {mean:?} on average, {longest:?} at most");
    for client in &mut all {
        client.stay_alive().await?;
    }
    let after = resident_kib(process)?;
    let each = (after - before) as f64 / users as f64;
    println!("the server has {:.0} MB, {each:.1} KiB for each user", after as f64 * 1024.0 / 1e6);
    Ok(())
}

async fn enter(address: SocketAddr, security: &Security, name: &str) -> Result<Client, ClientError> {
    let mut client = Client::connect(address, security).await?;
    match client.register(name, "idle", Stretch::Off).await {
        Err(error) if error.blame() != Some(Blame::NameTaken) => return Err(error),
        _ => {}
    }
    client.log_in(name, "idle", Stretch::Off).await?;
    Ok(client)
}

/// The time from a user's last message of the log-in to the watcher's message, mean and longest.
async fn presence(address: SocketAddr, security: &Security) -> Result<(Duration, Duration), ClientError> {
    let mut watcher = enter(address, security, "the-watcher").await?;
    let mut comes = enter(address, security, "who-comes").await?;
    watcher.watch("who-comes").await?;
    watcher.next_push().await?;
    let (mut sum, mut longest) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..WATCHED {
        comes.log_out().await?;
        while there(&watcher.next_push().await?) {}
        // Its own part of the log-in counts, too, so this is more than the server's share.
        let begun = Instant::now();
        let (entered, push) =
            tokio::join!(comes.log_in("who-comes", "idle", Stretch::Off), watcher.next_push());
        entered?;
        assert!(there(&push?), "the user has come");
        let took = begun.elapsed();
        (sum, longest) = (sum + took, longest.max(took));
    }
    Ok((sum / WATCHED as u32, longest))
}

fn there(push: &Push) -> bool {
    matches!(push, Push::Changed { presence: Presence::There, .. })
}

fn resident_kib(process: &str) -> Result<u64, Box<dyn std::error::Error>> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
