//! One connection of a client: one request, one answer, which it checks.

use std::io;
use std::net::SocketAddr;

use kendall_load::{Connection, Exchange, LocalFuture, Request as LoadRequest, Reuse, Stamps, tcp};
use tokio::net::TcpStream;

use crate::protocol::{ANSWER_BYTES, Request, decode_answer};

/// One connection of a client. Good for one request, after which the server closes it. Dropped before the answer
/// came, it resets the connection, so that the server need not finish a search for nobody.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    port: u16,
    stage: Stage,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Settled,
    Waiting,
}

impl Client {
    /// Connects to a server of this protocol.
    ///
    /// # Errors
    /// Fails as the connection does.
    pub async fn connect(server: SocketAddr) -> io::Result<Self> {
        let stream = tcp::connect(server).await?;
        let port = stream.local_addr()?.port();
        Ok(Self { stream, port, stage: Stage::Settled })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Closed in order, it would look like a client that has only shut down its sending half.
        if self.stage == Stage::Waiting {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl Connection for Client {
    fn port(&self) -> u16 {
        self.port
    }

    fn exchange<'a>(
        &'a mut self,
        _index: u64,
        sent: &'a LoadRequest,
        stamps: &'a mut Stamps,
    ) -> LocalFuture<'a, Exchange> {
        Box::pin(async move {
            let request = Request::decode(&sent.bytes).expect("the workload encodes whole requests");
            let right = |answer: &[u8]| {
                request.is_answered_by(decode_answer(answer.try_into().expect("it fills the buffer")))
            };
            let mut answer = [0; ANSWER_BYTES];
            self.stage = Stage::Waiting;
            let outcome = tcp::ask(&mut self.stream, &sent.bytes, &mut answer, stamps, right).await;
            self.stage = Stage::Settled;
            Exchange { outcome, reuse: Reuse::Close }
        })
    }
}
