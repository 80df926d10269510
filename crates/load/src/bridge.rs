//! Dialogs over tokio, until the loop that owns its sockets is there.

use std::io;

use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::dialog::{Dialog, Reading, Transport};
use crate::task::{Connection, Exchange, LocalFuture, Stamps};
use crate::workload::{Request, Reuse, Way};

pub(crate) async fn connect(way: Way<'_>) -> io::Result<Box<dyn Connection>> {
    match way {
        Way::Tasks(connect) => connect.connect().await,
        Way::Bytes(wire, dialogs) => {
            if !matches!(wire.transport, Transport::Tcp) {
                return Err(io::ErrorKind::Unsupported.into());
            }
            let stream = TcpStream::connect(wire.to).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(Bridge { stream, dialog: dialogs.dialog(), reuse: wire.reuse, settled: true }))
        }
    }
}

struct Bridge {
    stream: TcpStream,
    dialog: Box<dyn Dialog>,
    reuse: Reuse,
    settled: bool,
}

impl Drop for Bridge {
    fn drop(&mut self) {
        if !self.settled {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl Connection for Bridge {
    fn port(&self) -> u16 {
        self.stream.local_addr().map_or(0, |address| address.port())
    }

    fn exchange<'a>(
        &'a mut self,
        index: u64,
        request: &'a Request,
        stamps: &'a mut Stamps,
    ) -> LocalFuture<'a, Exchange> {
        Box::pin(async move {
            self.settled = false;
            self.dialog.begin(index, request);
            stamps.sent = Some(now_ns());
            let result = self.converse(request, stamps).await;
            stamps.completed = Some(now_ns());
            self.settled = true;
            result.unwrap_or(Exchange { outcome: Outcome::Refused, reuse: Reuse::Close })
        })
    }
}

impl Bridge {
    async fn converse(&mut self, request: &Request, stamps: &mut Stamps) -> io::Result<Exchange> {
        self.stream.write_all(&request.bytes).await?;
        stamps.bytes_out += request.bytes.len() as u64;
        let mut unread = Vec::new();
        loop {
            let read = self.stream.read_buf(&mut unread).await?;
            if read == 0 {
                return Ok(Exchange { outcome: self.dialog.closed(), reuse: Reuse::Close });
            }
            stamps.first_byte.get_or_insert_with(now_ns);
            stamps.bytes_in += read as u64;
            match self.dialog.read(&unread) {
                Reading::More { used } => drop(unread.drain(..used)),
                Reading::Done { used, outcome, reuse } => {
                    let keep = used == unread.len() && [reuse, self.reuse] == [Reuse::Keep; 2];
                    return Ok(Exchange { outcome, reuse: if keep { Reuse::Keep } else { Reuse::Close } });
                }
            }
        }
    }
}
