//! The URL of a store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::StoreError;

/// A store's URL, parsed. `Display` and `Debug` hide the password.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(pub(crate) Kind);

/// A store and the information for its driver.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// A database of PostgreSQL, with the whole URL.
    Postgres(String),
    /// A database of MariaDB, with the whole URL.
    Mysql(String),
    /// A database of Redis, with the whole URL.
    Redis(String),
}

impl StoreUrl {
    /// The folder of a store that is a file of this machine, for the limit of [`crate::fdatasyncs_per_second`].
    pub fn folder(&self) -> Option<&Path> {
        match &self.0 {
            Kind::Sqlite(path) => Some(folder_of(path)),
            Kind::Postgres(_) | Kind::Mysql(_) | Kind::Redis(_) => None,
        }
    }

    /// The kind of store, in lower case: `sqlite`, `postgres`, `mysql` or `redis`.
    pub fn scheme(&self) -> &'static str {
        match self.0 {
            Kind::Sqlite(_) => "sqlite",
            Kind::Postgres(_) => "postgres",
            Kind::Mysql(_) => "mysql",
            Kind::Redis(_) => "redis",
        }
    }
}

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

impl FromStr for StoreUrl {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let wrong =
            |problem: &str| StoreError::Url { given: without_password(text), problem: problem.to_owned() };
        let (scheme, rest) = text.split_once(':').ok_or_else(|| wrong("there is no scheme"))?;
        if scheme == "sqlite" {
            return match rest {
                "" => Err(wrong("there is no path")),
                ":memory:" => Err(wrong("a store in memory is not durable")),
                path => Ok(Self(Kind::Sqlite(path.into()))),
            };
        }
        if matches!(scheme, "rediss" | "postgress" | "mysqls") {
            return Err(wrong("TLS is not supported"));
        }
        let has_host = rest.strip_prefix("//").is_some_and(|rest| !rest.is_empty());
        let kind = match scheme {
            "postgres" | "postgresql" => Kind::Postgres(text.to_owned()),
            "mysql" | "mariadb" => Kind::Mysql(format!("mysql:{rest}")),
            "redis" => Kind::Redis(text.to_owned()),
            _ => return Err(wrong("the scheme is unknown")),
        };
        if has_host { Ok(Self(kind)) } else { Err(wrong("there is no host")) }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Sqlite(path) => write!(formatter, "sqlite:{}", path.display()),
            Kind::Postgres(url) | Kind::Mysql(url) | Kind::Redis(url) => {
                formatter.write_str(&without_password(url))
            }
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StoreUrl({self})")
    }
}

/// A URL with `***` for its password and no query, since drivers take passwords there, too.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once(':').filter(|(scheme, _)| *scheme != "sqlite") else {
        return url.to_owned();
    };
    let Some(rest) = rest.strip_prefix("//") else {
        // A slash may be missing before a user and a password, or a query.
        return if rest.contains(['@', '?']) { format!("{scheme}:***") } else { url.to_owned() };
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    if query.contains('@') {
        // The question mark may be part of the password.
        return format!("{scheme}://***");
    }
    // A password may contain a slash that the user did not encode, so the last `@` counts.
    let Some((user, host)) = rest.rsplit_once('@') else { return format!("{scheme}://{rest}") };
    match user.split_once(':') {
        Some((name, _)) => format!("{scheme}://{name}:***@{host}"),
        None => format!("{scheme}://{user}@{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        text.parse::<StoreUrl>().map_or_else(|error| error.to_string(), |url| url.to_string())
    }

    #[test]
    fn a_url_is_shown_without_its_password() {
        assert_eq!(shown("postgres://ada:s3cret@db:5432/chat"), "postgres://ada:***@db:5432/chat");
        assert_eq!(shown("postgres://db/chat?user=ada&password=s3cret"), "postgres://db/chat");
        assert_eq!(shown("mariadb://ada:s/c@ret@db/chat"), "mysql://ada:***@db/chat");
        assert_eq!(shown("redis://:s3cret@db/1"), "redis://:***@db/1");
        assert_eq!(shown("redis://db"), "redis://db");
        assert_eq!(shown("redis://:s3?cret@db"), "redis://***");
        assert_eq!(shown("sqlite:chat.db"), "sqlite:chat.db");
        for text in ["postgres:/ada:s3cret@db/chat?x=://", "postgres:/db?password=s3cret", "ada:s3cret@db"] {
            let scheme = text.split(':').next().unwrap();
            assert!(shown(text).contains(&format!("\"{scheme}:***\"")), "{}", shown(text));
        }
        assert!(!shown("oracle://ada:s3cret@db/chat").contains("s3cret"));
        let debug = format!("{:?}", "redis://:s3cret@db/1".parse::<StoreUrl>());
        assert!(!debug.contains("s3cret"), "{debug}");
    }

    #[test]
    fn an_invalid_url_is_an_error_with_a_reason() {
        for (text, why) in [
            ("chat.db", "there is no scheme"),
            ("sqlite:", "there is no path"),
            ("sqlite::memory:", "a store in memory is not durable"),
            ("rediss://db", "TLS is not supported"),
            ("oracle://db", "the scheme is unknown"),
            ("postgres:db", "there is no host"),
            ("mysql://", "there is no host"),
        ] {
            assert!(shown(text).contains(why), "{text}: {}", shown(text));
        }
    }

    #[test]
    fn only_a_file_has_a_folder() {
        let folder = |text: &str| text.parse::<StoreUrl>().unwrap().folder().map(Path::to_owned);
        assert_eq!(folder("sqlite:/var/lib/chat.db"), Some(PathBuf::from("/var/lib")));
        assert_eq!(folder("sqlite:chat.db"), Some(PathBuf::from(".")));
        assert_eq!(folder("redis://db"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic_and_no_password_is_shown(text in ".*", password in "[a-z]{12}") {
            let _ = text.parse::<StoreUrl>();
            let shown = shown(&format!("postgres://user:{password}@host/{text}"));
            proptest::prop_assert!(!shown.contains(&password), "{}", shown);
        }
    }
}
