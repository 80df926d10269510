//! The client: a TUN device with the addresses that the server assigned, and a connection that is opened again when it is
//! lost.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use kendall_curve::curvecp::MessageConfig;
use kendall_curve::{Endpoint, KeyDirectory, Stream};
use kendall_remote::opening::{Hello, REFUSED, Service, VERSION, decode_refused};
use kendall_remote::{Dialled, Host, dial_with};
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::{sleep, timeout};

use crate::device::Device;
use crate::error::TunnelError;
use crate::frames::Frames;
use crate::outbox::Outbox;
use crate::protocol::{ASSIGNED, Answer, PACKET, Request};
use crate::{offload, packet, routes};

/// The pauses between attempts to connect: the first, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The connection is lost after this time without an answer: a server that was killed and started again does not know it.
const SILENCE: Duration = Duration::from_secs(15);

/// How long the last packets may take when the tunnel ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// Settings of a client of a tunnel.
#[derive(Debug)]
pub struct ClientSettings {
    /// The server.
    pub host: Host,
    /// The client's key.
    pub keys: KeyDirectory,
    /// The name of the TUN device; `%d` in it becomes the first free number.
    pub device: String,
    /// Networks that are reached through the tunnel, besides its own.
    pub routes: Vec<IpNet>,
    /// Give up an attempt to connect after this time.
    pub timeout: Duration,
}

/// A connection whose server has assigned addresses.
struct Opened {
    server: Option<SocketAddr>,
    frames: Frames<ReadHalf<Stream>>,
    outward: WriteHalf<Stream>,
    answer: Answer,
}

/// This machine's end of the tunnel, which outlives connections.
struct Interface {
    device: Device,
    answer: Answer,
    /// The address of the server, which its routes leave out.
    server: Option<IpAddr>,
}

/// Holds a tunnel until `stop`. `report` gets a line whenever the tunnel comes up or is interrupted.
///
/// # Errors
/// Where the first connection cannot be opened, the device or a route cannot be set, or the device fails. A connection that
/// is lost later is opened again.
pub async fn connect(
    settings: ClientSettings,
    mut report: impl FnMut(&str),
    stop: impl Future<Output = ()>,
) -> Result<(), TunnelError> {
    let mut endpoint = None;
    let result = tokio::select! {
        failed = hold(&settings, &mut endpoint, &mut report) => failed,
        () = stop => Ok(()),
    };
    // The stream was dropped, and the server learns of it now, not by a time-out.
    if let Some(endpoint) = endpoint {
        _ = timeout(FAREWELL, endpoint.idle()).await;
    }
    result
}

/// Connects again and again, for ever. The socket of the current connection is left in `endpoint`.
async fn hold(
    settings: &ClientSettings,
    endpoint: &mut Option<Endpoint>,
    report: &mut impl FnMut(&str),
) -> Result<(), TunnelError> {
    let mut interface: Option<Interface> = None;
    let mut pause = FIRST_PAUSE;
    // Routes through the tunnel may cover the resolver, which then answers only while the tunnel is up.
    let mut known = None;
    loop {
        let error = match open(settings, known, endpoint).await {
            Ok(opened) => {
                pause = FIRST_PAUSE;
                known = opened.server.or(known);
                let current = match interface.take().filter(|interface| interface.fits(settings, &opened)) {
                    Some(current) => current,
                    None => Interface::new(settings, &opened)?,
                };
                let (name, assigned, mtu) =
                    (current.device.name(), opened.answer.assigned, opened.answer.mtu);
                report(&format!("{name} is up: {assigned}; MTU {mtu}"));
                let Err(error) = current.pass(opened).await;
                interface = Some(current);
                error
            }
            Err(error) => error,
        };
        let is_passing = error.is_passing() || matches!(error, TunnelError::Refused(_));
        if interface.is_none() || !is_passing {
            return Err(error);
        }
        report(&format!("{error}. The next attempt to connect is in {pause:?}"));
        sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Opens a connection and waits for addresses. `known` is where the server answered before.
async fn open(
    settings: &ClientSettings,
    known: Option<SocketAddr>,
    slot: &mut Option<Endpoint>,
) -> Result<Opened, TunnelError> {
    let limits = MessageConfig {
        idle_timeout: Some(SILENCE),
        keep_alive: Some(SILENCE / 3),
        ..MessageConfig::default()
    };
    let dialled = dial_with(&settings.host, &settings.keys, limits, known).await?;
    let no_answer = dialled.no_answer();
    let connection = dialled.connection().clone();
    let Dialled { endpoint, stream, .. } = dialled;
    *slot = Some(endpoint);
    let (inward, mut outward) = tokio::io::split(stream);
    let mut frames = Frames::new(inward);
    let mut bytes = Vec::new();
    Hello { version: VERSION, service: Service::Tunnel }.encode(&mut bytes);
    // Whether this kernel takes joined datagrams shows only once there is a device; they come apart at the server.
    Request { joined_udp: false }.encode(&mut bytes);
    let answer = async {
        outward.write_all(&bytes).await.map_err(TunnelError::Lost)?;
        answer(&mut frames).await
    };
    let answer = tokio::select! {
        answer = answer => answer?,
        failed = no_answer.within(settings.timeout) => return Err(failed.into()),
    };
    let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let server = connection.address().map(canonical);
    routes::check_assigned(answer.assigned, server.map(|server| server.ip()), &settings.routes)?;
    Ok(Opened { server, frames, outward, answer })
}

/// Waits for the server's answer.
async fn answer(frames: &mut Frames<ReadHalf<Stream>>) -> Result<Answer, TunnelError> {
    let mut answer = None;
    while answer.is_none() {
        frames
            .receive(|kind, body| {
                match kind {
                    ASSIGNED => answer = Some(Answer::decode(body)?),
                    REFUSED => return Err(TunnelError::Refused(decode_refused(body)?)),
                    // Packets that arrive before there is a device are lost, as packets may be.
                    _ => {}
                }
                Ok(())
            })
            .await?;
    }
    Ok(answer.expect("the loop waits for it"))
}

impl Interface {
    fn new(settings: &ClientSettings, opened: &Opened) -> Result<Self, TunnelError> {
        let Answer { assigned, mtu, .. } = opened.answer;
        assigned.networks().try_for_each(|network| routes::check_free(&network))?;
        let device = Device::new(&settings.device, &assigned, mtu)?;
        let server = opened.server.map(|server| server.ip());
        routes::add(&settings.routes, server, device.name())?;
        Ok(Self { device, answer: opened.answer, server })
    }

    /// Whether the interface serves another connection, too: the addresses are the same, and no route covers the server.
    fn fits(&self, settings: &ClientSettings, opened: &Opened) -> bool {
        let covers = |server: IpAddr| settings.routes.iter().any(|network| network.contains(&server));
        let server = opened.server.map(|server| server.ip());
        let is_beside = server == self.server || !server.is_some_and(covers);
        self.answer == opened.answer && is_beside
    }

    /// Passes packets both ways until the connection is lost or the device fails.
    async fn pass(&self, opened: Opened) -> Result<std::convert::Infallible, TunnelError> {
        let Opened { mut frames, outward, answer, .. } = opened;
        let outbox = Outbox::new();
        let from_device = self.device.read(|header, bytes| {
            packet::clamp_mss(bytes, answer.mtu, offload::is_partial(header));
            if offload::is_joined_udp(header) && !answer.joined_udp {
                offload::split_udp(header, bytes, |header, packet| outbox.push(header, packet));
            } else {
                outbox.push(header, bytes);
            }
        });
        let to_device = async {
            loop {
                frames
                    .receive(|kind, body| {
                        if kind == PACKET && is_for(&answer, body) {
                            self.device.write(&offload::from_wire(body));
                        }
                        Ok(())
                    })
                    .await?;
            }
        };
        let ended: Result<(), TunnelError> = tokio::select! {
            failed = from_device => failed,
            lost = outbox.drain(outward) => lost,
            lost = to_device => lost,
        };
        Err(ended.expect_err("each of them ends by an error alone"))
    }
}

/// Whether a packet from the server is one for this machine.
fn is_for(answer: &Answer, framed: &[u8]) -> bool {
    let Some((header, bytes)) = framed.split_at_checked(offload::BYTES) else { return false };
    packet::addresses(bytes).is_some_and(|(_, destination)| {
        answer.assigned.client_addresses().any(|address| address == destination)
            && offload::is_valid(header, bytes.len(), answer.mtu)
    })
}
