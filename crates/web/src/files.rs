//! The files of runs: read only, and never a file outside of the named run, wherever links lead.

use std::path::Path;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use crate::id::encoded;

/// The size of the pieces in which a file is read.
const PIECE_BYTES: usize = 64 * 1024;
/// The most trials that are listed with their files.
const MOST_TRIALS: usize = 400;
/// The most files of a folder that are listed.
const MOST_FILES: usize = 40;

/// What a report may do in a browser: run its scripts, use its own styles, and save files. The sandbox gives it a separate
/// origin, so that it reaches neither a network nor this site, its cookie or its storage.
const REPORT_POLICY: &str = "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
     img-src data: blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// Answers with a file of this name, which is read in pieces while it is sent.
pub(crate) async fn send(file: std::fs::File, path: &Path) -> std::io::Result<Response> {
    let file = File::from_std(file);
    let length = file.metadata().await?.len();
    let pieces = stream::try_unfold((file, length), |(mut file, left)| async move {
        // Bytes that were added since are not sent: the length is already in the header.
        let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(left).unwrap_or(PIECE_BYTES))];
        let read = file.read(&mut piece).await?;
        piece.truncate(read);
        let left = left - read as u64;
        Ok::<_, std::io::Error>((read > 0).then(|| (Bytes::from(piece), (file, left))))
    });
    let mut response = Body::from_stream(pieces).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(path)));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(REPORT_POLICY));
    Ok(response)
}

/// The media type of a file. The browser saves a file that it cannot show.
fn kind(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json") => "application/json",
        Some("csv") => "text/csv; charset=utf-8",
        Some("toml" | "log" | "txt" | "hlog" | "folded") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// A file for download.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    /// The address relative to the page of the run.
    pub(crate) address: String,
    pub(crate) size: String,
}

/// The files of a trial.
#[derive(Clone, Debug)]
pub(crate) struct TrialFiles {
    pub(crate) name: String,
    pub(crate) files: Vec<Link>,
}

/// The files of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunFiles {
    pub(crate) own: Vec<Link>,
    pub(crate) trials: Vec<TrialFiles>,
    /// The number of further trials.
    pub(crate) more: usize,
}

/// The files of the run in a folder, and those of each of its trials.
pub(crate) fn listed(folder: &Path) -> RunFiles {
    let mut names = names(&folder.join("trials"));
    let more = names.len().saturating_sub(MOST_TRIALS);
    names.truncate(MOST_TRIALS);
    let trial = |name: String| {
        let files = links(&folder.join("trials").join(&name), &format!("trials/{}/", encoded(&name)));
        TrialFiles { name, files }
    };
    RunFiles { own: links(folder, ""), trials: names.into_iter().map(trial).collect(), more }
}

fn links(folder: &Path, before: &str) -> Vec<Link> {
    let link = |name: String| {
        let metadata = std::fs::metadata(folder.join(&name)).ok()?;
        // Hidden files, and files that are being written, are not listed.
        let shown = metadata.is_file() && !name.starts_with('.') && !name.ends_with(".tmp");
        shown.then(|| Link {
            address: format!("{before}{}", encoded(&name)),
            size: size(metadata.len()),
            name,
        })
    };
    names(folder).into_iter().filter_map(link).take(MOST_FILES).collect()
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// A length for people: `3.1 MB`.
fn size(bytes: u64) -> String {
    let scaled = |unit: f64| kendall_stats::number::significant(bytes as f64 / unit, 2);
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} kB", scaled(1e3)),
        1_000_000..1_000_000_000 => format!("{} MB", scaled(1e6)),
        _ => format!("{} GB", scaled(1e9)),
    }
}

/// A small text that is constant while this program runs.
pub(crate) fn asset(text: impl Into<Arc<str>>, kind: &'static str) -> Response {
    let text: Arc<str> = text.into();
    let mut response = Body::from(text.to_string()).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // The address contains the build.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    response
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_are_listed_by_trial_and_can_be_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("trials/001-rate=20%")).unwrap();
        fs::write(folder.path().join("trials/001-rate=20%/answer.json"), [b' '; 1234]).unwrap();
        fs::write(folder.path().join(".lock"), "").unwrap();
        fs::write(folder.path().join("live.json.tmp"), "").unwrap();
        fs::write(folder.path().join("manifest.json"), "{}").unwrap();
        let files = listed(folder.path());
        let names: Vec<&str> = files.own.iter().map(|link| link.name.as_str()).collect();
        assert_eq!((names, files.more), (vec!["manifest.json"], 0));
        let link = &files.trials[0].files[0];
        assert_eq!(
            (link.address.as_str(), link.size.as_str()),
            ("trials/001-rate=20%25/answer.json", "1.2 kB")
        );
    }
}
