//! A server from its start to its shutdown.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::rustls::ServerConfig;

use crate::accept;
use crate::config::Config;
use crate::error::ServiceError;
use crate::outlet::SessionLimits;
use crate::scrape;
use crate::sessions::{InSessions, Sessions};
use crate::shared::{Shared, System};
use crate::stamps::{self, StampLog, StampThread};
use crate::worker;

/// The time for rejections to reach their clients once the grace period is over.
const FAREWELL: Duration = Duration::from_secs(1);

/// The number of threads that wait for disks instead of the thread for sockets.
const FILE_THREADS: usize = 4;

/// A server that listens. Connections wait in the kernel until it runs.
pub struct Server<S: System> {
    runtime: Runtime,
    listener: TcpListener,
    scrapes: Option<TcpListener>,
    local_addr: SocketAddr,
    metrics_addr: Option<SocketAddr>,
    shared: Arc<Shared<S>>,
    stamps: StampLog,
    stamp_thread: StampThread,
}

/// A handle to observe a running server, and to stop it, from any thread.
pub struct Handle<S: System>(Arc<Shared<S>>);

impl<S: System> Server<S> {
    /// Opens the sockets and the file of stamps, and raises the process's limit on open files.
    ///
    /// # Errors
    /// Fails if an address is in use or not permitted, or if the file of stamps cannot be written.
    pub fn bind(config: Config, system: S) -> Result<Self, ServiceError> {
        accept::raise_descriptor_limit();
        let start = |what| move |source| ServiceError::Start { what, source };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(FILE_THREADS)
            .build()
            .map_err(start("event loop"))?;
        let (listener, local_addr) = listen(&runtime, config.listen, "--listen")?;
        let (scrapes, metrics_addr) = match config.metrics {
            Some(address) => {
                let (listener, address) = listen(&runtime, address, "--metrics")?;
                (Some(listener), Some(address))
            }
            None => (None, None),
        };
        let stamps = config.stamps.clone();
        let shared = Arc::new(Shared::new(config, system));
        let (stamps, stamp_thread) = stamps::open(stamps.as_deref(), shared.meters.stamps_dropped.clone())?;
        Ok(Self { runtime, listener, scrapes, local_addr, metrics_addr, shared, stamps, stamp_thread })
    }

    /// The address on which the server listens, with the port that was picked.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The address of the metrics, if any.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_addr
    }

    /// A handle to the server, valid before, while and after it runs.
    pub fn handle(&self) -> Handle<S> {
        Handle(Arc::clone(&self.shared))
    }

    /// Serves until a handle shuts it down. See [`run_until`](Self::run_until).
    ///
    /// # Errors
    /// Fails if a thread cannot be started or the stamps cannot be written.
    pub fn run(self) -> Result<(), ServiceError> {
        self.run_until(pending())
    }

    /// Serves until SIGINT or SIGTERM, as [`run_until`](Self::run_until). Calls `ready` with the address once the server
    /// accepts connections and handles signals.
    ///
    /// # Errors
    /// Fails if a thread cannot be started or the stamps cannot be written.
    pub fn run_until_signalled(self, ready: impl FnOnce(SocketAddr)) -> Result<(), ServiceError> {
        let address = self.local_addr;
        self.run_until(async move {
            let signalled = signalled();
            ready(address);
            signalled.await;
        })
    }

    /// Serves until `until` is ready or a handle shuts it down, and then shuts down: stops accepting, gives admitted requests
    /// the grace period of the configuration, rejects the rest, and returns. It blocks the calling thread, which does all I/O.
    /// A handler that ignores the size of its chunks delays the return by up to its longest chunk.
    ///
    /// # Errors
    /// Fails if a thread cannot be started or the stamps cannot be written.
    pub fn run_until(self, until: impl Future<Output = ()>) -> Result<(), ServiceError> {
        let Self { runtime, listener, scrapes, local_addr, metrics_addr, shared, stamps, stamp_thread } =
            self;
        let workers = start_workers(&shared, &stamps)?;
        tracing::info!(%local_addr, ?metrics_addr, workers = workers.len(),
            discipline = %shared.config.discipline, "serving");
        runtime.block_on(async {
            tokio::spawn(scrape::run(scrapes, Arc::clone(&shared)));
            let permits = Arc::new(Semaphore::new(shared.config.max_connections.min(Semaphore::MAX_PERMITS)));
            tokio::select! {
                () = until => {}
                () = shared.closing() => {}
                () = accept::run(&listener, &permits, &shared, &stamps) => {}
            }
            shut_down(listener, &permits, &shared, &stamps).await;
        });
        for worker in workers {
            worker.join().expect("a worker does not panic: it catches the handler's panics");
        }
        drop((runtime, stamps));
        stamp_thread.finish()
    }
}

impl<S: Sessions> Server<InSessions<S>> {
    /// Binds a server as [`bind`](Self::bind) does, for a system whose clients hold sessions within these limits.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_sessions(config: Config, limits: SessionLimits, system: S) -> Result<Self, ServiceError> {
        Self::bind(config, InSessions::new(limits, None, system))
    }

    /// Binds a server as [`bind_sessions`](Self::bind_sessions) does, with TLS by this configuration. The handshake must
    /// complete within the patience of `config`.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_secured_sessions(
        config: Config,
        limits: SessionLimits,
        tls: Arc<ServerConfig>,
        system: S,
    ) -> Result<Self, ServiceError> {
        Self::bind(config, InSessions::new(limits, Some(tls.into()), system))
    }
}

impl<S: System> Handle<S> {
    /// Begins the shutdown of the server, without waiting for it.
    pub fn shut_down(&self) {
        self.0.close();
    }

    /// All metrics, in the format of `GET /metrics`.
    pub fn metrics_text(&self) -> String {
        self.0.metrics_text()
    }
}

impl<S: System> Clone for Handle<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Ready on SIGINT or SIGTERM, which from this call on no longer end the process. Call it within the event loop.
fn signalled() -> impl Future<Output = ()> {
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    async {
        match signals {
            (Ok(mut interrupt), Ok(mut terminate)) => tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            },
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(%error, "cannot listen for signals; only SIGKILL will stop the server");
                pending().await
            }
        }
    }
}

fn listen(
    runtime: &Runtime,
    address: SocketAddr,
    option: &'static str,
) -> Result<(TcpListener, SocketAddr), ServiceError> {
    let _within = runtime.enter();
    accept::listen(address)
        .and_then(|listener| listener.local_addr().map(|address| (listener, address)))
        .map_err(|source| ServiceError::Listen { address, option, source })
}

/// Starts all workers, or none.
fn start_workers<S: System>(
    shared: &Arc<Shared<S>>,
    stamps: &StampLog,
) -> Result<Vec<JoinHandle<()>>, ServiceError> {
    let start = |worker| {
        let (shared, stamps) = (Arc::clone(shared), stamps.clone());
        thread::Builder::new()
            .name(format!("worker-{worker}"))
            .spawn(move || worker::work(&shared, worker, &stamps))
    };
    (0..shared.config.workers.get()).map(start).collect::<Result<_, _>>().map_err(|source| {
        shared.pool.drain();
        ServiceError::Start { what: "workers", source }
    })
}

async fn shut_down<S: System>(
    listener: TcpListener,
    permits: &Arc<Semaphore>,
    shared: &Arc<Shared<S>>,
    stamps: &StampLog,
) {
    tracing::info!(levels = ?shared.pool.levels(), "shutting down");
    shared.pool.drain();
    shared.close();
    accept::sweep(&listener, permits, shared, stamps).await;
    drop(listener);
    let all = u32::try_from(shared.config.max_connections).unwrap_or(u32::MAX);
    if timeout(shared.config.grace, permits.acquire_many(all)).await.is_ok() {
        return;
    }
    tracing::warn!(levels = ?shared.pool.levels(), "the grace period is over; the remaining requests are rejected");
    worker::refuse(shared, shared.pool.refuse_rest());
    let _ = timeout(FAREWELL, permits.acquire_many(all)).await;
}
