//! Processes that are killed, and processes that stop and continue.

use std::time::Instant;

use kendall_testbed::hostile::Draw;
use rustix::process::Signal;

use super::kind::{Fault, NotInjected, PLAIN, always, wait};
use crate::subjects::{Requests, Running, Subject};

pub(super) const SERVER_KILLED: Fault = Fault {
    name: "server-killed",
    what: "server killed (SIGKILL)",
    inject: |running, _, draw| killed(running, "server", draw),
    ..PLAIN
};

pub(super) const SERVER_STOPPED: Fault = Fault {
    name: "server-stopped",
    what: "server stopped (SIGSTOP) for 0.5 to 3 s",
    inject: |running, _, draw| Ok(stopped(running, "server", draw)),
    ..PLAIN
};

pub(super) const CLIENT_KILLED: Fault = Fault {
    name: "client-killed",
    what: "client killed",
    not_for: has_no_client,
    others_are_served: always,
    inject: |_, load, _| {
        load.signal(Signal::KILL);
        Ok(Instant::now())
    },
    ..PLAIN
};

pub(super) const CLIENT_STOPPED: Fault = Fault {
    name: "client-stopped",
    what: "client stopped for 0.5 to 3 s",
    not_for: has_no_client,
    others_are_served: always,
    inject: |_, load, draw| {
        load.signal(Signal::STOP);
        wait(draw, 500, 3000);
        load.signal(Signal::CONT);
        Ok(Instant::now())
    },
    ..PLAIN
};

pub(super) const HELPER_KILLED: Fault = Fault {
    name: "worker-killed",
    what: "worker, agent or client of the tunnel killed",
    not_for: has_no_helper,
    others_are_served: shares_work,
    inject: |running, _, draw| {
        let helper = helper(running);
        killed(running, helper, draw)
    },
    ..PLAIN
};

pub(super) const HELPER_STOPPED: Fault = Fault {
    name: "worker-stopped",
    what: "worker, agent or client of the tunnel stopped for 0.5 to 3 s",
    not_for: has_no_helper,
    others_are_served: shares_work,
    inject: |running, _, draw| {
        let helper = helper(running);
        Ok(stopped(running, helper, draw))
    },
    ..PLAIN
};

pub(super) const PEER_KILLED: Fault = Fault {
    name: "peer-killed",
    what: "database or NATS server killed",
    not_for: has_no_peer,
    inject: |running, _, draw| {
        if let Some(database) = &mut running.database {
            database.kill();
        }
        if let Some(nats) = &mut running.nats {
            nats.kill();
        }
        wait(draw, 100, 2000);
        restart_peer(running);
        Ok(Instant::now())
    },
    ..PLAIN
};

pub(super) const PEER_STOPPED: Fault = Fault {
    name: "peer-stopped",
    what: "database or NATS server stopped for 0.5 to 3 s",
    not_for: has_no_peer,
    inject: |running, _, draw| {
        running.database.iter().for_each(kendall_testbed::Database::pause);
        running.nats.iter().for_each(kendall_testbed::Nats::pause);
        wait(draw, 500, 3000);
        running.database.iter().for_each(kendall_testbed::Database::resume);
        running.nats.iter().for_each(kendall_testbed::Nats::resume);
        Ok(Instant::now())
    },
    ..PLAIN
};

/// Starts the database or NATS server again, if it was killed.
pub(super) fn restart_peer(running: &mut Running) {
    if let Some(database) = &mut running.database {
        database.start_again();
    }
    if let Some(nats) = &mut running.nats {
        nats.start_again();
    }
}

fn killed(running: &mut Running, role: &str, draw: &mut Draw) -> Result<Instant, NotInjected> {
    running.signal(role, Signal::KILL);
    wait(draw, 50, 1000);
    let lifted = Instant::now();
    running.start_again().map_err(NotInjected::Failed)?;
    Ok(lifted)
}

fn stopped(running: &mut Running, role: &str, draw: &mut Draw) -> Instant {
    running.signal(role, Signal::STOP);
    wait(draw, 500, 3000);
    running.signal(role, Signal::CONT);
    Instant::now()
}

/// The first process that is neither a server nor the application behind a tunnel.
fn helper(running: &Running) -> &'static str {
    let roles = running.roles();
    roles.into_iter().find(|role| ["worker", "agent", "client"].contains(role)).expect("the fault applies")
}

fn has_no_client(subject: &Subject) -> Option<&'static str> {
    matches!(subject.requests, Requests::Inside).then_some("it makes its own requests")
}

fn has_no_helper(subject: &Subject) -> Option<&'static str> {
    (!["cluster", "agents", "tunnel"].contains(&subject.name)).then_some("no process helps its server")
}

/// The server of a cluster searches alone if its workers are gone.
fn shares_work(subject: &Subject) -> bool {
    subject.name == "cluster"
}

fn has_no_peer(subject: &Subject) -> Option<&'static str> {
    subject.peer.is_none().then_some("it needs neither a database nor NATS")
}
