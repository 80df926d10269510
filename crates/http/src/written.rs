//! Requests as the user writes them: by options, or several in a file.
//!
//! A file of requests is TOML with a `[[request]]` for each, or JSON lines. The options provide the defaults for the
//! requests of the file.

use std::collections::BTreeMap;
use std::path::Path;

use kendall_system::{is_reference, is_secret_header, secret_field};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::error::HttpError;
use crate::expect::Expect;

/// The most requests in a file.
const MOST_REQUESTS: usize = 10_000;
/// The longest file of requests, and the longest body.
const MOST_BYTES: u64 = 64 << 20;

/// One request as the user writes it. Omitted fields get defaults later.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Written {
    /// The name of its class.
    pub name: Option<String>,
    /// The request's weight relative to the others; 1 by default.
    pub weight: Option<f64>,
    /// The request's method; by default POST with a body and GET without.
    pub method: Option<String>,
    /// The request's path, relative to the URL.
    pub path: Option<String>,
    /// The request's headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The request's body.
    pub body: Option<String>,
    /// The file with its body.
    pub body_file: Option<String>,
    /// The statuses of a good answer: 200, "200-299,304".
    #[serde(default, deserialize_with = "text_or_number")]
    pub expect_status: Option<String>,
    /// The text that the body of a good answer contains.
    pub expect_text: Option<String>,
    /// The length of the body of a good answer, in bytes.
    pub expect_length: Option<u64>,
    /// The SHA-256 of the body of a good answer.
    pub expect_sha256: Option<String>,
}

/// The position of a request in a file: "requests.toml, line 3".
pub(crate) type FilePosition = String;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    request: Vec<Spanned<Written>>,
}

fn text_or_number<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "statuses such as 200 or \"200-299,304\"")]
    enum Either {
        Number(u64),
        Text(String),
    }
    Ok(Some(match Either::deserialize(value)? {
        Either::Number(number) => number.to_string(),
        Either::Text(text) => text,
    }))
}

impl Written {
    pub(crate) fn weight(&self) -> f64 {
        self.weight.unwrap_or(1.0)
    }

    /// This request, with defaults from `other`.
    fn or(self, other: &Self) -> Self {
        let other = other.clone();
        let of_body = self.body.is_some() || self.body_file.is_some();
        let (body, body_file) =
            if of_body { (self.body, self.body_file) } else { (other.body, other.body_file) };
        let mut headers = other.headers;
        headers.retain(|name, _| !self.headers.keys().any(|own| own.eq_ignore_ascii_case(name)));
        headers.extend(self.headers);
        Self {
            name: self.name,
            weight: self.weight,
            method: self.method.or(other.method),
            path: self.path.or(other.path),
            headers,
            body,
            body_file,
            expect_status: self.expect_status.or(other.expect_status),
            expect_text: self.expect_text.or(other.expect_text),
            expect_length: self.expect_length.or(other.expect_length),
            expect_sha256: self.expect_sha256.or(other.expect_sha256),
        }
    }

    /// The request's body, if it has one.
    pub(crate) fn body(&self) -> Result<Option<Vec<u8>>, String> {
        match (&self.body, &self.body_file) {
            (Some(_), Some(_)) => Err("it has a body and a body-file; remove one of them".into()),
            (Some(text), None) => Ok(Some(text.clone().into_bytes())),
            (None, Some(path)) => read_bytes(Path::new(path)).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The criteria of a good answer to it.
    pub(crate) fn expect(&self) -> Result<Expect, String> {
        fn read<T: std::str::FromStr<Err = String>>(
            name: &str,
            text: &Option<String>,
        ) -> Result<Option<T>, String> {
            text.as_deref().map(str::parse).transpose().map_err(|why| format!("{name} {why}"))
        }
        Ok(Expect {
            statuses: read("expect-status", &self.expect_status)?.unwrap_or_default(),
            text: read("expect-text", &self.expect_text)?,
            length: self.expect_length,
            sha256: read("expect-sha256", &self.expect_sha256)?,
        })
    }

    /// The reason why it is not valid as a request of a file, if there is one.
    fn fault(&self) -> Option<String> {
        let weight = self.weight();
        let literal = |(name, value): &(&String, &String)| is_secret_header(name) && !is_reference(value);
        if let Some((name, _)) = self.headers.iter().find(literal) {
            return Some(format!(
                "its header {name} has a secret, and records keep copies of this file; write ${{NAME}}, and set the variable \
                 NAME in the environment"
            ));
        }
        if let Some(field) = self.body.as_deref().and_then(secret_field) {
            return Some(format!(
                "the field {field} of its body has a secret, and records keep copies of this file; write ${{NAME}}, and set the \
                 variable NAME in the environment"
            ));
        }
        let relative = self.body_file.as_ref().filter(|path| !Path::new(path).is_absolute());
        if !(weight > 0.0 && weight <= 1e9) {
            return Some(format!("its weight is {weight}; it must lie above 0 and not above 1e9"));
        }
        relative.map(|path| {
            format!("its body-file {path:?} must be an absolute path, because the file of requests may be copied elsewhere")
        })
    }
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    kendall_files::read_any(path, MOST_BYTES)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Reads a file of requests; `base` provides the defaults.
pub(crate) fn read_file(
    path: &Path,
    base: &Written,
) -> Result<Vec<(Written, Option<FilePosition>)>, HttpError> {
    let file = path.display().to_string();
    let failed = |line: usize, why: String| HttpError::InFile { place: format!("{file}, line {line}"), why };
    let bytes = read_bytes(path).map_err(|why| HttpError::Request { why })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        failed(lines(good), "it is not text in UTF-8".into())
    })?;
    // A JSON line begins with an object, a TOML file does not.
    let read = if text.trim_start().starts_with('{') { json_lines(&text) } else { toml(&text) };
    let requests = read.map_err(|(line, why)| failed(line, why))?;
    if requests.is_empty() {
        return Err(failed(1, "it has no request; write [[request]], or one JSON object per line".into()));
    }
    if let Some((line, _)) = requests.get(MOST_REQUESTS) {
        return Err(failed(*line, format!("it has more than {MOST_REQUESTS} requests")));
    }
    let whole = |(line, written): (usize, Written)| match written.fault() {
        Some(why) => Err(failed(line, why)),
        None => Ok((written.or(base), Some(format!("{file}, line {line}")))),
    };
    requests.into_iter().map(whole).collect()
}

/// The number of the line that begins after the text.
fn lines(text: &[u8]) -> usize {
    1 + text.iter().filter(|&&byte| byte == b'\n').count()
}

/// Requests with their lines, or an error with its line.
type Lines = Result<Vec<(usize, Written)>, (usize, String)>;

fn toml(text: &str) -> Lines {
    let line = |at: usize| lines(&text.as_bytes()[..at]);
    let file: File = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        (line(at), error.message().trim_end().replace('\n', "; "))
    })?;
    Ok(file.request.into_iter().map(|request| (line(request.span().start), request.into_inner())).collect())
}

fn json_lines(text: &str) -> Lines {
    let numbered = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    numbered
        .map(|(i, line)| match serde_json::from_str(line) {
            Ok(written) => Ok((i + 1, written)),
            Err(error) => Err((i + 1, format!("{error}").replace(" at line 1 column", ", at column"))),
        })
        .collect()
}
