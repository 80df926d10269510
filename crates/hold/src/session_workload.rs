//! The requests of users with sessions: each names the user whose session gets the answer. The i-th is a pure function of (seed,
//! i) and of the user who sends it.

use std::net::SocketAddr;
use std::num::NonZeroU32;

use bytes::Bytes;
use kendall_load::{
    ConnectionKind, Request, RequestClass, Route, Session, SessionRequest, Sessions as UserSessions, Workload,
};
use kendall_stats::random::{Purpose, derive, stream, unit};

use crate::client::SessionClient;
use crate::protocol::session::{Request as Asked, encode_request};

/// The workload of a synthetic server with sessions.
#[derive(Clone, Debug)]
pub struct HoldSessionWorkload {
    server: SocketAddr,
    seed: u64,
    users: NonZeroU32,
    /// The share of requests whose answer goes to another user, from 0 to 1.
    to_others: f64,
}

impl HoldSessionWorkload {
    /// The requests of one seed, for one server: of this many users, which send this share of their requests for another user,
    /// from 0 to 1. A single user sends all for itself.
    pub fn new(server: SocketAddr, seed: u64, users: NonZeroU32, to_others: f64) -> Self {
        Self { server, seed, users, to_others }
    }

    /// The nonce of the i-th request, which identifies its answer.
    pub fn nonce(&self, index: u64) -> u64 {
        derive(self.seed, Purpose::Request, index)
    }

    /// The user who gets the answer to the i-th request, sent by this user.
    pub fn to(&self, index: u64, user: u32) -> u32 {
        let mut rng = stream(self.seed, Purpose::Route, index);
        let others = self.users.get() - 1;
        if others == 0 || unit(&mut rng) >= self.to_others {
            return user;
        }
        let further = 1 + ((unit(&mut rng) * f64::from(others)) as u32).min(others - 1);
        (u64::from(user) + u64::from(further)).rem_euclid(u64::from(self.users.get())) as u32
    }
}

impl Workload for HoldSessionWorkload {
    fn request(&self, _: u64) -> Request {
        Request::new(0, Bytes::new())
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new("all", 1.0)]
    }

    fn route(&self) -> Route<'_> {
        Route::Sessions(self.server, ConnectionKind::TCP, self)
    }
}

impl UserSessions for HoldSessionWorkload {
    fn users(&self) -> u32 {
        self.users.get()
    }

    fn sender(&self, index: u64) -> u32 {
        (index % u64::from(self.users.get())) as u32
    }

    fn message(&self, index: u64, user: u32) -> SessionRequest {
        let (nonce, to) = (self.nonce(index), u64::from(self.to(index, user)));
        SessionRequest { key: nonce, bytes: Bytes::copy_from_slice(&encode_request(Asked { nonce, to })) }
    }

    fn session(&self, user: u32) -> Box<dyn Session> {
        Box::new(SessionClient::new(user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_go_to_others_with_the_given_share() {
        let users = NonZeroU32::new(5).unwrap();
        let workload = HoldSessionWorkload::new(([127, 0, 0, 1], 1).into(), 3, users, 0.3);
        let to: Vec<u32> = (0..10_000).map(|index| workload.to(index, 4)).collect();
        assert!(to.iter().all(|&user| user < 5));
        let count = |user: u32| to.iter().filter(|&&one| one == user).count() as f64;
        // Five standard errors of a share of 10,000 draws: a false alarm in 1.7 million.
        assert!((count(4) / 1e4 - 0.7).abs() < 5.0 * (0.21f64 / 1e4).sqrt(), "{}", count(4));
        assert!((0..4).all(|user| (count(user) / 1e4 - 0.075).abs() < 5.0 * (0.07f64 / 1e4).sqrt()));
        let alone = HoldSessionWorkload::new(([127, 0, 0, 1], 1).into(), 3, NonZeroU32::MIN, 1.0);
        assert!((0..100).all(|index| alone.to(index, 0) == 0));
    }
}
