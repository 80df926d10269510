//! The trait itself: a stream of bytes each way, with its own end.

use std::time::Duration;

use kendall_transport::protocol::Head;
use kendall_transport::{Connection, Kind, Listener, TransportError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::serving::{options, start};

fn within<T>(what: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(what)
}

async fn accept(listener: &mut dyn Listener) -> Connection {
    listener.accept().await.unwrap().await.unwrap()
}

#[test]
fn each_side_sends_its_bytes_and_ends_its_own_stream() {
    for kind in Kind::ALL {
        within(async {
            let mut listener = kind.transport().listen(([127, 0, 0, 1], 0).into()).unwrap();
            let to = listener.address();
            let client = async {
                let Connection { mut stream, client_port, .. } = kind.transport().connect(to).await.unwrap();
                stream.write_all(b"6 times 7").await.unwrap();
                stream.shutdown().await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                (answer, client_port)
            };
            let server = async {
                let Connection { mut stream, client_port, .. } = accept(&mut *listener).await;
                let mut question = String::new();
                stream.read_to_string(&mut question).await.unwrap();
                stream.write_all(format!("{question} is 42").as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
                // Until the client has the answer.
                (client_port, stream)
            };
            let ((answer, port), (seen_port, _stream)) = tokio::join!(client, server);
            assert_eq!(answer, "6 times 7 is 42", "{kind}");
            assert_eq!(port, seen_port, "{kind}");
        });
    }
}

#[test]
fn a_client_learns_that_the_server_has_ended() {
    // Without a word a client of CurveCP or QUIC would wait for half a minute or longer.
    const SOON: Duration = Duration::from_secs(10);
    for kind in Kind::ALL {
        within(async {
            let server = start(&options(kind));
            let Connection { mut stream, .. } = kind.transport().connect(server.address).await.unwrap();
            stream.write_all(&Head::Send(1).encode()).await.unwrap();
            stream.flush().await.unwrap();
            stream.read_exact(&mut [0; 1]).await.unwrap();
            let stopped = spawn_blocking(|| server.stop());
            let after = timeout(SOON, stream.read(&mut [0; 1])).await;
            assert!(matches!(after, Ok(Ok(0) | Err(_))), "{kind}: {after:?}");
            stopped.await.unwrap();
        });
    }
}

#[test]
fn an_address_in_use_is_reported() {
    for kind in Kind::ALL {
        within(async {
            let first = kind.transport().listen(([127, 0, 0, 1], 0).into()).unwrap();
            let second = kind.transport().listen(first.address());
            let Err(error @ TransportError::Listen { .. }) = second else {
                panic!("{kind}: it listens twice")
            };
            let text = error.to_string();
            assert!(text.contains(kind.name()) && text.contains("--listen"), "{text}");
        });
    }
}
