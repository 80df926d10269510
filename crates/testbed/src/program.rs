//! A server as a separate program.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::waiting::wait_until;

/// A port that was free a moment ago.
///
/// # Panics
/// Where no port is free.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener.local_addr().expect("it is bound").port()
}

/// A program that serves, ended with SIGTERM when this is dropped.
#[derive(Debug)]
pub struct Program {
    /// The address at which it answers.
    pub address: SocketAddr,
    child: Child,
}

impl Program {
    /// Starts a program that will listen on a port of this machine, and waits until it accepts connections there.
    ///
    /// # Panics
    /// Where it cannot be started or does not listen within [`crate::LIMIT`].
    pub fn start(mut command: Command, port: u16) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let child = command.stdin(Stdio::null()).spawn().expect("the program can be started");
        let program = Self { address, child };
        wait_until("the program listens", || TcpStream::connect(address).is_ok());
        program
    }

    /// The program's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::has_peer;

    #[test]
    fn a_program_answers_until_it_is_dropped() {
        if !has_peer("python3", "--version") {
            return;
        }
        let port = free_port();
        let mut command = Command::new("python3");
        command.args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]).stderr(Stdio::null());
        let program = Program::start(command, port);
        let address = program.address;
        assert!(TcpStream::connect(address).is_ok());
        drop(program);
        assert!(TcpStream::connect(address).is_err());
    }
}
