//! A TCP port at the server's end that leads to a server of this machine: the bytes cross the link, and then continue outside of
//! it. A thread that has stayed outside makes the connection to the server.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// The most connections at a time; further ones are closed at once.
const MOST_CONNECTIONS: usize = 1024;
/// How long the server may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The half outside of the link.
#[derive(Debug)]
pub struct Forward(Sender<TcpStream>);

impl Forward {
    /// Starts the half outside, in the calling thread's namespace.
    pub fn to(server: SocketAddr) -> Self {
        let (sender, connections) = channel();
        thread::spawn(move || connect(&connections, server));
        Self(sender)
    }

    /// Starts the half inside, and forwards the connections to this listener. Both halves end with the process.
    pub fn from(self, listener: TcpListener) {
        thread::spawn(move || {
            for connection in listener.incoming() {
                let Ok(connection) = connection else {
                    // The process has no descriptors left, or the client has gone already: there is no client to answer.
                    thread::sleep(Duration::from_millis(10));
                    continue;
                };
                if self.0.send(connection).is_err() {
                    return;
                }
            }
        });
    }
}

fn connect(connections: &Receiver<TcpStream>, server: SocketAddr) {
    let open = Arc::new(AtomicUsize::new(0));
    for client in connections {
        if open.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let open = Arc::clone(&open);
        thread::spawn(move || {
            // A rejected client sees the connection close, as with a server that is down.
            if let Ok(server) = TcpStream::connect_timeout(&server, CONNECT_WITHIN) {
                let _ = both_ways(&client, &server);
            }
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn both_ways(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    thread::scope(|scope| {
        scope.spawn(|| one_way(client, server));
        one_way(server, client);
    });
    Ok(())
}

/// Copies until one side ends, and then closes the other.
fn one_way(mut from: &TcpStream, mut to: &TcpStream) {
    if io::copy(&mut from, &mut to).is_err() {
        // A connection that is broken on one side is useless on the other.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn bytes_cross_both_ways_and_an_end_is_passed_on() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let front = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = front.local_addr().unwrap();
        Forward::to(server.local_addr().unwrap()).from(front);
        let answering = thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut heard = Vec::new();
            stream.read_to_end(&mut heard).unwrap();
            stream.write_all(&heard).unwrap();
        });
        let mut client = TcpStream::connect(address).unwrap();
        let said: Vec<u8> = (0..300_000_u32).map(|i| i as u8).collect();
        client.write_all(&said).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).unwrap();
        assert_eq!(heard, said);
        answering.join().unwrap();
    }

    #[test]
    fn where_no_server_is_the_connection_closes() {
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let front = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = front.local_addr().unwrap();
        Forward::to(gone).from(front);
        let mut client = TcpStream::connect(address).unwrap();
        assert_eq!(client.read(&mut [0; 8]).unwrap_or(0), 0);
    }
}
