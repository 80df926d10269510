//! `kendall chat history`.

use std::collections::HashSet;

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kendall_chat::name::Name;
use kendall_chatcli::{User, json, line, note, shown};
use serde::Serialize;

use crate::history::{Entry, History};

/// Print what was said with a contact
#[derive(Args)]
#[command(
    long_about = "Print what was said with a contact, the oldest first, as far as kendall chat open has kept it."
)]
pub(crate) struct Export {
    /// The contact
    name: String,

    /// Print a JSON object a line: {"from": …, "sent_ms": …, "text": …, "delivered": …}
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Printed<'a> {
    from: &'a str,
    sent_ms: u64,
    text: &'a str,
    /// Only of the user's own messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered: Option<bool>,
}

pub(crate) fn export(user: &User, options: &Export) -> anyhow::Result<()> {
    let account = user.profile.account()?;
    let name = Name::new(&options.name)?.shown().to_owned();
    let recalled = History::open(user.profile.folder(), u64::MAX)?.read(&name)?;
    if recalled.torn > 0 {
        note("the last record is not whole and is left out");
    }
    let arrived: HashSet<u64> = recalled
        .entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Delivered { at_ms } => Some(*at_ms),
            Entry::Said { .. } => None,
        })
        .collect();
    for entry in &recalled.entries {
        let Entry::Said { own, at_ms, text } = entry else { continue };
        let from = if *own { &account.name } else { &name };
        let delivered = own.then(|| arrived.contains(at_ms));
        if options.json {
            json(&Printed { from, sent_ms: *at_ms, text, delivered })?;
        } else {
            let lost = if delivered == Some(false) { " (not arrived)" } else { "" };
            line(&format!("{} {}{lost}: {}", time(*at_ms), shown(from), shown(text)))?;
        }
    }
    Ok(())
}

/// A time where the user is.
fn time(at_ms: u64) -> String {
    let timestamp = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let zoned = timestamp.map(|it| it.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string());
    zoned.unwrap_or_else(|| "at an unknown time".to_owned())
}
