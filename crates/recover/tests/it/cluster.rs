//! Passwords that a worker on a cluster finds.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use kendall_cluster::{Cluster, ClusterOptions, WorkerOptions, work};
use kendall_digest::gpu::Device;
use kendall_digest::password::{md5, sha1, sha256};
use kendall_digest::{Engine, Interrupt};
use kendall_nats::NatsAccess;
use kendall_recover::search::Space;
use kendall_recover::words::Words;
use kendall_recover::{Finder, FinderOptions, Hash, Hunt, PasswordQuery, Progress, Strategy};
use kendall_testbed::{JETSTREAM, Nats, wait_until};

#[test]
fn hunts_share_masks_with_workers() {
    let Some(nats) = Nats::with(JETSTREAM) else { return };
    let access = NatsAccess::new(nats.url().parse().unwrap());
    let cluster = Cluster::start(ClusterOptions { access: access.clone(), ledger: None }).unwrap();
    let engine = Engine::Portable;
    let options = WorkerOptions { access, engine, cores: NonZeroUsize::MIN, device: Device::Cpu };
    thread::spawn(move || work(options, |_| {}));
    wait_until("the worker is there", || cluster.status().workers == 1);
    for strategy in [Strategy::Plain, Strategy::Adaptive] {
        let finder = Finder::new(FinderOptions {
            strategy,
            words: Arc::new(Words::of("cab\n".into())),
            cluster: Some(cluster.clone()),
            ..FinderOptions::new(engine)
        });
        let finder = finder.unwrap();
        let before = cluster.counters().tested.load(Ordering::Relaxed);
        let hashes: [fn(&[u8]) -> Hash; 3] =
            [|word| Hash::Sha1(sha1(word)), |word| Hash::Sha256(sha256(word)), |word| Hash::Md5(md5(word))];
        for hash in hashes {
            let find = |word: &[u8]| {
                let mut hunt = finder.hunt(PasswordQuery { hash: hash(word), lengths: 5..=5 }).unwrap();
                ended(&mut hunt)
            };
            assert_eq!(find(b"zyxwv"), Ok(b"zyxwv".to_vec()));
            let tried = find(b"ZYXWV").unwrap_err();
            assert!((26_u64.pow(5)..26_u64.pow(5) + 1_000_000).contains(&tried), "{tried}");
        }
        let by_worker = cluster.counters().tested.load(Ordering::Relaxed) - before;
        assert!(by_worker > 0 || strategy == Strategy::Adaptive, "{strategy}: the worker tested nothing");
    }
    // While this machine tries the second mask, workers report more of the first than a turn asks for.
    let space = Space::new("?l", ["?l?l?l?l?l", "?u?l?l?l?l"]).unwrap();
    let finder = Finder::new(FinderOptions { space, cluster: Some(cluster), ..FinderOptions::new(engine) });
    let query = PasswordQuery { hash: Hash::Sha1(sha1(b"VWXYZ")), lengths: 5..=5 };
    let tried = ended(&mut finder.unwrap().hunt(query).unwrap()).unwrap_err();
    let all = 2 * 26_u64.pow(5);
    assert!((all..all + 1_000_000).contains(&tried), "{tried}");
}

/// The end of a search: the password, or the number of candidates tried.
fn ended(hunt: &mut Hunt) -> Result<Vec<u8>, u64> {
    loop {
        match hunt.advance(&Interrupt::new(), 100_000) {
            Progress::More { .. } => {}
            Progress::Found(found) => return Ok(found.password),
            Progress::Nowhere { tried, .. } => return Err(tried),
        }
    }
}
