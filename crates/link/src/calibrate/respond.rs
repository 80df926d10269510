//! The server's end of a measurement.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kendall_record::clock::now_ns;

use super::HEADER_BYTES;
use super::message::Message;
use super::train::{Arrivals, send, send_once};
use crate::error::LinkError;
use crate::pace::hurry;
use crate::receive::{prepare, receive};

/// The time between two checks for the request to stop.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// Answers [`measure`](super::measure) on this socket until `stop` is set. Gives the calling thread the highest priority that is
/// permitted, so use a separate thread. Ignores datagrams that are not valid messages, and never sends for longer than five
/// seconds on one request.
///
/// # Errors
///
/// Where the socket fails.
pub fn respond(socket: &UdpSocket, stop: &AtomicBool) -> Result<(), LinkError> {
    run(socket, stop).map_err(LinkError::step("answer the measurement of the link"))
}

fn run(socket: &UdpSocket, stop: &AtomicBool) -> io::Result<()> {
    hurry();
    prepare(socket)?;
    socket.set_read_timeout(Some(LOOKS_EVERY))?;
    let mut arrivals = Arrivals::of(0);
    let mut last_sent = None;
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let (length, from, came_ns) = match receive(socket, &mut buffer) {
            Ok(received) => received,
            Err(error) if is_passing(&error) => continue,
            Err(error) => return Err(error),
        };
        let reply = |message: Message| {
            let (bytes, length) = message.encode();
            send_once(socket, from, &bytes[..length])
        };
        match Message::decode(&buffer[..length]) {
            Some(Message::Ping { number, sent_ns }) => {
                reply(Message::Pong { number, sent_ns, received_ns: came_ns, returned_ns: now_ns() })?;
            }
            Some(Message::Car { train, number }) => {
                if arrivals.train != train {
                    arrivals = Arrivals::of(train);
                }
                arrivals.book(number, length as f64 + f64::from(HEADER_BYTES), came_ns);
            }
            Some(Message::Ask { train }) => {
                let empty = Arrivals::of(train);
                let of = if arrivals.train == train { &arrivals } else { &empty };
                reply(Message::Tally { train, cars: of.cars, bytes_per_s: of.bytes_per_s() })?;
            }
            // The client asks again where the first request may have been lost.
            Some(Message::Send { train, plan }) if last_sent != Some(train) => {
                last_sent = Some(train);
                send(socket, from, train, plan.bounded())?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether to wait again: nothing arrived in time, or the other end was not there.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::TimedOut
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionRefused
    )
}
