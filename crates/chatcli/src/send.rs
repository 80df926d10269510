//! `kendall chat send`: messages and files to a user.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use kendall_chat::client::Client;
use kendall_talk::{Command, Event, FileId, MOST_FILES, Outcome, Upload};
use serde::Serialize;
use tokio::time::{Instant, timeout, timeout_at};

use crate::conversation::{Running, begin, call, path_name};
use crate::duration;
use crate::failure::Failure;
use crate::output::{json, shown, size};
use crate::session::{User, log_out, stay};

/// The most that is read from standard input.
const MOST_INPUT: u64 = 16 << 20;

/// Messages that are sent before the first of them is acknowledged; a conversation keeps 1,024.
const MOST_ON_THE_WAY: u64 = 512;

/// Send a message or files to a user who waits for calls: kendall chat send bob 'lunch?'
#[derive(Args)]
#[command(
    long_about = "Send a message or files to a user who waits for calls (kendall chat open, recv, talk).\n\n\
    It ends when the user's program has acknowledged the message, and has each file whole, with status 0. They go to the user's machine \
    directly, encrypted, or through the server's relay where the two networks allow no direct way."
)]
pub(crate) struct Send {
    /// The user
    name: String,

    /// The message; without one, or with -, read it from standard input unless there is a file
    text: Option<String>,

    /// Send this file, after the message if there is one; may be given several times
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Send each line of standard input as its own message
    #[arg(long, conflicts_with = "text")]
    lines: bool,

    /// Give up if the user has not taken the call within this time, or if nothing has arrived for this long
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    timeout: Duration,

    /// Print a JSON object when all has arrived: {"event": "delivered", "to": …, "messages": …, "files": …, "path": …}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Delivered {
    event: &'static str,
    to: String,
    messages: u64,
    files: u64,
    path: &'static str,
}

pub(crate) async fn send(user: &User, options: Send) -> anyhow::Result<()> {
    let files: Vec<Upload> = options.files.iter().map(|path| Upload::open(path)).collect::<Result<_, _>>()?;
    let messages = messages(&options)?;
    let mut client = user.log_in().await?;
    let delivered = deliver(user, &mut client, &options, messages, files).await?;
    if options.json {
        json(&delivered)?;
    }
    log_out(client).await;
    Ok(())
}

/// What is on its way to a user.
struct Delivery {
    running: Running,
    /// Messages that are yet to be sent.
    texts: std::vec::IntoIter<String>,
    messages: u64,
    sent: u64,
    arrived: u64,
    /// Files that are yet to be offered, and those that are.
    uploads: std::vec::IntoIter<Upload>,
    offered: Vec<Upload>,
    whole: u64,
    has_terminal: bool,
}

/// Calls a user, and sends messages and files.
async fn deliver(
    user: &User,
    client: &mut Client,
    options: &Send,
    messages: Vec<String>,
    files: Vec<Upload>,
) -> anyhow::Result<Delivered> {
    let unanswered = || Failure::Unanswered(options.name.clone());
    let calling = timeout(options.timeout, call(user, client, &options.name)).await;
    let (met, talk) = calling.map_err(|_| unanswered())??;
    let delivery = Delivery {
        running: begin(user, met, talk).await?,
        messages: messages.len() as u64,
        texts: messages.into_iter(),
        sent: 0,
        arrived: 0,
        uploads: files.into_iter(),
        offered: Vec::new(),
        whole: 0,
        has_terminal: std::io::stderr().is_terminal(),
    };
    tokio::select! {
        delivered = delivery.complete(options.timeout, unanswered) => delivered,
        never = stay(client) => match never {},
    }
}

impl Delivery {
    /// Sends all, and says goodbye once it has arrived.
    async fn complete(
        mut self,
        limit: Duration,
        unanswered: impl Fn() -> Failure,
    ) -> anyhow::Result<Delivered> {
        let mut until = Instant::now() + limit;
        while !self.is_done() {
            self.feed();
            let happened = timeout_at(until, self.running.next()).await.map_err(|_| unanswered())?;
            let Some(event) = happened else {
                let failed = self.ended();
                self.running.end().await?;
                return Err(failed);
            };
            if self.handle(event?)? {
                until = Instant::now() + limit;
            }
        }
        let Self { mut running, arrived, whole, .. } = self;
        running.leave();
        let (to, path) = (running.name.clone(), path_name(running.path));
        // All has arrived; how the goodbye goes changes nothing.
        _ = running.end().await;
        Ok(Delivered { event: "delivered", to, messages: arrived, files: whole, path })
    }

    fn is_done(&self) -> bool {
        self.arrived == self.messages && self.whole == self.offered.len() as u64 && self.uploads.len() == 0
    }

    /// Hands over as much as may be on its way.
    fn feed(&mut self) {
        while self.sent - self.arrived < MOST_ON_THE_WAY
            && let Some(text) = self.texts.next()
        {
            self.running.say(text);
            self.sent += 1;
        }
        while self.offered.len() as u64 - self.whole < MOST_FILES as u64
            && let Some(upload) = self.uploads.next()
        {
            self.running.ask(Command::Offer(upload.clone()));
            self.offered.push(upload);
        }
    }

    /// Takes what happens; whether something has arrived.
    fn handle(&mut self, event: Event) -> anyhow::Result<bool> {
        let name = &self.running.name;
        match event {
            Event::Delivered(through) => self.arrived = through,
            Event::Progress { file: FileId::Own(number), bytes } => self.show(number, bytes),
            Event::Settled { file: FileId::Own(number), outcome } => {
                let file = self.file(number);
                match outcome {
                    Outcome::Whole => self.whole += 1,
                    Outcome::Refused => return Err(Failure::FileRefused { name: shown(name), file }.into()),
                    _ => bail!(
                        "{} cannot keep the file {file}: no space, or it cannot be written",
                        shown(name)
                    ),
                }
                self.show(number, self.offered[number as usize - 1].size());
            }
            Event::FileFailed { file: FileId::Own(number), why } => {
                bail!("cannot send the file {}: {why}", self.file(number))
            }
            Event::Offered { file, .. } => {
                self.running.ask(Command::Cancel(FileId::Peer(file)));
                return Ok(false);
            }
            Event::Bye => return Err(self.ended()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The name of a file by its number in the talk, which is its place.
    fn file(&self, number: u64) -> String {
        shown(self.offered[number as usize - 1].name())
    }

    fn ended(&self) -> anyhow::Error {
        let (name, messages, files) =
            (&self.running.name, self.messages, self.offered.len() + self.uploads.len());
        let of_files = if files == 0 { String::new() } else { format!(", {} of {files} files", self.whole) };
        anyhow!("{} ended the talk: {} of {messages} messages{of_files} arrived", shown(name), self.arrived)
    }

    /// Shows how far a file is.
    fn show(&self, number: u64, bytes: u64) {
        let total = self.offered[number as usize - 1].size();
        if self.has_terminal {
            let share = if total == 0 { 100 } else { u128::from(bytes) * 100 / u128::from(total) };
            let end = if bytes == total { "\n" } else { "" };
            eprint!("\r\u{1b}[K{}: {share} % of {}{end}", self.file(number), size(total));
        }
    }
}

/// What to send.
fn messages(options: &Send) -> anyhow::Result<Vec<String>> {
    if options.text.is_none() && !options.lines && !options.files.is_empty() {
        return Ok(Vec::new());
    }
    let text = match &options.text {
        Some(text) if text != "-" => text.clone(),
        _ => {
            let mut text = String::new();
            let read = std::io::stdin().lock().take(MOST_INPUT + 1).read_to_string(&mut text);
            let read = read.context("cannot read the message from standard input as UTF-8")?;
            ensure!(
                read as u64 <= MOST_INPUT,
                "standard input has more than {MOST_INPUT} bytes; send it as a file"
            );
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
