//! `kendall curve shell`: a shell or a command at a server.

use std::env;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use kendall_curve::KeyDirectory;
use kendall_remote::shell::protocol::{Claim, SessionId, Window};
use kendall_remote::shell::{
    ClientSettings, Connect, ListedSession, LocalEvent, LocalStreams, Outcome, RawMode, Start, end, list,
    open_again, run, window,
};
use kendall_remote::{Host, RemoteError, dial};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::host::ClientOptions;
use crate::run::run_on_one_thread;
use kendall_stdio::{note, out};

/// The status where it is not the command's, as ssh has it.
const FAILED: u8 = 255;

/// After this time without an answer the user sees a message.
const SILENCE: Duration = Duration::from_secs(5);

/// Run a shell or a command at a server: kendall curve shell work
#[derive(Args)]
#[command(
    long_about = "Run a shell or a command at a server (kendall curve serve-shell).\n\n\
        Without a command: a login shell on a terminal. With one: the user's shell runs it, on pipes, so that standard output and \
        standard error stay apart and bytes are unchanged; -t gives it a terminal. The exit status is the command's, 128 and the number \
        of the signal that ended it, or 255 where the connection or the server failed.\n\n\
        A session continues while its client changes its address, sleeps or is killed. The client reconnects automatically; after it has \
        ended, --list shows the session and --attach continues it.",
    after_long_help = "Escapes, at the beginning of a line on a terminal:\n  ~.  end the session\n  ~d  detach: the session continues\n  \
        ~?  list the escapes\n  ~~  a tilde\n\n\
        Examples:\n  kendall curve shell work\n  kendall curve shell work uptime\n  kendall curve shell work -- tar c project | tar x\n  \
        kendall curve shell -t work -- htop\n  kendall curve shell --list work\n  kendall curve shell --attach 3 work\n\n\
        HOST is a table of the hosts file:\n  [work]\n  name = \"server.example\"\n  \
        key = \"64 hexadecimal digits, from kendall curve show\"\n  address = \"192.0.2.7:10000\""
)]
pub(crate) struct Shell {
    /// The server: a table of the hosts file, or the name given with --server
    host: String,

    /// The command, for the user's shell; its words are joined by spaces
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<std::ffi::OsString>,

    /// Give the command a terminal, also where standard input is not a terminal
    #[arg(long, short)]
    terminal: bool,

    /// Continue this session, by its number in --list
    #[arg(long, value_name = "ID", conflicts_with_all = ["command", "list", "end"])]
    attach: Option<u32>,

    /// With --attach: detach a client that has the session
    #[arg(long, requires = "attach")]
    take_over: bool,

    /// List your sessions
    #[arg(long, conflicts_with_all = ["command", "end"])]
    list: bool,

    /// End this session
    #[arg(long, value_name = "ID", conflicts_with = "command")]
    end: Option<u32>,

    /// Send this variable, which the server has to accept, besides LANG and LC_*; may be repeated
    #[arg(long, value_name = "NAME")]
    send_env: Vec<String>,

    #[command(flatten)]
    client: ClientOptions,
}

pub(crate) fn shell(options: Shell) -> anyhow::Result<ExitCode> {
    let (host, keys) = options.client.resolve(&options.host)?;
    run_on_one_thread(async move {
        let ended = if options.list {
            print_list(&options, &host, &keys).await
        } else if let Some(session) = options.end {
            end_session(&options, &host, &keys, SessionId(session)).await
        } else {
            session(&options, &host, &keys).await
        };
        ended.or_else(|error| {
            note(&format!("kendall: {error:#}"));
            Ok(ExitCode::from(FAILED))
        })
    })
}

fn no_answer(host: &Host, keys: &KeyDirectory) -> String {
    let Host { name, key, address, .. } = host.clone();
    let client = format!("{:?}", keys.public_key());
    RemoteError::NoAnswer { address, client, server: format!("{key:?}"), name }.to_string()
}

async fn print_list(options: &Shell, host: &Host, keys: &KeyDirectory) -> anyhow::Result<ExitCode> {
    let dialled = dial(host, keys).await?;
    let within = options.client.timeout;
    let sessions = list((dialled.endpoint, dialled.stream), within, &no_answer(host, keys)).await?;
    if sessions.is_empty() {
        note(&format!("kendall: you have no sessions at {}", options.host));
    }
    let mut text = String::new();
    for ListedSession { session, attached, terminal, age, idle, command } in sessions {
        let state = if attached { "attached" } else { "detached" };
        let kind = if terminal { "terminal" } else { "pipes" };
        let command = if command.is_empty() { "login shell" } else { &command };
        let (age, idle) = (age.as_secs(), idle.as_secs());
        text +=
            &format!("{:>4}  {state}  {kind:<8}  {age:>7} s old  {idle:>7} s idle  {command}\n", session.0);
    }
    out(&text)?;
    Ok(ExitCode::SUCCESS)
}

async fn end_session(
    options: &Shell,
    host: &Host,
    keys: &KeyDirectory,
    session: SessionId,
) -> anyhow::Result<ExitCode> {
    let dialled = dial(host, keys).await?;
    let within = options.client.timeout;
    end((dialled.endpoint, dialled.stream), session, within, &no_answer(host, keys)).await?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a session until it ends or is left.
async fn session(options: &Shell, host: &Host, keys: &KeyDirectory) -> anyhow::Result<ExitCode> {
    let has_keyboard = io::stdin().is_terminal();
    let wants_terminal =
        options.attach.is_some() || options.terminal || (options.command.is_empty() && has_keyboard);
    let is_raw = wants_terminal && has_keyboard;
    let settings = ClientSettings {
        host: options.host.clone(),
        no_answer: no_answer(host, keys),
        answer_within: options.client.timeout,
        silence: SILENCE,
        has_escapes: is_raw,
        is_raw,
    };
    let (host, keys) = (host.clone(), keys.clone());
    let connect: Connect = Box::new(move || {
        let (host, keys) = (host.clone(), keys.clone());
        Box::pin(async move {
            let dialled = dial(&host, &keys).await?;
            Ok((dialled.endpoint, dialled.stream))
        })
    });
    let raw = is_raw.then(|| RawMode::enter(io::stdin())).transpose().context("cannot use the terminal")?;
    let raw = raw.map(Arc::new);
    let events = local_events(raw.clone())?;
    let start = start(options, wants_terminal);
    let outcome = run(settings, connect, start, streams(is_raw), events.0).await;
    events.1.abort();
    _ = events.1.await;
    // The terminal is as it was before anything is reported on it.
    drop(raw);
    Ok(report(outcome?, &options.host))
}

fn start(options: &Shell, wants_terminal: bool) -> Start {
    let window = if io::stdin().is_terminal() { window(io::stdin()) } else { Window::default() };
    if let Some(session) = options.attach {
        let claim = if options.take_over { Claim::TakeOver } else { Claim::IfFree };
        return Start::Attach { session: SessionId(session), window, claim };
    }
    let kind = || env::var_os("TERM").unwrap_or_else(|| "dumb".into()).into_vec();
    let words: Vec<&[u8]> = options.command.iter().map(|word| word.as_bytes()).collect();
    let is_sent = |name: &[u8]| {
        name == b"LANG"
            || name.starts_with(b"LC_")
            || options.send_env.iter().any(|sent| sent.as_bytes() == name)
    };
    let environment = env::vars_os()
        .map(|(name, value)| (name.into_vec(), value.into_vec()))
        .filter(|(name, _)| is_sent(name))
        .collect();
    Start::Open {
        terminal: wants_terminal.then(|| (kind(), window)),
        command: (!words.is_empty()).then(|| words.join(&b' ')),
        environment,
    }
}

/// The standard streams. A terminal is read and written without threads, so that a key needs no detour.
fn streams(is_raw: bool) -> LocalStreams {
    let input = || open_again(0).map(|(reader, _)| reader);
    let output = || open_again(1).map(|(_, writer)| writer);
    LocalStreams {
        input: match input() {
            Ok(terminal) if is_raw => Box::new(terminal),
            _ => Box::new(tokio::io::stdin()),
        },
        output: match output() {
            Ok(terminal) if is_raw && io::stdout().is_terminal() => Box::new(terminal),
            _ => Box::new(tokio::io::stdout()),
        },
        errors: Box::new(tokio::io::stderr()),
    }
}

/// Changes of the window, and signals.
fn local_events(
    raw: Option<Arc<RawMode>>,
) -> anyhow::Result<(mpsc::Receiver<LocalEvent>, tokio::task::JoinHandle<()>)> {
    let (sender, receiver) = mpsc::channel(8);
    let mut resized = signal(SignalKind::window_change())?;
    let mut continued = signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut quit = signal(SignalKind::quit())?;
    let task = tokio::spawn(async move {
        loop {
            let event = tokio::select! {
                _ = resized.recv() => LocalEvent::Resized(window(io::stdin())),
                _ = continued.recv() => {
                    if let Some(raw) = &raw {
                        _ = raw.enter_again();
                    }
                    LocalEvent::Resized(window(io::stdin()))
                }
                _ = interrupt.recv() => LocalEvent::Signal(2),
                _ = terminate.recv() => LocalEvent::Signal(15),
                _ = hang_up.recv() => LocalEvent::Signal(1),
                _ = quit.recv() => LocalEvent::Signal(3),
            };
            if sender.send(event).await.is_err() {
                return;
            }
        }
    });
    Ok((receiver, task))
}

/// Reports how a session ended, and gives the exit status for it.
fn report(outcome: Outcome, host: &str) -> ExitCode {
    let attach = |session: SessionId| format!("go on with kendall curve shell --attach {session} {host}");
    match outcome {
        Outcome::Exited(exit) => return ExitCode::from(exit.code()),
        Outcome::Detached(session) => {
            // The cursor is behind what the program wrote.
            note(&format!("\nkendall: detached from session {session}; {}", attach(session)));
            return ExitCode::SUCCESS;
        }
        Outcome::TakenOver(session) => {
            note(&format!(
                "kendall: another client has taken over session {session}; {} --take-over",
                attach(session)
            ));
        }
        Outcome::ServerStops => note(&format!("kendall: {host} stops, and with it the session")),
        Outcome::Ended => {
            note(&format!("kendall: ended without an answer of {host}; the session may still be there"))
        }
        Outcome::Signalled(signal) => return ExitCode::from(128_u8.saturating_add(signal)),
        // As SIGPIPE does, without a report.
        Outcome::OutputClosed => return ExitCode::from(128 + 13),
    }
    ExitCode::from(FAILED)
}
