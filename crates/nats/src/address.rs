//! The address of a NATS server.

use std::fmt;
use std::str::FromStr;

use url::Url;

use crate::error::NatsError;

/// The address of one or several NATS servers, separated by commas, and the user: `nats://USER:PASSWORD@HOST:PORT`. Its text has
/// neither user nor password.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsAddress {
    pub(crate) servers: Vec<String>,
    pub(crate) user: Option<(String, String)>,
    pub(crate) has_tls: bool,
}

impl FromStr for NatsAddress {
    type Err = NatsError;

    fn from_str(text: &str) -> Result<Self, NatsError> {
        // The text can have a password.
        let invalid = || NatsError::Address(text.rsplit('@').next().unwrap_or_default().to_owned());
        let (mut servers, mut user, mut has_tls) = (Vec::new(), None, false);
        for server in text.split(',') {
            let mut url = Url::parse(server.trim()).map_err(|_| invalid())?;
            let has_host = url.host_str().is_some_and(|host| !host.is_empty());
            let has_more =
                !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some();
            if !matches!(url.scheme(), "nats" | "tls") || !has_host || has_more {
                return Err(invalid());
            }
            has_tls |= url.scheme() == "tls";
            if !url.username().is_empty() {
                let plain = |text: &str| percent_decoded(text).ok_or_else(invalid);
                user = Some((plain(url.username())?, plain(url.password().unwrap_or_default())?));
            }
            url.set_username("").and_then(|()| url.set_password(None)).map_err(|()| invalid())?;
            servers.push(url.to_string());
        }
        Ok(Self { servers, user, has_tls })
    }
}

/// The text of a part of a URL.
fn percent_decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

impl fmt::Display for NatsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.servers.join(","))
    }
}

impl fmt::Debug for NatsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_user_and_several_servers() {
        let address: NatsAddress = "nats://ada:p%40ss@one:4222,nats://two".parse().unwrap();
        assert_eq!(address.to_string(), "nats://one:4222,nats://two");
        assert_eq!(address.user, Some(("ada".into(), "p@ss".into())));
        assert!(!address.has_tls && "tls://[::1]:4222".parse::<NatsAddress>().unwrap().has_tls);
    }

    #[test]
    fn errors_do_not_show_the_password() {
        for wrong in [
            "",
            "host:4222",
            "http://host",
            "nats://",
            "nats://host/queue",
            "nats://u:%zz@host",
            "nats://u:secret@host/x",
        ] {
            let error = wrong.parse::<NatsAddress>().unwrap_err().to_string();
            assert!(error.contains("is not the address of a NATS server"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
