//! A TUN device: packets that the kernel sends over it can be read from a file, and packets written to the file arrive at the
//! kernel.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::frame::{Frame, MTU_BYTES};
use crate::port::Port;

/// A TUN device of one side.
pub(crate) struct TunDevice {
    device: SyncDevice,
}

impl TunDevice {
    /// Makes a device in the calling thread's namespace. Dropping it removes the device.
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let device = DeviceBuilder::new().name(name).mtu(MTU_BYTES as u16).enable(false).build_sync()?;
        device.set_nonblocking(true)?;
        Ok(Self { device })
    }
}

impl Port for TunDevice {
    fn frame(&self) -> Frame {
        Frame::empty(0)
    }

    fn receive(&self, frame: &mut Frame) -> io::Result<Option<i64>> {
        match self.device.recv(frame.room()) {
            Ok(length) => {
                frame.filled(length);
                // The kernel does not stamp packets here, so the time of reading counts.
                Ok(Some(kendall_record::clock::now_ns()))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.raw_os_error() == Some(Errno::EINTR as i32) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn send(&self, frame: &Frame) -> io::Result<()> {
        self.device.send(frame.bytes()).map(drop)
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
