//! What accounts that are there already cost registrations.
//!
//! ```console
//! $ cargo run --release --package kendall-chat --example preload -- /var/tmp/preload 1000000
//! ```
//!
//! The arguments are a folder for files of SQLite, and the number of accounts with which one of them is loaded, through the same
//! `insert_many` that serves registrations. Then 50 users register accounts in an empty store and in the full one by turns.

#[path = "../local/mod.rs"]
mod local;

use std::error::Error;
use std::time::{Duration, Instant};

use kendall_accounts::{Account, Accounts, Settings};
use kendall_load::Reuse;
use tokio::task::JoinSet;

const USERS: u32 = 50;
const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_secs(4);
/// Callers that load at a time; the store takes what they queue in one transaction.
const CALLERS: u64 = 512;
/// As much as a record of OPAQUE with a name of 17 bytes.
const RECORD_BYTES: usize = 227;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, accounts] = &arguments[..] else { return Err("arguments: FOLDER ACCOUNTS".into()) };
    let accounts: u64 = accounts.parse()?;
    std::fs::create_dir_all(folder)?;
    let full = format!("sqlite:{folder}/full.db");
    let begun = Instant::now();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let there = runtime.block_on(load(&full, accounts))?;
    println!("{there} accounts are there after {:.1} s", begun.elapsed().as_secs_f64());
    let mut ratios = Vec::new();
    println!("empty/s (in a transaction)  full/s (in a transaction)  ratio");
    for round in 0..ROUNDS {
        // Its own file for each round, so that the empty one is empty; each goes first in half of the rounds.
        let of_round = tempfile::tempdir_in(folder)?;
        let empty = format!("sqlite:{}/empty.db", of_round.path().display());
        let rates = |url: &str| local::register(url, USERS, Reuse::Keep, SPAN);
        let (empty, full) = if round % 2 == 0 {
            let empty = rates(&empty)?;
            (empty, rates(&full)?)
        } else {
            let full = rates(&full)?;
            (rates(&empty)?, full)
        };
        let ratio = full.registrations_per_s / empty.registrations_per_s;
        let [empty, full] = [empty, full].map(|rates| {
            let in_a_transaction = rates.registrations_per_s / rates.transactions_per_s;
            format!("{:.0} ({in_a_transaction:.1})", rates.registrations_per_s)
        });
        println!("{empty:>26}  {full:>25}  {ratio:5.2}");
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio {:.2}", ratios[ROUNDS / 2]);
    Ok(())
}

/// Loads accounts of random-looking names, as far as they are not there. Returns how many there are.
async fn load(url: &str, accounts: u64) -> Result<u64, Box<dyn Error>> {
    let store = Accounts::open(&url.parse()?, Settings::default()).await?;
    // A run before may have left some or all.
    let missing = if store.count().await? < accounts { accounts } else { 0 };
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS.min(missing) {
        let store = store.clone();
        callers.spawn(async move {
            for number in (caller..missing).step_by(CALLERS as usize) {
                // Multiplication by an odd number is one-to-one.
                let name = format!("k{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                store.insert(Account { name, credential: vec![0x5a; RECORD_BYTES] }).await?;
            }
            Ok::<(), kendall_accounts::StoreError>(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    let there = store.count().await?;
    store.close().await?;
    Ok(there)
}
