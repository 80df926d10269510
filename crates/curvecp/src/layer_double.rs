//! Stand-in for the message layer: unreliable, sends what is written once.
use std::time::Duration;
#[derive(Clone, Debug, Default)]
pub struct MessageConfig {}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    Bytes(usize),
    Blocked,
    Finished,
    Failed,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerState {
    Open,
    Closing,
    Drained,
    Failed(Failure),
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    IdleTimeout,
}
#[derive(Debug)]
pub struct MessageLayer {
    role: Role,
    id: u32,
    echo: Option<u32>,
    out: Vec<u8>,
    input: Vec<u8>,
    heard: bool,
    ping_at: Duration,
}
impl MessageLayer {
    pub fn new(_: MessageConfig, role: Role, _seed: u64, now: Duration) -> Self {
        Self { role, id: 0, echo: None, out: vec![], input: vec![], heard: false, ping_at: now }
    }
    pub fn handle(&mut self, _: Duration, message: &[u8]) {
        self.heard = true;
        if message.len() < 48 {
            return;
        }
        let id = u32::from_le_bytes(message[..4].try_into().unwrap());
        if id != 0 {
            self.echo = Some(id)
        }
        let d = usize::from(u16::from_le_bytes(message[38..40].try_into().unwrap()));
        self.input.extend_from_slice(&message[message.len() - d..]);
    }
    pub fn poll_transmit(&mut self, now: Duration, limit: usize, out: &mut [u8]) -> Option<usize> {
        let ping = self.role == Role::Client && !self.heard && now >= self.ping_at;
        if self.out.is_empty() && self.echo.is_none() && !ping {
            return None;
        }
        if ping {
            self.ping_at = now + Duration::from_secs(1)
        }
        let d = self.out.len().min(limit - 48);
        let len = (48 + d).next_multiple_of(16).max(192);
        out[..len].fill(0);
        if d > 0 || ping {
            self.id += 1;
            out[..4].copy_from_slice(&self.id.to_le_bytes());
        }
        out[4..8].copy_from_slice(&self.echo.take().unwrap_or(0).to_le_bytes());
        out[38..40].copy_from_slice(&(d as u16).to_le_bytes());
        out[len - d..len].copy_from_slice(&self.out.drain(..d).collect::<Vec<_>>());
        Some(len)
    }
    pub fn next_deadline(&self) -> Option<Duration> {
        (self.role == Role::Client && !self.heard).then_some(self.ping_at)
    }
    pub fn handle_timeout(&mut self, _: Duration) {}
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        self.out.extend_from_slice(bytes);
        bytes.len()
    }
    pub fn writable(&self) -> usize {
        1
    }
    pub fn readable(&self) -> bool {
        !self.input.is_empty()
    }
    pub fn finish(&mut self) {}
    pub fn abort(&mut self) {}
    pub fn read(&mut self, into: &mut [u8]) -> Read {
        let n = into.len().min(self.input.len());
        if n == 0 {
            return Read::Blocked;
        }
        into[..n].copy_from_slice(&self.input.drain(..n).collect::<Vec<_>>());
        Read::Bytes(n)
    }
    pub fn state(&self) -> LayerState {
        LayerState::Open
    }
}
