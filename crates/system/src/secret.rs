//! Secrets of requests, which no record, page or message shows.
//!
//! The user's text is kept with a reference in place of each secret: `authorization: ${AUTHORIZATION}`. The value stays in this
//! process's memory. A program that reads the record later takes it from the environment variable of that name.

mod body;

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::ops::Range;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Headers with secrets: those of RFC 9110, section 11, cookies, and names that services use. A name with one of [`SECRET_ENDS`] is
/// one as well.
const SECRET_HEADERS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "x-api-key"];
const SECRET_ENDS: [&str; 5] = ["-token", "-secret", "-key", "-password", "-session"];
/// Parameters of a URL's query with secrets.
const SECRET_PARAMETERS: [&str; 13] = [
    "access_token",
    "api-key",
    "api_key",
    "apikey",
    "auth",
    "key",
    "passwd",
    "password",
    "secret",
    "sig",
    "signature",
    "sign",
    "token",
];

/// The endings of names of body fields with secrets. Unlike in a URL, `key` is mostly the name of a thing there.
const SECRET_FIELD_ENDS: [&str; 6] = ["password", "passwd", "secret", "token", "api_key", "apikey"];

/// The secrets that this process was given, by the names of their references.
static SECRETS: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(Mutex::default);

/// The names of headers and parameters that the user marked, in lower case.
static MARKED: LazyLock<Mutex<BTreeSet<String>>> = LazyLock::new(Mutex::default);

fn marked() -> MutexGuard<'static, BTreeSet<String>> {
    MARKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Marks the header, the parameter of a URL's query and the field of a body with this name as secret, in addition to the known
/// ones. Conceal values that were read before with [`Settings::conceal`](crate::Settings::conceal).
///
/// # Errors
/// Fails if this cannot be such a name.
pub fn mark_secret(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}&#".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_plain) {
        // It may be a secret itself, so the message does not show it.
        return Err("must be the name of a header, of a parameter of the URL or of a field of the body, not its value".into());
    }
    marked().insert(name.to_ascii_lowercase());
    Ok(())
}

fn secrets() -> MutexGuard<'static, HashMap<String, String>> {
    SECRETS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a header of this name holds a secret.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_HEADERS.contains(&name.as_str())
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
        || marked().contains(&name)
}

/// Whether a value refers to a secret without containing one: `${NAME}` alone, after a scheme such as `Bearer`, or as the value of
/// each cookie.
pub fn is_reference(text: &str) -> bool {
    text.split(';').all(|part| {
        let Some((before, name)) = part.trim().strip_suffix('}').and_then(|part| part.split_once("${"))
        else {
            return false;
        };
        let is_scheme =
            || before.strip_suffix(' ').is_some_and(|word| word.bytes().all(|c| c.is_ascii_alphabetic()));
        let is_cookie =
            || before.strip_suffix('=').is_some_and(|name| !name.is_empty() && !name.contains('='));
        is_name(name) && (before.is_empty() || is_scheme() || is_cookie())
    })
}

/// A line "name: value" with a reference in place of a secret.
pub(crate) fn conceal_header(line: &str) -> String {
    match line.split_once(':') {
        Some((name, value)) if is_secret_header(name.trim()) && !is_reference(value) => {
            format!("{}: {}", name.trim(), conceal(name.trim(), value.trim()))
        }
        _ => line.to_owned(),
    }
}

/// A URL with references in place of the secrets of its query, and without its user's password.
pub fn conceal_url(url: &str) -> String {
    let (before, query) = match url.split_once('?') {
        Some((before, query)) => (before, Some(query)),
        None => (url, None),
    };
    let before = match before.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            match authority.rsplit_once('@').map(|(user, host)| (user.split_once(':'), host)) {
                Some((Some((user, _)), host)) => format!("{scheme}://{user}:…@{host}{path}"),
                _ => before.to_owned(),
            }
        }
        None => before.to_owned(),
    };
    query.map_or_else(
        || before.clone(),
        |query| format!("{before}?{}", conceal_fields(query, is_secret_parameter)),
    )
}

/// A body with references in place of the secrets in its fields.
pub(crate) fn conceal_body(body: &str) -> String {
    conceal_fields(body, is_secret_field)
}

fn conceal_fields(body: &str, is_secret: fn(&str) -> bool) -> String {
    let mut concealed = String::with_capacity(body.len());
    let mut at = 0;
    for (name, value) in literal_secrets(body, is_secret) {
        concealed.push_str(&body[at..value.start]);
        concealed.push_str(&conceal(name, &body[value.clone()]));
        at = value.end;
    }
    concealed + &body[at..]
}

/// The name of a field of a body that has a secret itself, and no reference to one.
pub fn secret_field(body: &str) -> Option<&str> {
    literal_secrets(body, is_secret_field).next().map(|(name, _)| name)
}

fn literal_secrets(body: &str, is_secret: fn(&str) -> bool) -> impl Iterator<Item = (&str, Range<usize>)> {
    let values = body::secret_values(body, is_secret).into_iter();
    values.filter(|(_, value)| !is_reference(&body[value.clone()]))
}

fn is_secret_parameter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_PARAMETERS.contains(&name.as_str()) || marked().contains(&name)
}

fn is_secret_field(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_FIELD_ENDS.iter().any(|end| name.ends_with(end)) || marked().contains(&name)
}

/// Stores a secret, and returns the reference to it.
fn conceal(name: &str, secret: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let mut known = secrets();
    // Another request's secret may have the same name.
    let names = std::iter::once(name.clone()).chain((2..).map(|i| format!("{name}_{i}")));
    let free = |name: &String| known.get(name).is_none_or(|other| other == secret);
    let name = names.into_iter().find(free).expect("the names do not end");
    known.insert(name.clone(), secret.to_owned());
    format!("${{{name}}}")
}

/// A text with the secrets that it refers to: those of this process, otherwise those of the environment.
///
/// # Errors
/// Fails if a variable of the environment is not set.
pub fn reveal(text: &str) -> Result<String, String> {
    filled(text, |name| {
        let known = secrets().get(name).cloned();
        // It may contain references next to other text.
        known.map_or_else(|| from_environment(name), |secret| filled(&secret, from_environment))
    })
}

fn from_environment(name: &str) -> Result<String, String> {
    let unset = |_| format!("${{{name}}} refers to an environment variable that is not set; set {name}");
    env::var(name).map_err(unset)
}

/// A text with values in place of its references.
fn filled(text: &str, value_of: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let mut revealed = String::with_capacity(text.len());
    let mut rest = text;
    for name in references(text) {
        let reference = format!("${{{name}}}");
        let (before, after) = rest.split_once(&reference).expect("references come in their order");
        revealed.push_str(before);
        revealed.push_str(&value_of(name)?);
        rest = after;
    }
    revealed.push_str(rest);
    Ok(revealed)
}

/// The names that a text refers to: capital letters between `${` and `}`.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).filter_map(|part| Some(part.split_once('}')?.0)).filter(|name| is_name(name))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_in_a_header_is_referred_to() {
        for line in [
            "Authorization: Bearer abc",
            "cookie: id=abc",
            "Proxy-Authorization:abc",
            "X-API-Key: abc",
            "X-Auth-Token: abc",
            "x-vault-token: abc",
        ] {
            let shown = conceal_header(line);
            assert!(!shown.contains("abc"), "{shown}");
            let (name, value) = line.split_once(':').unwrap();
            assert_eq!(reveal(&shown), Ok(format!("{name}: {}", value.trim())));
        }
        for line in ["Accept: abc", "X-Keyboard: abc", "authorization: Bearer ${TOKEN_OF_MINE}", "no header"]
        {
            assert_eq!(conceal_header(line), line);
        }
        for line in [
            "cookie: a=${ID}; lang=abc",
            "authorization: abc1 ${ID}",
            "authorization: ${ID}abc",
            "x-key: ${id}abc",
        ] {
            assert!(!conceal_header(line).contains("abc"), "{line}");
        }
        assert_eq!(conceal_header("cookie: a=${ID}; b=${KEY}"), "cookie: a=${ID}; b=${KEY}");
        let mixed = conceal_header("proxy-authorization: abc ${PATH} abc");
        let path = env::var("PATH").unwrap();
        assert_eq!(reveal(&mixed).unwrap(), format!("proxy-authorization: abc {path} abc"));
        let [one, other, again] =
            ["one", "other", "one"].map(|secret| conceal_header(&format!("A-Token: {secret}")));
        assert_eq!(
            [&one, &other, &again],
            ["A-Token: ${A_TOKEN}", "A-Token: ${A_TOKEN_2}", "A-Token: ${A_TOKEN}"]
        );
        assert_eq!(reveal(&other).unwrap(), "A-Token: other");
    }

    #[test]
    fn what_is_secret_in_a_url_is_referred_to() {
        let url = "http://host:80/a/b?page=2&Token=s3cret&api_key=k%20&empty=&key=";
        let shown = conceal_url(url);
        assert_eq!(shown, "http://host:80/a/b?page=2&Token=${TOKEN}&api_key=${API_KEY}&empty=&key=");
        assert_eq!(reveal(&shown).unwrap(), url);
        assert_eq!(conceal_url(&shown), shown);
        assert_eq!(conceal_url("http://ann:s3cret@host/a@b"), "http://ann:…@host/a@b");
        for url in ["http://host", "http://host/?a=b", "http://host/?next=token", "http://ann@host/", "?", ""]
        {
            assert_eq!(conceal_url(url), url);
        }
    }

    #[test]
    fn what_is_secret_in_a_body_is_referred_to() {
        let json = r#"{"user": "ann", "my_password": "s3cret \"1\"", "tokens": 3, "Pin_Token": 12}"#;
        for (body, shown) in [
            ("user=ann&passwd=s3cret&x=1", "user=ann&passwd=${PASSWD}&x=1"),
            (
                json,
                r#"{"user": "ann", "my_password": "${MY_PASSWORD}", "tokens": 3, "Pin_Token": ${PIN_TOKEN}}"#,
            ),
        ] {
            let concealed = conceal_body(body);
            assert_eq!(concealed, shown);
            assert!(secret_field(body).is_some() && secret_field(&concealed).is_none(), "{concealed}");
            assert_eq!(reveal(&concealed).unwrap(), body);
            assert_eq!(conceal_body(&concealed), concealed);
        }
        for body in ["", "plain text", "a=b&next=token", r#"{"a": "password"}"#, "password=${MINE}"] {
            assert_eq!(conceal_body(body), body);
        }
    }

    #[test]
    fn what_the_user_marks_is_secret_as_well() {
        let (line, url) = ("X-Marked-Here: abc", "http://host/?page=1&marked_here=abc");
        assert_eq!((conceal_header(line), conceal_url(url)), (line.to_owned(), url.to_owned()));
        mark_secret("x-marked-HERE").unwrap();
        mark_secret("Marked_Here").unwrap();
        assert_eq!(conceal_header(line), "X-Marked-Here: ${X_MARKED_HERE}");
        assert_eq!(conceal_url(url), "http://host/?page=1&marked_here=${MARKED_HERE}");
        for name in ["", "a b", "name: value", "name=value"] {
            let why = mark_secret(name).unwrap_err();
            assert!(why.contains("must be the name of a header") && !why.contains("value\""), "{why}");
        }
    }

    #[test]
    fn references_come_from_the_environment() {
        // It is set in every user's process.
        let path = env::var("PATH").unwrap();
        assert_eq!(reveal("a ${PATH} b ${PATH}"), Ok(format!("a {path} b {path}")));
        let why = reveal("${KENDALL_NO_SUCH_VARIABLE}").unwrap_err();
        assert!(why.contains("not set; set KENDALL_NO_SUCH_VARIABLE"), "{why}");
        for plain in ["$PATH", "${index}", "${}", "${PATH", "{PATH}", "$", ""] {
            assert_eq!(reveal(plain).as_deref(), Ok(plain));
        }
    }
}
