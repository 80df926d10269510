//! A server that runs for the duration of a test.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use kendall_transport::{Kind, Server, TransportError, TransportOptions};
use tokio::sync::oneshot;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<(), TransportError>>,
}

impl Running {
    /// Ends the server and its connections.
    pub(crate) fn stop(self) {
        let _ = self.stop.send(());
        self.thread.join().unwrap().unwrap();
    }
}

pub(crate) fn options(kind: Kind) -> TransportOptions {
    let threads = NonZeroUsize::MIN;
    TransportOptions { kind, listen: ([127, 0, 0, 1], 0).into(), connections: 64, threads, stamps: None }
}

pub(crate) fn start(options: &TransportOptions) -> Running {
    let server = Server::bind(options).unwrap();
    let address = server.address();
    let (stop, stopped) = oneshot::channel();
    let until = async { drop(stopped.await) };
    Running { address, stop, thread: thread::spawn(|| server.run_until(until)) }
}

pub(crate) fn stamped(kind: Kind, file: PathBuf) -> TransportOptions {
    TransportOptions { stamps: Some(file), ..options(kind) }
}
