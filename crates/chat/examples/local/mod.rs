//! A directory server in this process, and the registrations of users without think time.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kendall_accounts::Written;
use kendall_chat::client::security::Security;
use kendall_chat::directory::Limits;
use kendall_chat::password::server::Passwords;
use kendall_chat::password::{AuthMethod, Stretch};
use kendall_chat::server::durable::Durable;
use kendall_chat::server::{DirectoryOptions, bind};
use kendall_chat::workload::{ChatWorkload, Mix};
use kendall_load::{Plan, Progress, Reuse, RowBatches, run};
use kendall_record::{Outcome, RequestRow};
use kendall_service::Config;
use kendall_station::{Arrivals, Law};
use kendall_testbed::Running;

/// The workers of a server, as many as `kendall serve chat` has.
const WORKERS: usize = 64;

/// What users did in a time.
pub(crate) struct Rates {
    pub(crate) registrations_per_s: f64,
    pub(crate) transactions_per_s: f64,
}

/// Has users register accounts of new names for a time, at a server that keeps them in this store.
pub(crate) fn register(url: &str, users: u32, reuse: Reuse, span: Duration) -> Result<Rates, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let store = Arc::new(runtime.block_on(Durable::open(url))?);
    let options = DirectoryOptions {
        service: Config { workers: WORKERS.try_into()?, ..Config::new("127.0.0.1:0".parse()?) },
        limits: Limits { attempts: None, ..Limits::default() },
        store: store.clone(),
        runtime,
        passwords: Passwords::new(),
        identity: None,
    };
    let server = bind(options)?;
    let (address, metrics, stop) = (server.local_addr(), server.handle(), server.handle());
    let running =
        Running::new(address, move || metrics.metrics_text(), move || stop.shut_down(), || server.run());
    let mix = Mix {
        weights: [1.0, 0.0, 0.0, 0.0],
        accounts: 1,
        reuse,
        method: AuthMethod::Opaque,
        stretch: Stretch::Off,
        security: Security::Plain,
    };
    let seed = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
    let think = Law::Constant { mean_s: 0.0 };
    let plan = Plan::lasting(Arrivals::Closed { population: users, think }, span, seed);
    let answered =
        |rows: RowBatches| rows.flatten().filter(|row: &RequestRow| row.outcome == Outcome::Answered).count();
    let workload = ChatWorkload::new(address, seed, mix);
    let (_, count) = run(&plan, &workload, &Progress::default(), &AtomicBool::new(false), answered)?;
    // The last batch is counted after its answers.
    running.stop();
    let Written { accounts, transactions } = store.written();
    if accounts < count as u64 {
        return Err("the store has written fewer accounts than were acknowledged".into());
    }
    let per_s = |count: f64| count / span.as_secs_f64();
    Ok(Rates { registrations_per_s: per_s(count as f64), transactions_per_s: per_s(transactions as f64) })
}
