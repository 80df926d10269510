//! The whole server as on the command line, until a signal ends it.

use std::sync::mpsc;
use std::thread;

use crate::peer::{Peer, check_that_others_are_served, request_for};
use crate::running::options;
use kendall_testbed::alone;
use rustix::process::{Signal, getpid, kill_process};

#[test]
fn a_signal_ends_the_server_after_the_requests_in_flight() {
    // Signals are for the whole process.
    if !alone("signals::a_signal_ends_the_server_after_the_requests_in_flight") {
        return;
    }
    let (sender, addresses) = mpsc::channel();
    let server =
        thread::spawn(move || kendall_reverse::serve(options(), |address| sender.send(address).unwrap()));
    let address = addresses.recv().unwrap();
    check_that_others_are_served(address);
    let x = 900_000;
    let in_flight = Peer::send(address, &request_for(x, 0, 1_000_000));
    // Connections are accepted in order, so by now the server has that request.
    check_that_others_are_served(address);
    kill_process(getpid(), Signal::TERM).unwrap();
    assert_eq!(in_flight.answer(), x);
    server.join().unwrap().unwrap();
}
