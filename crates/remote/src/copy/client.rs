//! The client: uploads and downloads on a connection.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use kendall_curve::Stream;
use tokio::task::spawn_blocking;

use crate::copy::failures::Failures;
use crate::copy::partial::{self, PartialFile};
use crate::copy::progress::Progress;
use crate::copy::protocol::{CopyOptions, MAX_REQUEST, MAX_ROOTS, Message, Partial, Wanted};
use crate::copy::pump::{Receiving, prepare, receive_all, send_all};
use crate::copy::send::Sending;
use crate::copy::source::Source;
use crate::copy::target::Target;
use crate::error::RemoteError;
use crate::opening::{Hello, REFUSED, Service, VERSION, decode_refused};
use crate::session::{Inward, SILENCE_LIMIT, split, write};

/// How a client copies.
#[derive(Clone, Copy, Debug)]
pub struct CopySettings {
    /// The options of the copy.
    pub options: CopyOptions,
    /// The time for which the server may send nothing; a live server sends at least every 10 s.
    pub silence_limit: Duration,
}

impl Default for CopySettings {
    fn default() -> Self {
        Self { options: CopyOptions::default(), silence_limit: SILENCE_LIMIT }
    }
}

/// The result of a copy.
#[derive(Clone, Debug, Default)]
pub struct CopyReport {
    /// Files, folders and links that are in their place.
    pub entries: u64,
    /// Bytes of files that went by, holes and bytes that were there already included.
    pub bytes: u64,
    /// The bytes, among these, that were there already, from an interrupted copy.
    pub resumed_bytes: u64,
    /// The number of entries that could not be copied.
    pub failed: u64,
    /// A sentence for each entry that could not be copied, up to a thousand.
    pub failures: Vec<String>,
}

impl CopyReport {
    fn new(entries: u64, progress: &Progress, failures: &Failures) -> Self {
        let (failures, failed) = failures.take();
        Self { entries, bytes: progress.bytes(), resumed_bytes: progress.resumed_bytes(), failed, failures }
    }
}

/// Copies files and folders of this machine to a path of the server's folder. What cannot be read is left out and reported.
///
/// # Errors
/// Where no source can be read, the server refuses, or the connection is lost.
pub async fn upload(
    stream: Stream,
    sources: Vec<PathBuf>,
    mut target: Vec<u8>,
    settings: CopySettings,
    progress: Progress,
) -> Result<CopyReport, RemoteError> {
    // Several sources go into a folder, even if only one of them can be read.
    if sources.len() > 1 && !target.is_empty() {
        target.push(b'/');
    }
    let (opened, problems) = open(sources).await?;
    let names: Vec<Vec<u8>> = opened.iter().map(|(_, source)| source.name().to_vec()).collect();
    check_size(names.iter().map(Vec::len).sum::<usize>() + target.len(), names.len())?;
    let CopySettings { options, silence_limit } = settings;
    let (mut inward, mut outward) = split(stream, silence_limit);
    write(&mut outward, &opening(&[Message::Put { options, target, names }])).await?;
    let partials = have(&mut inward).await?;
    let failures = Failures::default();
    let sending = Sending {
        sources: opened,
        problems,
        partials,
        count: options.count,
        progress: progress.clone(),
        failures: failures.clone(),
    };
    let outcome = send_all(inward, outward, sending).await?;
    Ok(CopyReport::new(outcome.entries, &progress, &failures))
}

/// Opens what can be opened, and says what cannot.
async fn open(sources: Vec<PathBuf>) -> Result<(Vec<(u16, Source)>, Vec<String>), RemoteError> {
    let opened = spawn_blocking(move || {
        let (mut opened, mut problems) = (Vec::new(), Vec::new());
        for path in sources.into_iter().take(MAX_ROOTS + 1) {
            match Source::local(&path) {
                Ok(source) => opened.push((u16::try_from(opened.len()).unwrap_or(u16::MAX), source)),
                Err(error) => problems.push(error.to_string()),
            }
        }
        (opened, problems)
    });
    let (opened, problems) = opened.await.map_err(|_| RemoteError::unexpected("a task has panicked"))?;
    if opened.is_empty() {
        return Err(RemoteError::Operands(problems.join("\n")));
    }
    Ok((opened, problems))
}

/// Copies files and folders of the server to a path of this machine. `stop` ends it early; the target is then left in order.
///
/// # Errors
/// Where the target cannot be used, the server refuses, the connection is lost, or [`RemoteError::Interrupted`].
pub async fn download(
    stream: Stream,
    sources: &[Vec<u8>],
    target: &Path,
    settings: CopySettings,
    progress: Progress,
    stop: impl Future<Output = ()>,
) -> Result<CopyReport, RemoteError> {
    let wanted: Vec<Wanted> = sources.iter().map(|source| Wanted::new(source)).collect::<Result<_, _>>()?;
    check_size(sources.iter().map(Vec::len).sum(), sources.len())?;
    let names: Vec<Vec<u8>> = wanted.iter().map(|wanted| wanted.name().to_vec()).collect();
    let path = target.to_owned();
    let panicked = |_| RemoteError::unexpected("a task has panicked");
    let opened = spawn_blocking(move || Target::local(&path, &names));
    let target_folder = opened.await.map_err(panicked)??;
    let CopySettings { options, silence_limit } = settings;
    let (inward, mut outward) = split(stream, silence_limit);
    write(&mut outward, &opening(&[Message::Get { options, wanted }])).await?;
    let (path, mut stop) = (target.to_owned(), pin!(stop));
    let found = prepare(&mut outward, &mut stop, move |goes_on| {
        let partials =
            partial::find(&target_folder.folder, goes_on).map_err(RemoteError::file("read", &path))?;
        Ok((target_folder, partials))
    });
    let (target, partials) = found.await??;
    let mut bytes = Vec::new();
    Message::Have(offers(&partials)).encode(&mut bytes);
    write(&mut outward, &bytes).await?;
    let failures = Failures::default();
    let receiving =
        Receiving { target, options, partials, progress: progress.clone(), failures: failures.clone() };
    receive_all(inward, outward, receiving, stop).await?;
    let mut report = CopyReport::new(progress.entries(), &progress, &failures);
    report.entries = report.entries.saturating_sub(report.failed);
    Ok(report)
}

fn check_size(bytes: usize, sources: usize) -> Result<(), RemoteError> {
    if bytes > MAX_REQUEST || sources > MAX_ROOTS {
        return Err(RemoteError::Operands(format!(
            "a copy has at most {MAX_ROOTS} sources: name the folder that they are in, as FOLDER/."
        )));
    }
    Ok(())
}

/// The first bytes of a client.
fn opening(messages: &[Message]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Hello { version: VERSION, service: Service::Copy }.encode(&mut bytes);
    messages.iter().for_each(|message| message.encode(&mut bytes));
    bytes
}

/// The partial files that the receiver offers to continue.
pub(crate) fn offers(partials: &[Option<PartialFile>]) -> Vec<Partial> {
    partials.iter().flatten().map(|partial| partial.offer.clone()).collect()
}

/// Waits for what the receiver has.
pub(crate) async fn have(inward: &mut Inward) -> Result<Vec<Partial>, RemoteError> {
    let (kind, body) = inward.next().await?;
    if kind == REFUSED {
        return Err(RemoteError::refused(&decode_refused(&body)?));
    }
    match Message::decode(kind, &body)? {
        Message::Have(partials) => Ok(partials),
        _ => Err(RemoteError::unexpected("before the list of partial files")),
    }
}
