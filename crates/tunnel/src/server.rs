//! The server: one TUN device, and a session with each client.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use ipnet::IpNet;
use kendall_curve::curvecp::PublicKey;
use kendall_curve::{KeyDirectory, Stream};
use kendall_remote::opening::{Hello, Service, VERSION, encode_refused};
use kendall_remote::{AuthorizedKeys, Sessions, Stop};
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::addresses::{Addresses, Assigned, Pool};
use crate::device::Device;
use crate::error::TunnelError;
use crate::frames::Frames;
use crate::outbox::Outbox;
use crate::protocol::{Answer, PACKET, REQUEST, Request};
use crate::{offload, packet, routes};

/// A client that has not asked for addresses by then loses its session.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// Connections of one key at once, at most. A client that comes again before its last connection has ended must not wait for that,
/// and one key must not take the places of all.
const MOST_PER_KEY: usize = 4;

/// Settings of a server of tunnels.
#[derive(Debug)]
pub struct ServerSettings {
    /// The domain name that clients have to name.
    pub name: String,
    /// The server's key.
    pub keys: KeyDirectory,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The clients that it admits.
    pub authorized: Arc<AuthorizedKeys>,
    /// The networks of the tunnel.
    pub pool: Pool,
    /// The file of the addresses that clients have.
    pub addresses: PathBuf,
    /// The name of the TUN device; `%d` in it becomes the first free number.
    pub device: String,
    /// The MTU of all devices, in bytes; one of [`MTUS`](crate::MTUS).
    pub mtu: u16,
    /// Clients at once, at most; of one key, at most four.
    pub most: usize,
    /// Whether clients reach each other.
    pub client_to_client: bool,
}

/// A client that is connected.
struct Client {
    assigned: Assigned,
    joined_udp: bool,
    outbox: Outbox,
    /// Notified when the same key connects again.
    replaced: Notify,
}

/// What sessions share: it passes packets between the device and the clients.
struct Switch {
    device: Device,
    pool: Pool,
    mtu: u16,
    client_to_client: bool,
    authorized: Arc<AuthorizedKeys>,
    addresses: Arc<Mutex<Addresses>>,
    clients: RwLock<HashMap<IpAddr, Arc<Client>>>,
}

/// Serves tunnels until `stop`. `bound` is called with the address and the name of the TUN device.
///
/// # Errors
/// [`TunnelError::Overlap`], [`TunnelError::Device`], [`TunnelError::File`], and what the socket brings.
pub async fn serve(
    settings: ServerSettings,
    bound: impl FnOnce(SocketAddr, &str),
    stop: impl Future<Output = ()>,
) -> Result<(), TunnelError> {
    let pool = settings.pool;
    pool.networks().try_for_each(|network| routes::check_free(&network))?;
    let addresses = Addresses::open(&settings.addresses, pool)?;
    let switch = Arc::new(Switch {
        device: Device::new(&settings.device, &pool.server(), settings.mtu)?,
        pool,
        mtu: settings.mtu,
        client_to_client: settings.client_to_client,
        authorized: settings.authorized.clone(),
        addresses: Arc::new(Mutex::new(addresses)),
        clients: RwLock::default(),
    });
    let sessions = Sessions {
        name: settings.name,
        keys: settings.keys,
        listen: settings.listen,
        authorized: settings.authorized,
        most: settings.most,
        most_per_key: settings.most.min(MOST_PER_KEY),
    };
    let serving = kendall_remote::serve(
        sessions,
        |address| bound(address, switch.device.name()),
        |stream, client, stop| {
            let switch = switch.clone();
            async move { switch.session(stream, &client, stop).await }
        },
        stop,
    );
    tokio::select! {
        served = serving => Ok(served?),
        failed = switch.device.read(|header, packet| switch.to_client(header, packet)) => failed,
    }
}

impl Switch {
    /// Serves one client, whose name is for the log.
    async fn session(&self, stream: Stream, name: &str, stop: Stop) {
        let connection = stream.connection().clone();
        let key = connection.peer();
        let (inward, mut outward) = tokio::io::split(stream);
        let mut frames = Frames::new(inward);
        let requested = tokio::select! {
            requested = timeout(REQUEST_LIMIT, request(&mut frames)) => requested,
            () = stop.clone().requested() => return,
        };
        let opened = match requested {
            Ok(Ok(request)) => self.assign(key).await.map(|assigned| (request, assigned)),
            Ok(Err(TunnelError::Lost(_))) => {
                return tracing::debug!("{name} ({key:?}): left without a request");
            }
            Ok(Err(error)) => Err(error),
            Err(_) => return tracing::warn!("{name} ({key:?}): no request within {REQUEST_LIMIT:?}"),
        };
        let (Request { joined_udp }, assigned) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!("{name} ({key:?}) is refused: {error}");
                let mut bytes = Vec::new();
                encode_refused(&mut bytes, &error.to_string());
                _ = outward.write_all(&bytes).await;
                _ = outward.shutdown().await;
                return;
            }
        };
        let client =
            Arc::new(Client { assigned, joined_udp, outbox: Outbox::new(), replaced: Notify::new() });
        self.enter(&client);
        let from = connection.address().map_or_else(String::new, |address| format!(" from {address}"));
        tracing::info!("{name} ({key:?}){from} has {assigned}");
        let mut bytes = Vec::new();
        Answer { mtu: self.mtu, joined_udp: self.device.joins_udp(), assigned }.encode(&mut bytes);
        let (mut arrived, mut refused) = (0_u64, 0_u64);
        let packets = async {
            loop {
                frames
                    .receive(|kind, body| {
                        arrived += 1;
                        refused += u64::from(kind != PACKET || !self.accept(&client, body));
                        Ok(())
                    })
                    .await?;
            }
        };
        let answer_and_packets = async {
            outward.write_all(&bytes).await.map_err(TunnelError::Lost)?;
            client.outbox.drain(outward).await
        };
        let ended: Result<(), TunnelError> = tokio::select! {
            lost = packets => lost,
            lost = answer_and_packets => lost,
            () = stop.requested() => Ok(()),
            () = client.replaced.notified() => Ok(()),
        };
        self.leave(&client);
        let how = ended.err().map_or_else(|| "it was ended here".to_owned(), |error| error.to_string());
        let dropped = client.outbox.dropped();
        tracing::info!(
            "{name} ({key:?}) is gone: {how}. {arrived} packets came from it, of which {refused} were refused; {dropped} to it \
             were dropped"
        );
    }

    /// The addresses of a client; a new one is written to the file first.
    async fn assign(&self, key: PublicKey) -> Result<Assigned, TunnelError> {
        let (addresses, authorized) = (self.addresses.clone(), self.authorized.clone());
        let assign = move || {
            let mut addresses = addresses.lock().unwrap_or_else(PoisonError::into_inner);
            addresses.of(&key, |owner| authorized.name_of(owner).is_some())
        };
        tokio::task::spawn_blocking(assign).await.map_err(|error| TunnelError::Lost(error.into()))?
    }

    /// Sends packets to a client from now on, in place of an earlier connection of its key.
    fn enter(&self, client: &Arc<Client>) {
        let mut clients = self.clients.write().unwrap_or_else(PoisonError::into_inner);
        for address in client.assigned.client_addresses() {
            if let Some(former) = clients.insert(address, client.clone()) {
                former.replaced.notify_one();
            }
        }
    }

    fn leave(&self, client: &Arc<Client>) {
        let mut clients = self.clients.write().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|_, current| !Arc::ptr_eq(current, client));
    }

    fn client_at(&self, address: IpAddr) -> Option<Arc<Client>> {
        self.clients.read().unwrap_or_else(PoisonError::into_inner).get(&address).cloned()
    }

    /// Passes on a packet that this machine sends to a client.
    fn to_client(&self, header: &mut [u8], bytes: &mut [u8]) {
        let client = packet::addresses(bytes).and_then(|(_, destination)| self.client_at(destination));
        if let Some(client) = client {
            packet::clamp_mss(bytes, self.mtu, offload::is_partial(header));
            client.send(header, bytes);
        }
    }

    /// Passes on a packet from a client if it may: false where it may not.
    fn accept(&self, client: &Client, framed: &[u8]) -> bool {
        let Some((header, bytes)) = framed.split_at_checked(offload::BYTES) else { return false };
        let Some((source, destination)) = packet::addresses(bytes) else { return false };
        let is_own = client.assigned.client_addresses().any(|address| address == source);
        if !is_own || !offload::is_valid(header, bytes.len(), self.mtu) {
            return false;
        }
        let is_inside = self.pool.networks().any(|network| network.contains(&destination));
        if !is_inside || self.pool.server().client_addresses().any(|address| address == destination) {
            self.device.write(&offload::from_wire(framed));
            return true;
        }
        let other = self.client_at(destination).filter(|_| self.client_to_client);
        if let Some(other) = &other {
            let mut framed = offload::from_wire(framed).into_owned();
            let (header, bytes) = framed.split_at_mut(offload::BYTES);
            other.send(header, bytes);
        }
        other.is_some()
    }
}

impl Client {
    /// Adds a packet to what waits for the client, as its kernel takes it.
    fn send(&self, header: &[u8], bytes: &mut [u8]) {
        if offload::is_joined_udp(header) && !self.joined_udp {
            offload::split_udp(header, bytes, |header, packet| self.outbox.push(header, packet));
        } else {
            self.outbox.push(header, bytes);
        }
    }
}

/// Waits for what a client asks for.
async fn request<R: AsyncRead + Unpin>(frames: &mut Frames<R>) -> Result<Request, TunnelError> {
    let (mut hello, mut request) = (None, None);
    while request.is_none() {
        frames
            .receive(|kind, body| {
                match (hello, kind) {
                    (None, _) => hello = Some(Hello::decode(kind, body)?),
                    (Some(_), REQUEST) => request = Some(Request::decode(body)?),
                    (Some(_), _) => {}
                }
                Ok(())
            })
            .await?;
        if let Some(Hello { version, service }) = hello {
            if version != VERSION {
                return Err(TunnelError::Protocol(format!(
                    "the client speaks version {version} of the protocol, the server version {VERSION}: use one version of kendall"
                )));
            }
            if service != Service::Tunnel {
                return Err(TunnelError::Protocol(
                    "this server has tunnels only (kendall curve tunnel)".to_owned(),
                ));
            }
        }
    }
    Ok(request.expect("the loop waits for it"))
}

impl Pool {
    /// The pool's networks.
    fn networks(&self) -> impl Iterator<Item = IpNet> {
        self.server().networks()
    }
}
