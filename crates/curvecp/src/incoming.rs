//! What an endpoint does with a datagram. Every check that fails ends in silence.

use crate::connection::{CloseReason, Connection, ConnectionName, Stage};
use crate::endpoint::{COOKIES, Endpoint, Event};
use crate::keys::erasing_stack;
use crate::layer::{MessageLayer, Role};
use crate::packet::{ClientMessageHeader, HelloHeader, InitiateHeader, Packet, ServerMessageHeader};
use crate::seal::BATCH;
use crate::server::Accepted;
use crate::slots::ConnectionId;
use std::net::SocketAddr;
use std::time::Duration;

impl Endpoint {
    /// Takes a datagram, which it decrypts in place.
    pub fn handle_datagram(&mut self, now: Duration, from: SocketAddr, datagram: &mut [u8]) {
        self.handle_datagrams(now, from, datagram, datagram.len());
    }

    /// Takes datagrams of one length from one address, one after another, as UDP_GRO gives them; the last may be shorter.
    pub fn handle_datagrams(
        &mut self,
        now: Duration,
        from: SocketAddr,
        mut datagrams: &mut [u8],
        segment: usize,
    ) {
        while !datagrams.is_empty() && segment > 0 {
            let segment = segment.min(datagrams.len());
            let (run, rest) = datagrams.split_at_mut(segment * run_length(datagrams, segment));
            self.handle_run(now, from, run, segment);
            datagrams = rest;
        }
    }

    /// Takes one packet, or several Message packets of one connection.
    fn handle_run(&mut self, now: Duration, from: SocketAddr, run: &mut [u8], segment: usize) {
        match Packet::decode(&mut run[..segment]) {
            Some(Packet::Hello(header, sealed)) => self.handle_hello(now, from, &header, sealed),
            Some(Packet::Initiate(header, sealed)) => _ = self.handle_initiate(now, from, &header, sealed),
            Some(Packet::Cookie(header, sealed)) => {
                let Some(&id) = self.by_extension.get(&header.to) else { return };
                let connection = self.slots.get_mut(id).expect("tables name connections that exist");
                connection.cookie(now, from, &header, sealed, &mut *self.rng, &mut *self.nonces);
                self.enqueue(id);
            }
            Some(Packet::ClientMessage(header, _)) => {
                if self.server.as_ref().is_none_or(|server| header.to != server.config.extension) {
                    return;
                }
                let Some(&id) = self.by_client.get(&header.client) else { return };
                self.handle_messages(now, id, from, run, segment);
            }
            Some(Packet::ServerMessage(header, _)) => {
                let Some(&id) = self.by_extension.get(&header.to) else { return };
                let connection = self.slots.get_mut(id).expect("tables name connections that exist");
                if connection.session().is_some_and(|session| header.from == session.ends().theirs) {
                    self.handle_messages(now, id, from, run, segment);
                }
            }
            None => self.refuse(from),
        }
    }

    fn refuse(&mut self, from: SocketAddr) {
        if let Some(server) = &mut self.server {
            server.refusals.count(from.ip());
        }
    }

    fn handle_messages(
        &mut self,
        now: Duration,
        id: ConnectionId,
        from: SocketAddr,
        run: &mut [u8],
        segment: usize,
    ) {
        let connection = self.slots.get_mut(id).expect("tables name connections that exist");
        let received = connection.receive(now, from, run, segment);
        if received.accepted == 0 {
            return;
        }
        if connection.establish() {
            self.events.push_back(Event::Connected(id));
        }
        if received.moved {
            self.events.push_back(Event::Moved(id, from));
        }
        self.enqueue(id);
    }

    fn handle_hello(&mut self, now: Duration, from: SocketAddr, header: &HelloHeader, sealed: &mut [u8]) {
        let Some(server) = &mut self.server else { return };
        let known = header.to != server.config.extension || self.by_client.contains_key(&header.client);
        if known || self.cookies.len() >= COOKIES || !server.admits(now, from, header) {
            return self.refuse(from);
        }
        let cookie = erasing_stack(|| {
            server.jar.rotate(now, &mut *self.rng);
            server.hello(now, from, header, sealed, &mut *self.rng, &mut *self.nonces)
        });
        match cookie {
            Some(cookie) => self.cookies.push_back((from, cookie)),
            None => self.refuse(from),
        }
    }

    fn handle_initiate(
        &mut self,
        now: Duration,
        from: SocketAddr,
        header: &InitiateHeader,
        sealed: &mut [u8],
    ) -> Option<()> {
        let server = self.server.as_mut().filter(|server| header.to == server.config.extension)?;
        if let Some(&id) = self.by_client.get(&header.client) {
            return self.handle_again(now, id, from, header, sealed);
        }
        let bytes = InitiateHeader::LENGTH + sealed.len();
        let Accepted { mut session, identity, capabilities, round_trip, message } = erasing_stack(|| {
            server.jar.rotate(now, &mut *self.rng);
            server.initiate(now, from, header, sealed, &mut *self.rng)
        })?;
        let config = server.config.message.clone();
        if self.by_client.len() >= server.config.max_connections {
            let silent_since = now.checked_sub(server.config.evictable_after)?;
            self.evict(silent_since)?;
        }
        let server = self.server.as_mut().expect("the server role does not end");
        server.jar.mark_used(now, header.client, &mut *self.rng);

        session.accept(from, header.counter, bytes, message);
        let mut layer = MessageLayer::new(config, Role::Server, self.rng.next_u64(), now);
        layer.assume_rtt(round_trip);
        layer.handle(now, message);
        let stage = Stage::Open(session);
        let id = self.slots.insert(Connection::new(now, ConnectionName::Key(header.client), layer, stage));
        self.by_client.insert(header.client, id);
        self.silence.insert((now, id));
        self.events.push_back(Event::NewConnection {
            id,
            client: identity,
            short_term: header.client,
            address: from,
            capabilities,
        });
        self.enqueue(id);
        Some(())
    }

    /// Takes a further Initiate of a connection: its message counts, the rest is known.
    fn handle_again(
        &mut self,
        now: Duration,
        id: ConnectionId,
        from: SocketAddr,
        header: &InitiateHeader,
        sealed: &mut [u8],
    ) -> Option<()> {
        let connection = self.slots.get_mut(id).expect("tables name connections that exist");
        let (message, moved) = connection.session()?.initiate(from, header.counter, sealed)?;
        connection.handle(now, message);
        if moved {
            connection.layer.path_changed();
            self.events.push_back(Event::Moved(id, from));
        }
        self.enqueue(id);
        Some(())
    }

    /// Closes the client that has been silent longest, and at least since the given instant.
    ///
    /// The order is brought up to date here only, from its front. An entry that moves stays out of the way until its client
    /// could be evicted again, so a full server does not scan all its clients for each new one.
    fn evict(&mut self, silent_since: Duration) -> Option<()> {
        loop {
            let &(listed, id) = self.silence.first().filter(|(listed, _)| *listed <= silent_since)?;
            let connection = self.slots.get_mut(id).expect("tables name connections that exist");
            if connection.heard == listed {
                self.close(id, CloseReason::Evicted);
                return Some(());
            }
            connection.listed = connection.heard;
            self.silence.insert((connection.heard, id));
            self.silence.remove(&(listed, id));
        }
    }
}

/// Packets at the start that can be opened together: Messages of equal length with the same extensions and C'.
fn run_length(datagrams: &[u8], segment: usize) -> usize {
    let same = match &datagrams[..segment.min(8)] {
        b"QvnQ5XlM" => ClientMessageHeader::LENGTH - 8,
        b"RL3aNMXM" => ServerMessageHeader::LENGTH - 8,
        _ => return 1,
    };
    let Some(first) = datagrams[..segment].get(..same) else { return 1 };
    datagrams.chunks_exact(segment).take(BATCH).take_while(|packet| packet.starts_with(first)).count()
}
