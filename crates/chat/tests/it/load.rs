//! The workload from the generator, against a real server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kendall_chat::client::security::Security;
use kendall_chat::directory::Limits;
use kendall_chat::password::{AuthMethod, Stretch};
use kendall_chat::server::keys;
use kendall_chat::server::store::Memory;
use kendall_chat::workload::{ChatWorkload, Mix};
use kendall_load::{Connect, Plan, Progress, Reuse, RowBatches, Stamps, Workload, run};
use kendall_record::{Outcome, RequestRow};
use kendall_station::Arrivals;
use tokio::time::sleep;

use crate::serving::{by, clients, options, run as run_server};

fn mix(weights: [f64; 4], reuse: Reuse) -> Mix {
    let method = AuthMethod::Opaque;
    Mix { weights, accounts: 10, reuse, method, stretch: Stretch::Off, security: Security::Plain }
}

/// The outcomes of 50 operations a second for a second, by class.
fn outcomes(workload: &ChatWorkload) -> BTreeMap<(u32, String), usize> {
    let plan = Plan::lasting(Arrivals::poisson(50.0), Duration::from_secs(1), 5);
    let collect = |rows: RowBatches| rows.flatten().collect::<Vec<RequestRow>>();
    let (_, rows) = run(&plan, workload, &Progress::default(), &AtomicBool::new(false), collect).unwrap();
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry((row.class, format!("{:?}", row.outcome))).or_default() += 1;
    }
    counts
}

fn all_answered(workload: &ChatWorkload, classes: usize) {
    let outcomes = outcomes(workload);
    let answered = format!("{:?}", Outcome::Answered);
    assert!(outcomes.keys().all(|(_, outcome)| *outcome == answered), "{outcomes:?}");
    assert_eq!(outcomes.len(), classes, "{outcomes:?}");
}

#[test]
fn every_operation_is_answered_on_kept_connections() {
    let store = Arc::new(Memory::default());
    let limits = Limits { attempts: None, ..Limits::default() };
    let server = run_server(options(store.clone(), limits, None));
    let workload = ChatWorkload::new(server.address, 5, mix([1.0; 4], Reuse::Keep));
    assert_eq!(workload.classes().len(), 4);
    all_answered(&workload, 4);
    assert!(store.all().len() > 10, "ten accounts from the beginning, and those of registrations");
    server.stop();
}

#[test]
fn the_end_of_an_idle_session_is_noticed() {
    let limits = Limits { attempts: None, lease: Duration::from_secs(2), ..Limits::default() };
    let server = run_server(options(Arc::new(Memory::default()), limits, None));
    let workload = ChatWorkload::new(server.address, 7, mix([0.0, 0.0, 1.0, 0.0], Reuse::Keep));
    clients(async {
        let mut connection = workload.connect().await.unwrap();
        let request = workload.request(0);
        let exchange = connection.exchange(0, &request, &mut Stamps::default()).await;
        assert_eq!(exchange.outcome, Outcome::Answered);
        assert!(connection.is_open());
        while connection.is_open() {
            sleep(Duration::from_millis(10)).await;
        }
    });
    server.stop();
}

#[test]
fn registrations_and_log_ins_are_answered_on_a_connection_each_over_tls() {
    let identity = keys::own_identity(None).unwrap();
    let security = Security::pinned(identity.fingerprint);
    let limits = Limits { attempts: None, ..Limits::default() };
    let server = run_server(options(Arc::new(Memory::default()), limits, Some(identity)));
    let mix = Mix { security, ..mix([1.0, 1.0, 0.0, 0.0], Reuse::Close) };
    all_answered(&ChatWorkload::new(server.address, 6, mix), 2);
    server.stop();
}

#[test]
fn every_operation_is_answered_by_each_method() {
    for method in AuthMethod::ALL {
        let limits = Limits { attempts: None, ..Limits::default() };
        let server = run_server(by(method, options(Arc::new(Memory::default()), limits, None)));
        let mix = Mix { method, ..mix([1.0; 4], Reuse::Keep) };
        all_answered(&ChatWorkload::new(server.address, 7, mix), 4);
        server.stop();
    }
}

#[test]
fn a_request_is_a_pure_function_of_seed_and_number() {
    let workload = |seed| ChatWorkload::new(([127, 0, 0, 1], 1).into(), seed, mix([1.0; 4], Reuse::Keep));
    let classes = |seed| (0..100).map(|i| workload(seed).request(i).class).collect::<Vec<u32>>();
    assert_eq!(classes(1), classes(1));
    assert_ne!(classes(1), classes(2));
}
