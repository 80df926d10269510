//! A TUN device. It vanishes, with its addresses and routes, when its file is closed, however the program ends.

use std::io;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::addresses::Assigned;
use crate::error::TunnelError;
use crate::offload;

/// The longest packet that a TUN device reads or writes, its header included.
const LONGEST: usize = offload::BYTES + u16::MAX as usize;

/// A TUN device with offloads.
pub(crate) struct Device {
    file: AsyncFd<SyncDevice>,
    name: String,
}

impl Device {
    /// Makes a device, gives it the first address of each family, and lets it pass packets.
    pub(crate) fn new(name: &str, addresses: &Assigned, mtu: u16) -> Result<Self, TunnelError> {
        let failed = |source| TunnelError::Device { name: name.to_owned(), source };
        let (v4, v6) = (addresses.v4, addresses.v6);
        let mut builder =
            DeviceBuilder::new().name(name).mtu(mtu).offload(true).ipv4(v4.addr(), v4.prefix_len(), None);
        if let Some(v6) = v6 {
            builder = builder.ipv6(v6.addr(), v6.prefix_len());
        }
        let device = builder.build_sync().map_err(failed)?;
        let given = device.name().map_err(failed)?;
        device.set_nonblocking(true).map_err(failed)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for types that lie about their descriptor; a TUN device cannot"
        )]
        let file = AsyncFd::with_interest(device, Interest::READABLE | Interest::WRITABLE).map_err(failed)?;
        Ok(Self { file, name: given })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the kernel takes joined datagrams (Linux 6.2 and later).
    pub(crate) fn joins_udp(&self) -> bool {
        self.file.get_ref().udp_gso()
    }

    /// Reads packets, for ever: `each` gets the offload header and the packet.
    ///
    /// # Errors
    /// [`TunnelError::DeviceLost`].
    pub(crate) async fn read(&self, mut each: impl FnMut(&mut [u8], &mut [u8])) -> Result<(), TunnelError> {
        let mut buffer = vec![0; LONGEST];
        loop {
            let mut ready = self.file.readable().await.map_err(TunnelError::DeviceLost)?;
            while let Ok(read) = ready.try_io(|file| file.get_ref().recv(&mut buffer)) {
                match read {
                    Ok(length) if length > offload::BYTES => {
                        let (header, packet) = buffer[..length].split_at_mut(offload::BYTES);
                        each(header, packet);
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(TunnelError::DeviceLost(error)),
                }
                // Other tasks of this thread may have work, too.
                tokio::task::consume_budget().await;
            }
        }
    }

    /// Writes a packet with its header; the kernel may drop it, as any device may.
    pub(crate) fn write(&self, framed: &[u8]) {
        if let Err(error) = self.file.get_ref().send(framed) {
            tracing::debug!("{}: a packet of {} bytes is dropped: {error}", self.name, framed.len());
        }
    }
}
