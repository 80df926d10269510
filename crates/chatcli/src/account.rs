//! Accounts, presence and the keys of peers.

use anyhow::Context;
use clap::Args;
use kendall_chat::password::Stretch;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::failure::worded;
use crate::known::safety_number;
use crate::output::{json, line, note, shown};
use crate::profile::{Account, enforced};
use crate::session::{User, connect, log_out};

/// The name of an account and the server that has it.
#[derive(Args)]
struct AccountLocation {
    /// The name of the account
    name: String,

    /// The directory server
    #[arg(long, value_name = "ADDR")]
    server: String,

    /// The fingerprint of the server's certificate, which the server logs when it starts; without it, only a server on this
    /// machine is used, without TLS
    #[arg(long, value_name = "HEX")]
    fingerprint: Option<String>,
}

/// Create an account at a directory server: kendall chat register ann --server 127.0.0.1:5011
#[derive(Args)]
pub(crate) struct Register {
    #[command(flatten)]
    place: AccountLocation,
}

/// Use an account that exists on this machine
#[derive(Args)]
pub(crate) struct Login {
    #[command(flatten)]
    place: AccountLocation,
}

/// List the users who are online
#[derive(Args)]
pub(crate) struct Who {
    /// Print a JSON object a line: {"name": …}
    #[arg(long)]
    json: bool,
}

/// List the peers whose keys are known, with the safety numbers to compare
#[derive(Args)]
pub(crate) struct Peers {
    /// Forget this peer's key: the next one is trusted
    #[arg(long, value_name = "NAME", value_parser = enforced)]
    forget: Option<String>,

    /// Print a JSON object a line: {"name": …, "safety_number": …}
    #[arg(long, conflicts_with = "forget")]
    json: bool,
}

/// Change the password; other sessions of the account end
#[derive(Args)]
pub(crate) struct Passwd {}

/// Delete the account at the server
#[derive(Args)]
pub(crate) struct Delete {}

impl AccountLocation {
    fn account(&self) -> Account {
        Account {
            name: self.name.clone(),
            server: self.server.clone(),
            fingerprint: self.fingerprint.clone(),
        }
    }
}

pub(crate) async fn register(user: &User, Register { place }: Register) -> anyhow::Result<()> {
    make(user, place.account()).await.map(drop)
}

pub(crate) async fn login(user: &User, Login { place }: Login) -> anyhow::Result<()> {
    enter(user, place.account()).await.map(drop)
}

/// Makes an account at the server and keeps it in the profile; the account, and the password that was asked for.
pub(crate) async fn make(user: &User, account: Account) -> anyhow::Result<(Account, Zeroizing<String>)> {
    user.profile.check_unused()?;
    let name = enforced(&account.name).with_context(|| format!("cannot register {:?}", account.name))?;
    let account = Account { name, ..account };
    let mut client = connect(&account).await?;
    let password = user.new_password()?;
    client.register(&account.name, &password, Stretch::default()).await.map_err(worded)?;
    keep(user, account, password)
}

/// Enters an account that exists, and keeps it in the profile.
pub(crate) async fn enter(user: &User, account: Account) -> anyhow::Result<(Account, Zeroizing<String>)> {
    user.profile.check_unused()?;
    let password = user.password(&account)?;
    let mut client = connect(&account).await?;
    let entered = client.log_in(&account.name, &password, Stretch::default()).await.map_err(worded)?;
    log_out(client).await;
    keep(user, Account { name: entered.name, ..account }, password)
}

fn keep(
    user: &User,
    account: Account,
    password: Zeroizing<String>,
) -> anyhow::Result<(Account, Zeroizing<String>)> {
    user.profile.create(&account)?;
    introduce(user, &account)?;
    Ok((account, password))
}

/// Prints what peers compare.
fn introduce(user: &User, account: &Account) -> anyhow::Result<()> {
    let number = safety_number(&format!("{:?}", user.profile.key()?.public_key()));
    line(&format!("you are {} at {}; your safety number is {number}", account.name, account.server))
}

pub(crate) async fn who(user: &User, options: Who) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct There<'a> {
        name: &'a str,
    }
    let mut client = user.log_in().await?;
    for name in &client.who_is_there().await.map_err(worded)? {
        if options.json { json(&There { name })? } else { line(&shown(name))? }
    }
    log_out(client).await;
    Ok(())
}

pub(crate) fn peers(user: &User, options: Peers) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Peer<'a> {
        name: &'a str,
        safety_number: &'a str,
    }
    let mut peers = user.profile.known_peers()?;
    if let Some(name) = options.forget {
        anyhow::ensure!(peers.forget(&name)?, "no key of {name} is known");
        note(&format!("the key of {name} is forgotten"));
        return Ok(());
    }
    for (name, number) in peers.numbers() {
        if options.json {
            json(&Peer { name, safety_number: &number })?;
        } else {
            line(&format!("{number}  {}", shown(name)))?;
        }
    }
    Ok(())
}

pub(crate) async fn passwd(user: &User) -> anyhow::Result<()> {
    let mut client = user.log_in().await?;
    // A file has the old password in its first line; the new one comes from the terminal.
    let new = crate::password::read_new(None)?;
    client.change_password(&new, Stretch::default()).await.map_err(worded)?;
    log_out(client).await;
    note("the password is changed");
    Ok(())
}

pub(crate) async fn delete(user: &User) -> anyhow::Result<()> {
    let mut client = user.log_in().await?;
    client.delete_account().await.map_err(worded)?;
    user.profile.remove_account()?;
    note("the account is deleted");
    Ok(())
}
