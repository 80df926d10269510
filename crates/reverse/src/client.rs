//! One connection of a client: one request, one answer, which it checks.

use std::io;
use std::net::SocketAddr;

use kendall_load::{Connection, Exchange, LocalFuture, Request as LoadRequest, Reuse, Stamps, tcp};
use kendall_record::Outcome;
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

    /// Sends a request and reads the answer, right or wrong. Sets the stamps as things happen.
    ///
    /// # Errors
    /// Fails if the connection is lost before the answer is complete.
    pub async fn ask(&mut self, request: &Request, stamps: &mut Stamps) -> io::Result<u64> {
        let mut answer = [0; ANSWER_BYTES];
        self.stage = Stage::Waiting;
        let exchanged = tcp::exchange(&mut self.stream, &request.encode(), &mut answer, stamps).await;
        self.stage = Stage::Settled;
        exchanged.map(|()| decode_answer(answer))
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
        request: &'a LoadRequest,
        stamps: &'a mut Stamps,
    ) -> LocalFuture<'a, Exchange> {
        Box::pin(async move {
            let request = Request::decode(&request.bytes).expect("the workload encodes whole requests");
            let outcome = match self.ask(&request, stamps).await {
                Ok(answer) if request.is_answered_by(answer) => Outcome::Answered,
                Ok(_) => Outcome::Wrong,
                Err(_) => Outcome::Refused,
            };
            Exchange { outcome, reuse: Reuse::Close }
        })
    }
}
