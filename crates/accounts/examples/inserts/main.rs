//! Measures how many accounts per second a store inserts, and compares it with the bare driver.
//!
//! ```sh
//! cargo run --release -p kendall-accounts --example inserts -- sqlite:/tmp/accounts.db
//! ```
//!
//! The first table has 1, 10 and 50 callers, each of which inserts its next account when the previous one is durable, with and
//! without group commit. The second compares, in alternation and in the same table, the store under 100 callers for each
//! connection with a loop that inserts batches of the same mean size through the same driver. Use a store that may be filled:
//! the accounts stay there.

mod bare;

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kendall_accounts::{Account, Accounts, Inserted, Settings, StoreUrl, fdatasyncs_per_second};
use tokio::task::JoinSet;

/// The number of alternations of the store and the bare driver.
const ROUNDS: usize = 5;

/// Callers for each connection in the comparison.
const CALLERS: usize = 100;

/// The result of one run.
struct Rate {
    per_s: f64,
    mean_batch: f64,
    /// The 50th and the 99th percentile of the time of an insert.
    times: [Duration; 2],
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let text = arguments.next().ok_or("usage: inserts URL [SECONDS]")?;
    let span = Duration::from_secs_f64(arguments.next().map_or(Ok(2.0), |seconds| seconds.parse())?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let url: StoreUrl = text.parse()?;
    if let Some(folder) = url.folder() {
        println!("fdatasync: {:.0}/s in {}\n", fdatasyncs_per_second(folder, span)?, folder.display());
    }
    runtime.block_on(async {
        callers_and_group_commit(&url, span).await?;
        beside_the_bare_driver(&url, &text, span).await
    })
}

/// Accounts with names that no earlier run has used, in random order, of the sizes of a chat directory.
fn account() -> Account {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let begun = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let _ = NEXT.compare_exchange(0, begun << 32, Ordering::Relaxed, Ordering::Relaxed);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // Multiplication by an odd number and xor with shifts are one-to-one.
    let mixed = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    Account { name: format!("u{mixed:016x}"), credential: vec![0x5a; 200] }
}

async fn callers_and_group_commit(url: &StoreUrl, span: Duration) -> Result<(), Box<dyn Error>> {
    println!("{url}\ncallers  group commit  inserts/s  mean batch  p50 ms  p99 ms");
    for callers in [1, 10, 50] {
        for group_commit in [false, true] {
            let rate =
                through_the_store(url, Settings { group_commit, ..Settings::default() }, callers, span)
                    .await?;
            let Rate { per_s, mean_batch, times: [p50, p99] } = rate;
            let group_commit = if group_commit { "on" } else { "off" };
            let (p50, p99) = (p50.as_secs_f64() * 1e3, p99.as_secs_f64() * 1e3);
            println!("{callers:7}  {group_commit:12}  {per_s:9.0}  {mean_batch:10.1}  {p50:6.2}  {p99:6.2}");
        }
    }
    Ok(())
}

async fn beside_the_bare_driver(url: &StoreUrl, text: &str, span: Duration) -> Result<(), Box<dyn Error>> {
    println!("\nconnections  mean batch  store/s  bare driver/s  ratio (median of {ROUNDS})");
    let counts: &[usize] = if url.scheme() == "sqlite" { &[1] } else { &[1, 2, 4] };
    for &connections in counts {
        let settings = Settings { connections, ..Settings::default() };
        let callers = CALLERS * connections;
        let (mut ours, mut bare, mut ratios, mut batches) = (vec![], vec![], vec![], vec![]);
        for _ in 0..ROUNDS {
            let rate = through_the_store(url, settings.clone(), callers, span).await?;
            let batch = (rate.mean_batch.round() as usize).max(1);
            let bare_per_s = bare::per_second(url.scheme(), text, connections, batch, span).await?;
            ours.push(rate.per_s);
            bare.push(bare_per_s);
            ratios.push(rate.per_s / bare_per_s);
            batches.push(rate.mean_batch);
        }
        let [ours, bare, ratio, batch] = [ours, bare, ratios, batches].map(median);
        println!("{connections:11}  {batch:10.1}  {ours:7.0}  {bare:13.0}  {ratio:5.2}");
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Callers insert in a closed loop; the first fifth of the time does not count.
async fn through_the_store(
    url: &StoreUrl,
    settings: Settings,
    callers: usize,
    span: Duration,
) -> Result<Rate, Box<dyn Error>> {
    let accounts = Accounts::open(url, settings).await?;
    let counted_from = Instant::now() + span / 5;
    let until = counted_from + span;
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let accounts = accounts.clone();
        tasks.spawn(async move {
            let mut times = Vec::new();
            loop {
                let begun = Instant::now();
                if begun >= until {
                    return Ok(times);
                }
                match accounts.insert(account()).await {
                    Ok(Inserted::New) if begun >= counted_from => times.push(begun.elapsed()),
                    Ok(Inserted::New) => {}
                    Ok(Inserted::Taken) => return Err("a name was taken".to_owned()),
                    Err(error) => return Err(error.to_string()),
                }
            }
        });
    }
    let mut times = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        times.extend(ended??);
    }
    let written = accounts.written();
    accounts.close().await?;
    times.sort_unstable();
    let percentile =
        |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
    Ok(Rate {
        per_s: times.len() as f64 / span.as_secs_f64(),
        mean_batch: written.accounts as f64 / written.transactions.max(1) as f64,
        times: [percentile(0.5), percentile(0.99)],
    })
}
