//! `kendall chat recv`: messages from users who call.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use kendall_chat::client::Client;
use kendall_chat::peer;
use kendall_chat::protocol::Push;
use kendall_talk::{Command, Event, TalkId};
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{interval, sleep};

use crate::conversation::Running;
use crate::duration;
use crate::failure::{Failure, worded};
use crate::known::KnownPeers;
use crate::output::{json, line, note, shown};
use crate::session::{STAY_ALIVE, User, local};

/// Conversations at once; further calls are refused.
const MOST_TALKS: usize = 64;

/// Receive messages: take every call and print what callers say
#[derive(Args)]
#[command(
    long_about = "Receive messages: take every call and print what callers say, a message each: NAME: TEXT.\n\n\
    A message counts as delivered to its sender when it has arrived here, so all that have arrived are printed, also where that is more \
    than --count. A caller whose key is not the one seen before is not listened to."
)]
pub(crate) struct Receive {
    /// End after this many messages [default: go on until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// End after this time; with --count, with status 3 where fewer messages came
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,

    /// Take calls of this user alone, and refuse others
    #[arg(long, value_name = "NAME")]
    from: Option<String>,

    /// Print a JSON object a line: {"event": "ready"}, then {"event": "message", "from": …, "sent_ms": …, "text": …} and
    /// {"event": "bye", "from": …}
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
    Bye { from: &'a str },
}

/// Calls that are taken, and what comes of them.
struct Listener<'a> {
    user: &'a User,
    options: Receive,
    known: KnownPeers,
    talks: JoinSet<anyhow::Result<()>>,
    heard: mpsc::Sender<Heard>,
    stop: watch::Receiver<bool>,
}

pub(crate) async fn receive(user: &User, options: Receive) -> anyhow::Result<()> {
    let mut client = user.log_in().await?;
    client.wait_for_calls().await.map_err(worded)?;
    if options.json {
        json(&Printed::Ready)?;
    }
    let (heard, hears) = mpsc::channel(MOST_TALKS);
    let (printed, mut messages) = watch::channel(0);
    // A reader of the output that is slow must not keep connections from being served.
    let printer = tokio::spawn(print_all(hears, options.json, printed));
    let (stop, stopped) = watch::channel(false);
    let (wanted, limit) = (options.count, options.timeout);
    let known = user.profile.known_peers()?;
    let mut listener = Listener { user, options, known, talks: JoinSet::new(), heard, stop: stopped };
    let listening = async {
        let mut alive = interval(STAY_ALIVE);
        while wanted.is_none_or(|wanted| *messages.borrow() < wanted) {
            tokio::select! {
                push = client.next_push() => listener.handle(&mut client, push.map_err(worded)?).await?,
                changed = messages.changed() => if changed.is_err() { break },
                Some(ended) = listener.talks.join_next() => {
                    if let Err(error) = ended? {
                        note(&error.to_string());
                    }
                }
                _ = alive.tick() => client.stay_alive().await.map_err(worded)?,
            }
        }
        anyhow::Ok(())
    };
    let in_time = async {
        match limit {
            Some(limit) => sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        listened = listening => listened?,
        () = in_time => {}
    }
    stop.send_replace(true);
    let Listener { mut talks, heard, .. } = listener;
    drop(heard);
    while talks.join_next().await.is_some() {}
    // What has arrived meanwhile was acknowledged, so it is printed.
    let messages = printer.await??;
    match wanted {
        Some(wanted) if messages < wanted => Err(Failure::TooFew(messages, wanted).into()),
        _ => client.log_out().await.map_err(worded),
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
    /// Does what a message of the server asks for.
    async fn handle(&mut self, client: &mut Client, push: Push) -> anyhow::Result<()> {
        match push {
            Push::Incoming { call, name, talk } => self.answer(client, call, &name, TalkId(talk)).await,
            Push::SessionEnded { why } => bail!("the server ended the session: {why:?}"),
            _ => Ok(()),
        }
    }

    /// Takes a call and listens to it in a task, or refuses it. A call that fails is no reason to end.
    async fn answer(
        &mut self,
        client: &mut Client,
        call: u64,
        name: &str,
        talk: TalkId,
    ) -> anyhow::Result<()> {
        let is_other = self.options.from.as_deref().is_some_and(|from| from != name);
        if is_other || self.talks.len() >= MOST_TALKS {
            // The caller may have given up already.
            _ = client.refuse(call).await;
            return Ok(());
        }
        let (at, key) = (local(client), self.user.profile.key()?);
        let met = peer::answer(client, at, key.secret().clone(), call).await;
        let begun = match met {
            Ok(met) => Running::begin(met, talk, &mut self.known).await,
            Err(error) => Err(error.into()),
        };
        match begun {
            Ok(running) => {
                self.talks.spawn(listen(running, self.heard.clone(), self.stop.clone()));
            }
            Err(error) => note(&format!("the call of {} failed: {error}", shown(name))),
        }
        Ok(())
    }
}

/// Passes on what a peer says until the talk is over or this program is to end.
async fn listen(
    mut running: Running,
    heard: mpsc::Sender<Heard>,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let mut is_stopped = false;
    loop {
        let event = tokio::select! {
            event = running.next() => event,
            () = stopped(&mut stop), if !is_stopped => {
                is_stopped = true;
                running.ask(Command::Leave);
                continue;
            }
        };
        let Some(event) = event else { break };
        if let Ok(Event::Message { number, .. }) = event {
            running.ask(Command::Read(number));
        }
        if let Ok(event @ (Event::Message { .. } | Event::Bye)) = event {
            _ = heard.send(Heard { from: running.name.clone(), event }).await;
        }
    }
    running.end().await
}

/// Waits until this program is to end.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    _ = stop.wait_for(|stop| *stop).await;
}

/// Prints what was heard; whether it is a message.
fn print(Heard { from, event }: &Heard, is_json: bool) -> anyhow::Result<bool> {
    match event {
        Event::Message { sent_ms, text, .. } if is_json => {
            json(&Printed::Message { from, sent_ms: *sent_ms, text })?;
        }
        Event::Message { text, .. } => line(&format!("{}: {}", shown(from), shown(text)))?,
        Event::Bye if is_json => json(&Printed::Bye { from })?,
        _ => {}
    }
    Ok(matches!(event, Event::Message { .. }))
}
