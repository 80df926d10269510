//! A server of files in a temporary folder, and clients of it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use kendall_curve::{Endpoint, KeyDirectory, Stream};
use kendall_remote::copy::protocol::CopyOptions;
use kendall_remote::copy::{
    Access, CopyReport, CopySettings, FilePolicy, FileServer, Progress, download, upload,
};
use kendall_remote::{AuthorizedKeys, Host, RemoteError, SILENCE_LIMIT, Sessions, Stop, dial, serve};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

pub(crate) const NAME: &str = "server.example";
pub(crate) const EVERYTHING: FilePolicy = FilePolicy {
    access: Access::ReadWrite,
    allow_owner: true,
    allow_special_bits: true,
    silence_limit: SILENCE_LIMIT,
};

/// A server, the folder that it serves, and a key that it admits.
pub(crate) struct Fixture {
    folder: TempDir,
    host: Host,
    client: KeyDirectory,
    runtime: Runtime,
    server: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Fixture {
    pub(crate) fn new(policy: FilePolicy) -> Self {
        Self::with_sessions(policy, 4, 4)
    }

    pub(crate) fn with_sessions(policy: FilePolicy, most: usize, most_per_key: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeyDirectory::create(&folder.path().join("server")).unwrap();
        let client = KeyDirectory::create(&folder.path().join("client")).unwrap();
        for name in ["served", "here", "outside"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let authorized = folder.path().join("authorized_keys");
        fs::write(&authorized, format!("{:?} Ann\n", client.public_key())).unwrap();
        let authorized = Arc::new(AuthorizedKeys::open(&authorized).unwrap());
        let files = FileServer::new(&folder.path().join("served"), policy).unwrap();
        let key = keys.public_key();
        let sessions = Sessions { name: NAME.into(), keys, listen: any(), authorized, most, most_per_key };
        let (stop, stopped) = oneshot::channel::<()>();
        let (bound, address) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            runtime().block_on(async {
                let session = move |stream, client: String, stop: Stop| {
                    let files = files.clone();
                    async move { files.session(stream, &client, stop.requested()).await }
                };
                let bound = |address| _ = bound.send(address);
                serve(sessions, bound, session, async { _ = stopped.await }).await.unwrap();
            });
        });
        let address = address.blocking_recv().unwrap().to_string();
        let host = Host { name: NAME.into(), key, address, key_directory: None };
        Self { folder, host, client, runtime: runtime(), server: Some((stop, thread)) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn served(&self) -> PathBuf {
        self.path("served")
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Runs an attempt of a client.
    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub(crate) async fn connect(&self) -> (Endpoint, Stream) {
        let dialled = dial(&self.host, &self.client).await.unwrap();
        (dialled.endpoint, dialled.stream)
    }

    pub(crate) fn upload(&self, source: &Path, target: &str) -> Result<CopyReport, RemoteError> {
        self.upload_with(source, target, CopyOptions::default())
    }

    pub(crate) fn upload_with(
        &self,
        source: &Path,
        target: &str,
        options: CopyOptions,
    ) -> Result<CopyReport, RemoteError> {
        self.run(async {
            let (_endpoint, stream) = self.connect().await;
            let settings = CopySettings { options, ..CopySettings::default() };
            upload(stream, vec![source.into()], target.into(), settings, Progress::default()).await
        })
    }

    pub(crate) fn upload_all(&self, sources: &[PathBuf], target: &str) -> Result<CopyReport, RemoteError> {
        self.run(async {
            let (_endpoint, stream) = self.connect().await;
            let settings = CopySettings::default();
            upload(stream, sources.to_vec(), target.into(), settings, Progress::default()).await
        })
    }

    pub(crate) fn download(&self, source: &str, target: &Path) -> Result<CopyReport, RemoteError> {
        self.run(async {
            let (_endpoint, stream) = self.connect().await;
            let (settings, progress) = (CopySettings::default(), Progress::default());
            download(stream, &[source.into()], target, settings, progress, std::future::pending()).await
        })
    }

    /// Ends the server; its sessions have ended then.
    pub(crate) fn stop(&mut self) {
        if let Some((stop, thread)) = self.server.take() {
            _ = stop.send(());
            thread.join().unwrap();
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub(crate) fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// The names in a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}
