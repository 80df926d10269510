//! `kendall chat send`: messages to a user.

use std::io::Read;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use kendall_chat::client::Client;
use kendall_chat::peer;
use kendall_talk::{Command, Event};
use serde::Serialize;
use tokio::time::timeout;

use crate::conversation::{Running, new_talk, path_name};
use crate::duration;
use crate::failure::{Failure, worded};
use crate::output::json;
use crate::session::{User, local};

/// The most that is read from standard input.
const MOST_INPUT: u64 = 16 << 20;

/// Messages that are sent before the first of them is acknowledged; a conversation keeps 1,024.
const MOST_ON_THE_WAY: u64 = 512;

/// Send a message to a user who waits for calls: kendall chat send bob 'lunch?'
#[derive(Args)]
#[command(
    long_about = "Send a message to a user who waits for calls (kendall chat recv, kendall chat talk).\n\n\
    It ends when the user's program has acknowledged the message, with status 0. The message goes to the user's machine directly, \
    encrypted, or through the server's relay where the two networks allow no direct way."
)]
pub(crate) struct Send {
    /// The user
    name: String,

    /// The message; - or nothing reads it from standard input
    text: Option<String>,

    /// Send each line of standard input as a message of its own
    #[arg(long, conflicts_with = "text")]
    lines: bool,

    /// Give up where the user has not taken the call and acknowledged the messages within this time
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    timeout: Duration,

    /// Print a JSON object when the messages have arrived: {"event": "delivered", "to": …, "messages": …, "path": …}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Delivered<'a> {
    event: &'static str,
    to: &'a str,
    messages: u64,
    path: &'static str,
}

pub(crate) async fn send(user: &User, options: Send) -> anyhow::Result<()> {
    let messages = messages(&options)?;
    let mut client = user.log_in().await?;
    let sending = timeout(options.timeout, deliver(user, &mut client, &options.name, messages));
    let Ok(delivered) = sending.await else { return Err(Failure::Unanswered(options.name).into()) };
    let (to, messages, path) = delivered?;
    if options.json {
        json(&Delivered { event: "delivered", to: &to, messages, path })?;
    }
    client.log_out().await.map_err(worded)
}

/// Calls a user and sends messages; the user's name as the server has it, how many arrived, and which way.
async fn deliver(
    user: &User,
    client: &mut Client,
    name: &str,
    messages: Vec<String>,
) -> anyhow::Result<(String, u64, &'static str)> {
    let (talk, key) = (new_talk()?, user.profile.key()?);
    let at = local(client);
    let met = peer::call(client, at, key.secret().clone(), name, talk, user.transport).await;
    let met = met.map_err(|error| Failure::of_call(name, error))?;
    let mut running = Running::begin(met, talk, &mut user.profile.known_peers()?).await?;
    let last = messages.len() as u64;
    let (mut sent, mut arrived) = (0, 0);
    let mut waiting = messages.into_iter();
    while arrived < last {
        while sent - arrived < MOST_ON_THE_WAY
            && let Some(text) = waiting.next()
        {
            running.say(text);
            sent += 1;
        }
        match running.next().await {
            Some(Ok(Event::Delivered(through))) => arrived = through,
            Some(Ok(Event::Bye)) => bail!("{name} ended the talk: {arrived} of {last} messages arrived"),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error.into()),
            None => {
                running.end().await?;
                bail!("{name} ended the talk: {arrived} of {last} messages arrived");
            }
        }
    }
    running.ask(Command::Leave);
    let (to, path) = (running.name.clone(), path_name(running.path));
    // The messages have arrived; how the goodbye goes changes nothing.
    _ = running.end().await;
    Ok((to, arrived, path))
}

/// What to send.
fn messages(options: &Send) -> anyhow::Result<Vec<String>> {
    let text = match &options.text {
        Some(text) if text != "-" => text.clone(),
        _ => {
            let mut text = String::new();
            let read = std::io::stdin().lock().take(MOST_INPUT + 1).read_to_string(&mut text);
            let read = read.context("cannot read the message from standard input as UTF-8")?;
            ensure!(read as u64 <= MOST_INPUT, "standard input has more than {MOST_INPUT} bytes");
            text
        }
    };
    let messages: Vec<String> = if options.lines {
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    } else {
        vec![text.trim_end_matches('\n').to_owned()]
    };
    ensure!(messages.iter().any(|text| !text.is_empty()), "there is no message to send");
    Ok(messages)
}
