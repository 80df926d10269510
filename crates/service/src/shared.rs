//! The shared state of all threads of a server, and the interface of the system that it serves.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use kendall_record::clock::now_ns;
use kendall_record::stamps::{Stamp, TURNED_AWAY};
use prometheus_client::registry::Registry;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::config::Config;
use crate::metrics::{Ending, Fate, Meters, Times};
use crate::pool::Pool;
use crate::stamps::StampLog;
use crate::station::{Denied, Recipient};
use crate::turn::{Step, Turn};

/// The system of a [`Server`](crate::Server): a [`Handler`](crate::Handler), or [`Sessions`](crate::Sessions)
/// within [`InSessions`](crate::InSessions). Systems implement one of these and never this trait.
pub trait System: Send + Sync + Sized + 'static {
    #[doc(hidden)]
    type Task: Send + 'static;
    #[doc(hidden)]
    type Answer: Clone + Send + 'static;
    #[doc(hidden)]
    type Recipient: AnswerTo<Self::Answer>;

    #[doc(hidden)]
    fn first_chunk(&self) -> u64;

    #[doc(hidden)]
    fn advance(&self, task: &mut Self::Task, turn: &mut Turn<Self::Answer>) -> Step<Self::Answer>;

    #[doc(hidden)]
    fn register(&self, registry: &mut Registry);

    /// The message to a connection that the server rejects for lack of capacity.
    #[doc(hidden)]
    fn turned_away(&self) -> Vec<u8>;

    /// Serves a connection until it ends.
    #[doc(hidden)]
    fn serve(
        stream: TcpStream,
        peer: SocketAddr,
        shared: Arc<Shared<Self>>,
        stamps: StampLog,
    ) -> impl Future<Output = Ending> + Send;
}

/// The final recipient of the answer to one request.
pub trait AnswerTo<A>: Recipient<A> {
    /// The client's port.
    fn port(&self) -> u16;

    /// Completes the answer. If it has begun, all of it is there.
    fn answered(self, answer: A);

    /// Rejects the request.
    fn refused(self);
}

/// The shared state of all threads of a server.
pub struct Shared<S: System> {
    pub(crate) config: Config,
    pub(crate) system: S,
    pub(crate) meters: Arc<Meters>,
    pub(crate) pool: Arc<Pool<S::Task, S::Recipient, S::Answer>>,
    closing: watch::Sender<Closing>,
}

/// Whether shutdown has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    NotYet,
    Begun,
}

impl<S: System> Shared<S> {
    pub(crate) fn new(config: Config, system: S) -> Self {
        let workers = config.workers.get();
        let meters = Arc::new(Meters::new(workers, |registry| system.register(registry)));
        let pool = Pool::new(config.discipline, workers, config.max_waiting, Arc::clone(&meters));
        let closing = watch::Sender::new(Closing::NotYet);
        Self { config, system, meters, pool: Arc::new(pool), closing }
    }

    pub(crate) fn metrics_text(&self) -> String {
        self.meters.text(self.pool.levels())
    }

    /// Counts and stamps a request without work that arrived at `queued_ns`.
    pub(crate) fn answered_after(&self, stamps: &StampLog, peer: SocketAddr, queued_ns: i64) {
        let now = instant(peer.port(), 0);
        self.meters.answered(Times { response_ns: now.finished - queued_ns, service_ns: 0 });
        stamps.write(Stamp { queued: queued_ns, ..now });
    }

    /// Counts a request whose answer panicked.
    pub(crate) fn crashed(&self, peer: SocketAddr) {
        tracing::error!(%peer, "an answer panicked; the request is rejected");
        self.meters.ended(Fate::Crashed);
    }

    /// Counts and stamps a request that is not admitted.
    pub(crate) fn denied(&self, stamps: &StampLog, peer: SocketAddr, why: Denied) {
        self.meters.ended(why.into());
        stamps.write(instant(peer.port(), TURNED_AWAY));
        tracing::debug!(%peer, ?why, "request refused");
    }

    /// Begins the shutdown.
    pub(crate) fn close(&self) {
        self.closing.send_replace(Closing::Begun);
    }

    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow() == Closing::Begun
    }

    /// Returns once shutdown has begun.
    pub(crate) async fn closing(&self) {
        let _ = self.closing.subscribe().wait_for(|closing| *closing == Closing::Begun).await;
    }
}

/// The stamp of a request that ended when it arrived.
fn instant(port: u16, service: i64) -> Stamp {
    let now = now_ns();
    Stamp { port, queued: now, started: now, finished: now, service, fixed: None }
}
