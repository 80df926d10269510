//! A link measured before it is used, from both of its ends.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::calibrate::{Calibration, measure, respond};
use crate::emulated::{CLIENT, EmulatedLink, SERVER};
use crate::error::LinkError;
use crate::protocol::Asked;

impl EmulatedLink {
    /// Lets nothing but a measurement cross a link like this, for some seconds. It must not be started, and is not
    /// afterwards.
    ///
    /// # Errors
    /// Fails where the link does, or where its ends cannot be entered.
    pub fn measure(&mut self, asked: &Asked, seed: u64) -> Result<Calibration, LinkError> {
        let failed = || LinkError::step("open a socket to measure the link with");
        let bind = |address| UdpSocket::bind((address, 0)).map_err(failed());
        let server = self.server().visit(|| bind(SERVER))??;
        let client = self.client().visit(|| bind(CLIENT))??;
        let to = server.local_addr().map_err(failed())?;
        self.start(asked, seed, None)?;
        let done = AtomicBool::new(false);
        let found = thread::scope(|scope| {
            let answering = scope.spawn(|| respond(&server, &done));
            let found = measure(&client, to, asked);
            done.store(true, Ordering::Relaxed);
            let gone =
                |_| Err(LinkError::step("answer the measurement")(io::Error::other("its thread failed")));
            answering.join().unwrap_or_else(gone).and(found)
        });
        self.stop(None)?;
        found
    }
}
