//! `kendall chat open`.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use kendall_chatcli::{Account, User, new_talk, safety_number, set_up};
use kendall_files::append;

use crate::contacts::Contacts;
use crate::draw::Theme;
use crate::driver::{self, Histories, Start};
use crate::history::History;
use crate::model::{Event, Model, Remembered, Setup};

/// Open the chat as a full-screen program: contacts, calls, conversations
#[derive(Args)]
#[command(
    long_about = "Open the chat as a full-screen program: contacts with presence, calls that ring, conversations with time and delivery \
    state. /help lists keys and commands. For a profile without an account, it first asks for one.\n\nConversations are kept on this machine, encrypted, unless --history off. It uses no colours \
    where NO_COLOR is set."
)]
pub(crate) struct Open {
    /// Keep the conversations, encrypted, in the profile
    #[arg(long, value_name = "ON|OFF", value_enum, default_value = "on")]
    history: Switch,

    /// Shorten the history of a contact to its newer half when it is longer than this
    #[arg(long, value_name = "MIB", default_value = "8", value_parser = clap::value_parser!(u64).range(1..=1024))]
    history_limit: u64,

    /// Keep files that contacts send here [default: Downloads in your home where it exists, otherwise files in the profile]
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,

    /// Report to peers which messages you have seen, and that you are typing
    #[arg(long, value_name = "ON|OFF", value_enum, default_value = "on")]
    receipts: Switch,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

pub(crate) fn open(user: User, options: Open) -> anyhow::Result<()> {
    let has_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (account, password) = if has_terminal && !user.profile.has_account() {
        runtime.block_on(set_up(&user))?
    } else {
        let account = user.profile.account()?;
        ensure!(
            has_terminal,
            "the full-screen program needs a terminal; kendall chat talk, send and recv do without one"
        );
        let password = user.password(&account)?;
        (account, password)
    };
    let _lock = lock(&user)?;
    let identity = user.profile.key()?.secret().clone();
    let mut histories = match options.history {
        Switch::On => {
            Some(Histories::new(History::open(user.profile.folder(), options.history_limit << 20)?))
        }
        Switch::Off => None,
    };
    let (remembered, torn) = remembered(&user, histories.as_mut())?;
    let setup = Setup {
        name: account.name.clone(),
        server: account.server.clone(),
        number: safety_number(&format!("{:?}", identity.public_key())),
        zone: TimeZone::system(),
        receipts: options.receipts == Switch::On,
        first_talk: u128::from_be_bytes(new_talk()?.0),
    };
    let mut model = Model::new(setup, remembered);
    if let Some(text) = torn {
        model.update(Event::Note { name: None, text });
    }
    let theme = Theme::new(std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()));
    let files = match options.files {
        Some(folder) => std::path::absolute(folder)?,
        None => downloads().unwrap_or_else(|| user.profile.folder().join("files")),
    };
    let start = Start { user, account, password, identity, model, histories, files, theme };
    let done = runtime.block_on(driver::run(start));
    runtime.shutdown_background();
    done
}

/// The folder for downloads, if the user has one.
fn downloads() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("HOME")?).join("Downloads");
    folder.is_dir().then_some(folder)
}

/// Two programs of one profile would both write its history and take the same calls.
fn lock(user: &User) -> anyhow::Result<File> {
    let path = user.profile.folder().join("open.lock");
    let file = append(&path, 0o600).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            bail!(
                "the profile is open in another program; end that one, or choose another profile with --profile"
            )
        }
        Err(std::fs::TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// The contacts of earlier runs: those of the list, and peers whose keys are known; and what a crash has cut off.
fn remembered(
    user: &User,
    mut histories: Option<&mut Histories>,
) -> anyhow::Result<(Vec<Remembered>, Option<String>)> {
    let list = Contacts::read(user.profile.folder())?;
    let Account { name: own, .. } = user.profile.account()?;
    let mut names = list.names;
    let known = user.profile.known_peers()?;
    if names.is_empty() {
        // Later a peer that was removed from the list stays away.
        names.extend(known.numbers().map(|(name, _)| name.to_owned()));
    }
    let mut torn = Vec::new();
    let mut contacts = Vec::new();
    for name in names.into_iter().filter(|name| *name != own) {
        let recalled = histories.as_mut().map(|it| it.recall(&name)).transpose()?.unwrap_or_default();
        if recalled.torn > 0 {
            torn.push(name.clone());
        }
        let is_blocked = list.blocked.contains(&name);
        contacts.push(Remembered { name, is_blocked, history: recalled.entries });
    }
    let torn = (!torn.is_empty()).then(|| {
        format!("a crash has cut off the last record of the history with {}; it is dropped", torn.join(", "))
    });
    Ok((contacts, torn))
}
