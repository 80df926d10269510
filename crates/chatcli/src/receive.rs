//! `kendall chat recv`: messages and files from users who call.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use kendall_chat::client::Client;
use kendall_chat::peer::{self, Met, PeerAddresses, PeerError};
use kendall_chat::protocol::Push;
use kendall_talk::{Command, Event, FileId, TalkId};
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{interval, sleep};

use crate::conversation::{Running, part};
use crate::duration;
use crate::failure::{Failure, worded};
use crate::interrupt::{Interrupt, Interrupts, interrupted};
use crate::known::KnownPeers;
use crate::output::{json, line, note, shown, size};
use crate::profile::enforced;
use crate::session::{STAY_ALIVE, User, local, log_out};

/// Conversations at once; further calls are refused.
const MOST_TALKS: usize = 64;

/// Receive messages and files: take every call and print the messages
#[derive(Args)]
#[command(
    long_about = "Receive messages and files: take every call and print each message as NAME: TEXT.\n\n\
    With --files DIR it takes files, too, and prints the path of each as NAME: file PATH. It never replaces an existing file.\n\n\
    A message counts as delivered once it has arrived here, so all that have arrived are printed, even if they are more than \
    --count. Calls from a user with another key than before are ended."
)]
pub(crate) struct Receive {
    /// End after this many messages and files [default: continue until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// End after this time; with --count, with status 3 if fewer messages arrived
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,

    /// Take calls from this user only, and reject others
    #[arg(long, value_name = "NAME", value_parser = enforced)]
    from: Option<String>,

    /// Take files, too, and keep them in this folder [default: reject them]
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,

    /// Reject files beyond this many bytes in total
    #[arg(long, value_name = "BYTES", value_parser = kendall_linkmodel::bytes, default_value = "1GB", requires = "files")]
    files_limit: u64,

    /// Print a JSON object a line: {"event": "ready"}, then {"event": "message", "from": …, "sent_ms": …, "text": …},
    /// {"event": "file", "from": …, "path": …} and {"event": "bye", "from": …}
    #[arg(long)]
    json: bool,
}

/// What a conversation brings.
struct Heard {
    from: String,
    event: Event,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Printed<'a> {
    Ready,
    Message { from: &'a str, sent_ms: u64, text: &'a str },
    File { from: &'a str, path: Cow<'a, str> },
    Bye { from: &'a str },
}

/// Where files are kept, and how many bytes of them may still be taken in this run.
struct Shelf {
    folder: PathBuf,
    room: AtomicU64,
}

/// A call that was taken, and what came of it.
struct Answered {
    call: u64,
    name: String,
    talk: TalkId,
    met: Result<Met, PeerError>,
}

/// Calls that are taken, and what comes of them.
struct Listener<'a> {
    user: &'a User,
    options: Receive,
    known: KnownPeers,
    shelf: Option<Arc<Shelf>>,
    /// Callers that are about to be met, and where the addresses go at which they are seen.
    meetings: JoinSet<Answered>,
    joining: HashMap<u64, PeerAddresses>,
    talks: JoinSet<anyhow::Result<()>>,
    heard: mpsc::Sender<Heard>,
    stop: watch::Receiver<bool>,
}

pub(crate) async fn receive(user: &User, options: Receive) -> anyhow::Result<ExitCode> {
    let mut interrupts = Interrupts::default();
    let Some(mut client) = interrupts.during(wait(user, options.json)).await? else {
        return Ok(interrupted());
    };
    let (heard, hears) = mpsc::channel(MOST_TALKS);
    let (printed, messages) = watch::channel(0);
    // A reader of the output that is slow must not keep connections from being served.
    let printer = tokio::spawn(print_all(hears, options.json, printed));
    let (stop, stopped) = watch::channel(false);
    let (wanted, limit) = (options.count, options.timeout);
    let known = user.profile.known_peers()?;
    let shelf = options.files.as_deref().map(|folder| open_shelf(folder, options.files_limit)).transpose()?;
    let mut listener = Listener {
        user,
        options,
        known,
        shelf,
        meetings: JoinSet::new(),
        joining: HashMap::new(),
        talks: JoinSet::new(),
        heard,
        stop: stopped,
    };
    let ended = tokio::select! {
        listened = listener.take_calls(&mut client, messages) => listened.map(|()| None),
        () = passed(limit) => Ok(None),
        interrupt = interrupts.next() => Ok(Some(interrupt?)),
    };
    // What has arrived was acknowledged, so it is printed, however listening has ended.
    stop.send_replace(true);
    let printed = async {
        let Listener { mut talks, heard, .. } = listener;
        drop(heard);
        while talks.join_next().await.is_some() {}
        printer.await?
    };
    let Some(messages) = interrupts.during(printed).await? else { return Ok(interrupted()) };
    log_out(client).await;
    match (ended?, wanted) {
        // Without a count, it runs until it is stopped, so this is its orderly end.
        (Some(Interrupt::Terminate), None) => Ok(ExitCode::SUCCESS),
        (Some(_), _) => Ok(interrupted()),
        (None, Some(wanted)) if messages < wanted => Err(Failure::TooFew(messages, wanted).into()),
        (None, _) => Ok(ExitCode::SUCCESS),
    }
}

/// Logs in and waits for calls.
async fn wait(user: &User, is_json: bool) -> anyhow::Result<Client> {
    let mut client = user.log_in().await?;
    client.wait_for_calls().await.map_err(worded)?;
    if is_json {
        json(&Printed::Ready)?;
    }
    Ok(client)
}

/// Waits until a time has passed, if there is one.
async fn passed(limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Prints what is heard until nothing more can be; how many messages it was.
async fn print_all(
    mut hears: mpsc::Receiver<Heard>,
    is_json: bool,
    printed: watch::Sender<u64>,
) -> anyhow::Result<u64> {
    while let Some(heard) = hears.recv().await {
        let is_message = spawn_blocking(move || print(&heard, is_json)).await??;
        printed.send_modify(|count| *count += u64::from(is_message));
    }
    Ok(*printed.borrow())
}

impl Listener<'_> {
    /// Takes calls until enough messages are printed.
    async fn take_calls(
        &mut self,
        client: &mut Client,
        mut messages: watch::Receiver<u64>,
    ) -> anyhow::Result<()> {
        let mut alive = interval(STAY_ALIVE);
        while self.options.count.is_none_or(|wanted| *messages.borrow() < wanted) {
            tokio::select! {
                push = client.next_push() => self.handle(client, push.map_err(worded)?).await?,
                changed = messages.changed() => if changed.is_err() { break },
                Some(answered) = self.meetings.join_next() => self.begin(answered?),
                Some(ended) = self.talks.join_next() => {
                    if let Err(error) = ended? {
                        note(&error.to_string());
                    }
                }
                _ = alive.tick() => client.stay_alive().await.map_err(worded)?,
            }
        }
        Ok(())
    }

    /// Does what a message of the server asks for.
    async fn handle(&mut self, client: &mut Client, push: Push) -> anyhow::Result<()> {
        match push {
            Push::Incoming { call, name, talk } => self.answer(client, call, name, TalkId(talk)).await,
            Push::PeerSeen { call, address } => {
                if let Some(addresses) = self.joining.get(&call) {
                    addresses.learn(address);
                }
                Ok(())
            }
            Push::SessionEnded { why } => bail!("the server ended the session: {why:?}"),
            _ => Ok(()),
        }
    }

    /// Takes a call and meets the caller in a task, or refuses it. A call that fails is no reason to end.
    async fn answer(
        &mut self,
        client: &mut Client,
        call: u64,
        name: String,
        talk: TalkId,
    ) -> anyhow::Result<()> {
        let is_other = self.options.from.as_deref().is_some_and(|from| from != name);
        if is_other || self.talks.len() + self.meetings.len() >= MOST_TALKS {
            // The caller may have given up already.
            _ = client.refuse(call).await;
            return Ok(());
        }
        let (at, key) = (local(client), self.user.profile.key()?);
        match peer::accept(client, at, key.secret().clone(), call).await {
            Ok(joining) => {
                self.joining.insert(call, joining.addresses());
                self.meetings.spawn(async move { Answered { call, name, talk, met: joining.meet().await } });
            }
            Err(error) => failed(&name, &error.into()),
        }
        Ok(())
    }

    /// Listens to a caller that was met, in a task.
    fn begin(&mut self, Answered { call, name, talk, met }: Answered) {
        self.joining.remove(&call);
        let met = match met {
            Ok(met) => met,
            Err(error) => return failed(&name, &error.into()),
        };
        match Running::begin(met, talk, &mut self.known) {
            Ok(running) => {
                let listening = listen(running, self.heard.clone(), self.shelf.clone(), self.stop.clone());
                self.talks.spawn(listening);
            }
            Err((error, stream)) => {
                failed(&name, &error);
                // A caller that does not take its leave must not keep other calls waiting.
                self.talks.spawn(async move {
                    part(*stream).await;
                    Ok(())
                });
            }
        }
    }
}

fn failed(name: &str, error: &anyhow::Error) {
    note(&format!("the call of {} failed: {error}", shown(name)));
}

/// Makes the folder for files, so that one that cannot be used is an error before the first comes.
fn open_shelf(folder: &Path, limit: u64) -> anyhow::Result<Arc<Shelf>> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let folder = folder.canonicalize().with_context(|| format!("cannot find {}", folder.display()))?;
    Ok(Arc::new(Shelf { folder, room: AtomicU64::new(limit) }))
}

/// Passes on what a peer says until the talk is over or this program is to end.
async fn listen(
    mut running: Running,
    heard: mpsc::Sender<Heard>,
    shelf: Option<Arc<Shelf>>,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let mut is_stopped = false;
    let mut files = Files { shelf, open: HashMap::new() };
    loop {
        let event = tokio::select! {
            event = running.next() => event,
            () = stopped(&mut stop), if !is_stopped => {
                is_stopped = true;
                running.leave();
                continue;
            }
        };
        let Some(event) = event else { break };
        match event {
            Ok(Event::Message { number, .. }) => running.ask(Command::Read(number)),
            Ok(Event::Offered { file, ref name, size }) => {
                let answer = files.answer(&running.name, file, name, size);
                running.ask(answer);
            }
            Ok(Event::FileFailed { file: FileId::Peer(file), ref why }) => {
                files.lost(&running.name, file, why)
            }
            Ok(Event::Settled { file: FileId::Peer(file), .. }) => {
                files.lost(&running.name, file, "its sender took it back");
            }
            Ok(Event::Kept { file, .. }) => _ = files.open.remove(&file),
            _ => {}
        }
        if let Ok(event @ (Event::Message { .. } | Event::Kept { .. } | Event::Bye)) = event {
            _ = heard.send(Heard { from: running.name.clone(), event }).await;
        }
    }
    running.end().await
}

/// The files of a talk that are on their way.
struct Files {
    shelf: Option<Arc<Shelf>>,
    open: HashMap<u64, (String, u64)>,
}

impl Files {
    /// Takes a file, where files are taken and there is room.
    fn answer(&mut self, from: &str, file: u64, name: &str, bytes: u64) -> Command {
        let what = || format!("the file {} of {} ({})", shown(name), shown(from), size(bytes));
        let Some(shelf) = &self.shelf else {
            note(&format!("{} is refused: --files DIR takes files", what()));
            return Command::Cancel(FileId::Peer(file));
        };
        let taken = shelf.room.fetch_update(Relaxed, Relaxed, |room| room.checked_sub(bytes));
        if let Err(room) = taken {
            note(&format!("{} is refused: --files-limit leaves {}", what(), size(room)));
            return Command::Cancel(FileId::Peer(file));
        }
        self.open.insert(file, (name.to_owned(), bytes));
        Command::Take { file, name: name.to_owned(), folder: shelf.folder.clone() }
    }

    /// A file does not come.
    fn lost(&mut self, from: &str, file: u64, why: &str) {
        let Some((name, bytes)) = self.open.remove(&file) else { return };
        if let Some(shelf) = &self.shelf {
            shelf.room.fetch_add(bytes, Relaxed);
        }
        note(&format!("the file {} of {} is not kept: {why}", shown(&name), shown(from)));
    }
}

/// Waits until this program is to end.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    _ = stop.wait_for(|stop| *stop).await;
}

/// Prints what was heard; whether it is a message or a file.
fn print(Heard { from, event }: &Heard, is_json: bool) -> anyhow::Result<bool> {
    match event {
        Event::Message { sent_ms, text, .. } if is_json => {
            json(&Printed::Message { from, sent_ms: *sent_ms, text })?;
        }
        Event::Message { text, .. } => line(&format!("{}: {}", shown(from), shown(text)))?,
        Event::Kept { path, .. } if is_json => json(&Printed::File { from, path: path.to_string_lossy() })?,
        Event::Kept { path, .. } => {
            line(&format!("{}: file {}", shown(from), shown(&path.to_string_lossy())))?
        }
        Event::Bye if is_json => json(&Printed::Bye { from })?,
        _ => {}
    }
    Ok(matches!(event, Event::Message { .. } | Event::Kept { .. }))
}
