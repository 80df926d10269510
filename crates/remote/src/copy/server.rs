//! The server: one session with a client that is known by its key.

use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use kendall_curve::Stream;
use tokio::io::AsyncWriteExt;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::copy::client::{have, offers};
use crate::copy::failures::Failures;
use crate::copy::folder::Folder;
use crate::copy::partial;
use crate::copy::progress::Progress;
use crate::copy::protocol::{CopyOptions, Message, Wanted};
use crate::copy::pump::{Receiving, prepare, receive_all, send_all};
use crate::copy::send::Sending;
use crate::copy::source::Source;
use crate::copy::target::Target;
use crate::error::RemoteError;
use crate::opening::{Hello, Service, VERSION, encode_refused};
use crate::path::shown;
use crate::session::{Inward, Outward, split, write};

/// A client that has not said by then what it wants loses its session.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// The rights of clients in a served folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Download.
    ReadOnly,
    /// Download and upload.
    ReadWrite,
}

/// The rights that a server of files grants.
#[derive(Clone, Copy, Debug)]
pub struct FilePolicy {
    /// The rights of clients.
    pub access: Access,
    /// Whether a client may keep owners and groups in an upload.
    pub allow_owner: bool,
    /// Whether a client may keep the set-user-ID, set-group-ID and sticky bits in an upload.
    pub allow_special_bits: bool,
    /// The time for which a client may send nothing; a live client sends at least every 10 s.
    pub silence_limit: Duration,
}

/// A folder that is served.
#[derive(Clone, Debug)]
pub struct FileServer {
    folder: Arc<Folder>,
    policy: FilePolicy,
}

/// How a session ended, for the log.
struct SessionEnd {
    outcome: Result<(), RemoteError>,
    progress: Progress,
    failures: Failures,
}

impl FileServer {
    /// Opens a folder to serve.
    ///
    /// # Errors
    /// [`RemoteError::File`].
    pub fn new(folder: &Path, policy: FilePolicy) -> Result<Self, RemoteError> {
        let opened = Folder::open(folder).map_err(RemoteError::file("serve", folder))?;
        Ok(Self { folder: Arc::new(opened), policy })
    }

    /// Serves one client, whose name is for the log, until the copy is over; `stop` ends it early.
    pub async fn session(&self, stream: Stream, client: &str, stop: impl Future<Output = ()>) {
        let connection = stream.connection().clone();
        let key = connection.peer();
        let (mut inward, mut outward) = split(stream, self.policy.silence_limit);
        let mut stop = pin!(stop);
        let requested = tokio::select! {
            requested = timeout(REQUEST_LIMIT, request(&mut inward)) => requested,
            () = &mut stop => return,
        };
        let request = match requested {
            Ok(Ok(request)) => request,
            // A client whose command line is wrong ends so.
            Ok(Err(RemoteError::Lost(_))) => {
                return tracing::debug!("{client} ({key:?}): left without a request");
            }
            Ok(Err(error)) => {
                tracing::warn!("{client} ({key:?}): {error}");
                return refuse(&mut outward, &error).await;
            }
            Err(_) => return tracing::warn!("{client} ({key:?}): no request within {REQUEST_LIMIT:?}"),
        };
        let description = described(&request);
        tracing::info!("{client} ({key:?}): {description} begins");
        let ended = match request {
            Message::Put { options, target, names } => {
                self.upload(inward, outward, options, target, names, stop).await
            }
            Message::Get { options, wanted } => self.download(inward, outward, options, wanted, stop).await,
            _ => unreachable!("requests are of these kinds"),
        };
        let SessionEnd { outcome, progress, failures } = ended;
        let (texts, failed) = failures.take();
        texts.iter().for_each(|text| tracing::warn!("{client} ({key:?}): {text}"));
        let (entries, bytes) = (progress.entries(), progress.bytes());
        match outcome {
            Ok(()) => tracing::info!(
                "{client} ({key:?}): {description} is done: {entries} entries, {bytes} bytes, {failed} failures"
            ),
            Err(error) => tracing::warn!(
                "{client} ({key:?}): {description} failed after {entries} entries, {bytes} bytes: {error}"
            ),
        }
    }

    async fn upload(
        &self,
        inward: Inward,
        mut outward: Outward,
        options: CopyOptions,
        target: Vec<u8>,
        names: Vec<Vec<u8>>,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> SessionEnd {
        let (progress, failures) = (Progress::default(), Failures::default());
        let work = async {
            if let Err(refused) = self.admits(options) {
                refuse(&mut outward, &refused).await;
                return Err(refused);
            }
            let served = self.folder.clone();
            let prepared = prepare(&mut outward, &mut stop, move |goes_on| {
                let target = Target::served(&served, &target, &names)?;
                let partials = partial::find(&target.folder, goes_on)
                    .map_err(RemoteError::file("read", Path::new("the target")))?;
                Ok((target, partials))
            });
            let (target, partials) = match prepared.await? {
                Ok(prepared) => prepared,
                Err(error) => {
                    refuse(&mut outward, &error).await;
                    return Err(error);
                }
            };
            let mut bytes = Vec::new();
            Message::Have(offers(&partials)).encode(&mut bytes);
            write(&mut outward, &bytes).await?;
            let (progress, failures) = (progress.clone(), failures.clone());
            let receiving = Receiving { target, options, partials, progress, failures };
            receive_all(inward, outward, receiving, stop).await
        };
        SessionEnd { outcome: work.await, progress, failures }
    }

    fn admits(&self, options: CopyOptions) -> Result<(), RemoteError> {
        let refused = |text: &str| Err(RemoteError::Operands(text.into()));
        if self.policy.access == Access::ReadOnly {
            return refused("this folder is served for downloads only; its server would need --read-write");
        }
        if options.owner && !self.policy.allow_owner {
            return refused(
                "this server does not set owners; leave out --owner, or start it with --allow-owner",
            );
        }
        if options.special_bits && !self.policy.allow_special_bits {
            return refused(
                "this server does not set set-user-ID bits; leave out --special-bits, or start it with \
                 --allow-special-bits",
            );
        }
        Ok(())
    }

    async fn download(
        &self,
        mut inward: Inward,
        outward: Outward,
        options: CopyOptions,
        wanted: Vec<Wanted>,
        stop: impl Future<Output = ()>,
    ) -> SessionEnd {
        let (progress, failures) = (Progress::default(), Failures::default());
        let work = async {
            let partials = have(&mut inward).await?;
            let served = self.folder.clone();
            let opened = spawn_blocking(move || open(&served, &wanted));
            let (sources, problems) =
                opened.await.map_err(|_| RemoteError::unexpected("a task has panicked"))?;
            let (progress, failures) = (progress.clone(), failures.clone());
            let sending = Sending { sources, problems, partials, count: options.count, progress, failures };
            send_all(inward, outward, sending).await.map(|_| ())
        };
        let outcome = tokio::select! {
            done = work => done,
            () = stop => Err(RemoteError::Interrupted),
        };
        SessionEnd { outcome, progress, failures }
    }
}

fn open(served: &Folder, wanted: &[Wanted]) -> (Vec<(u16, Source)>, Vec<String>) {
    let (mut sources, mut problems) = (Vec::new(), Vec::new());
    for (number, wanted) in wanted.iter().enumerate() {
        let root = u16::try_from(number).expect("the sources of a request are bounded");
        match Source::served(served, wanted) {
            Ok(source) => sources.push((root, source)),
            Err(error) => problems.push(format!("cannot read {} at the server: {error}", wanted.path)),
        }
    }
    (sources, problems)
}

/// Reads what a client wants.
async fn request(inward: &mut Inward) -> Result<Message, RemoteError> {
    let (kind, body) = inward.next().await?;
    let hello = Hello::decode(kind, &body)?;
    if hello.version != VERSION {
        let version = hello.version;
        return Err(RemoteError::Protocol(format!(
            "the client speaks version {version} of the protocol and this server version {VERSION}: run the same version of \
             kendall on both sides"
        )));
    }
    if hello.service != Service::Copy {
        return Err(RemoteError::Protocol("this server serves files only".into()));
    }
    let (kind, body) = inward.next().await?;
    match Message::decode(kind, &body)? {
        request @ (Message::Put { .. } | Message::Get { .. }) => Ok(request),
        _ => Err(RemoteError::unexpected("in place of a request")),
    }
}

/// Sends a reason; the client may have disconnected.
async fn refuse(outward: &mut Outward, reason: &RemoteError) {
    let mut bytes = Vec::new();
    encode_refused(&mut bytes, &reason.to_string());
    _ = write(outward, &bytes).await;
    _ = outward.shutdown().await;
}

/// A request, for the log.
fn described(request: &Message) -> String {
    let list = |names: Vec<String>| match &names[..] {
        [] => String::new(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    match request {
        Message::Put { target, names, .. } => {
            let name = |name: &Vec<u8>| if name.is_empty() { ".".into() } else { shown(name).into_owned() };
            format!("upload of {} to \"{}\"", list(names.iter().map(name).collect()), shown(target))
        }
        Message::Get { wanted, .. } => {
            format!("download of {}", list(wanted.iter().map(|wanted| wanted.path.to_string()).collect()))
        }
        _ => String::new(),
    }
}
