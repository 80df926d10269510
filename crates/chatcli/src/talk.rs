//! `kendall chat talk`: a conversation, line by line.

use std::io::{self, Write};

use anyhow::bail;
use clap::Args;
use kendall_chat::client::Client;
use kendall_chat::peer::{self, Met};
use kendall_chat::protocol::Push;
use kendall_talk::{Command, Event, FileId, TalkId};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio::time::interval;

use crate::conversation::{Running, begin, call, path_name};
use crate::failure::worded;
use crate::output::{line, note, shown, size};
use crate::session::{STAY_ALIVE, User, local, log_out, stay};

/// Talk with a user, line by line
#[derive(Args)]
#[command(
    long_about = "Talk with a user, line by line: each line that you type is a message, and messages of the peer appear with the \
    peer's name. Nothing is drawn, so it suits pipes and screen readers. The end of the input, or /quit, ends the talk."
)]
pub(crate) struct Talk {
    /// Call this user [default: wait for a call, and ask whether to take it]
    name: Option<String>,
}

/// Lines that wait to be sent; then no more are read.
const MOST_LINES: usize = 100;

type Input = Lines<BufReader<Stdin>>;

pub(crate) async fn talk(user: &User, options: Talk) -> anyhow::Result<()> {
    let mut client = user.log_in().await?;
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    let (met, talk) = match &options.name {
        Some(name) => call(user, &mut client, name).await?,
        None => match wait(user, &mut client, &mut input).await? {
            Some(met) => met,
            None => {
                log_out(client).await;
                return Ok(());
            }
        },
    };
    let running = begin(user, met, talk).await?;
    let (name, path) = (shown(&running.name), path_name(running.path));
    note(&format!("talking with {name} ({path}); /quit ends the talk"));
    let staying = async {
        // Other callers learn at once that no call is taken now.
        _ = client.stop_waiting().await;
        stay(&mut client).await
    };
    tokio::select! {
        held = hold(running, &mut input) => held?,
        never = staying => match never {},
    }
    log_out(client).await;
    Ok(())
}

/// Waits for a call that the user takes; `None` where the input ends.
async fn wait(user: &User, client: &mut Client, input: &mut Input) -> anyhow::Result<Option<(Met, TalkId)>> {
    client.wait_for_calls().await.map_err(worded)?;
    note("waiting for calls");
    let mut alive = interval(STAY_ALIVE);
    let mut ringing: Option<(u64, TalkId)> = None;
    loop {
        tokio::select! {
            push = client.next_push() => match push.map_err(worded)? {
                Push::Incoming { call, name, talk } if ringing.is_none() => {
                    ringing = Some((call, TalkId(talk)));
                    eprint!("kendall: {} calls. Take the call? [y/n] ", shown(&name));
                    _ = io::stderr().flush();
                }
                Push::CallEnded { call, .. } if ringing.is_some_and(|(rings, _)| rings == call) => {
                    ringing = None;
                    note("the caller gave up");
                }
                Push::SessionEnded { why } => bail!("the server ended the session: {why:?}"),
                _ => {}
            },
            answer = input.next_line() => {
                let Some(answer) = answer? else { return Ok(None) };
                let Some((call, talk)) = ringing.take() else { continue };
                if answer.trim().eq_ignore_ascii_case("y") {
                    let (at, key) = (local(client), user.profile.key()?);
                    match peer::answer(client, at, key.secret().clone(), call).await {
                        Ok(met) => return Ok(Some((met, talk))),
                        Err(error) => note(&error.to_string()),
                    }
                } else {
                    _ = client.refuse(call).await;
                }
            }
            _ = alive.tick() => client.stay_alive().await.map_err(worded)?,
        }
    }
}

/// Passes lines both ways until one side ends the talk.
async fn hold(mut running: Running, input: &mut Input) -> anyhow::Result<()> {
    let mut is_leaving = false;
    loop {
        tokio::select! {
            text = input.next_line(), if !is_leaving && running.waiting() < MOST_LINES => match text?.as_deref() {
                None | Some("/quit") => {
                    is_leaving = true;
                    running.ask(Command::Leave);
                }
                Some("") => {}
                Some(text) => running.say(text.to_owned()),
            },
            event = running.next() => match event {
                Some(Ok(Event::Message { number, text, .. })) => {
                    line(&format!("{}: {}", shown(&running.name), shown(&text)))?;
                    running.ask(Command::Read(number));
                }
                Some(Ok(Event::Offered { file, name, size: bytes })) => {
                    running.ask(Command::Cancel(FileId::Peer(file)));
                    let offer = format!("{} offers {} ({})", shown(&running.name), shown(&name), size(bytes));
                    note(&format!("{offer}; it is refused: `kendall chat open` and `recv --files` take files"));
                }
                Some(Ok(Event::Bye)) => note(&format!("{} has ended the talk", shown(&running.name))),
                Some(Ok(_)) => {}
                Some(Err(error)) => note(&error.to_string()),
                None => return running.end().await,
            },
        }
    }
}
