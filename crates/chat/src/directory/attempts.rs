//! How many attempts there were of late, and whether another may be made.
//!
//! Every log-in counts when it begins, because a client that has guessed wrong never sends its proof. The right password
//! takes it back. The counts are of (account, network), of networks, and of accounts. The count of an account has only log-ins
//! from networks from which its user did not log in of late: otherwise any client could lock any user out.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::known_networks::KnownNetworks;
use super::limits::{AttemptLimits, BackOff};
use super::network::Network;
use crate::name::NameKey;

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Subject {
    Pair(NameKey, Network),
    /// An account, whose log-ins come from networks that are not known.
    Account(NameKey),
    Network(Network),
    Registrations(Network),
}

/// A count that leaks.
#[derive(Clone, Copy, Debug)]
struct Count {
    level: f64,
    at: Duration,
    blocked_until: Duration,
    /// The instant at which the count no longer matters.
    forget_at: Duration,
}

/// The counts of all networks.
#[derive(Debug)]
pub(super) struct Attempts {
    limits: Option<AttemptLimits>,
    counts: HashMap<Subject, Count>,
    order: BTreeSet<(Duration, Subject)>,
    known: KnownNetworks,
}

impl Attempts {
    pub(super) fn new(limits: Option<AttemptLimits>) -> Self {
        let known = KnownNetworks::new(limits.map_or(0, |limits| limits.counts));
        Self { limits, counts: HashMap::new(), order: BTreeSet::new(), known }
    }

    /// Counts a log-in that begins.
    ///
    /// # Errors
    /// Says how long to wait where there were too many.
    pub(super) fn begin_log_in(
        &mut self,
        now: Duration,
        key: &NameKey,
        network: Network,
    ) -> Result<(), Duration> {
        let Some(limits) = self.limits else { return Ok(()) };
        let is_known = self.known.contains(now, key, network);
        let account = (!is_known).then(|| (Subject::Account(key.clone()), limits.account));
        let counted =
            [(Subject::Pair(key.clone(), network), limits.pair), (Subject::Network(network), limits.network)];
        let counted = counted.into_iter().chain(account);
        let wait = counted.clone().map(|(subject, _)| self.wait(now, &subject)).max();
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            return Err(wait);
        }
        counted.for_each(|(subject, rules)| self.count(now, subject, &rules));
        Ok(())
    }

    /// Takes back a log-in with the right password, and what its user mistyped before.
    pub(super) fn succeed(&mut self, now: Duration, key: &NameKey, network: Network) {
        let Some(limits) = self.limits else { return };
        self.forget(&Subject::Pair(key.clone(), network));
        self.take_back(now, Subject::Network(network), &limits.network);
        if !self.known.contains(now, key, network) {
            self.take_back(now, Subject::Account(key.clone()), &limits.account);
        }
        self.known.add(now, key, network);
    }

    fn take_back(&mut self, now: Duration, subject: Subject, rules: &BackOff) {
        let Some(count) = self.counts.get(&subject).copied() else { return };
        let level = leaked(&count, now, rules) - 1.0;
        self.forget(&subject);
        if level > 0.0 {
            let forget_at = (now + rules.leak.mul_f64(level)).max(count.blocked_until);
            self.put(subject, Count { level, at: now, forget_at, ..count });
        }
    }

    /// Counts a registration that begins.
    ///
    /// # Errors
    /// Says how long to wait where there were too many.
    pub(super) fn begin_registration(&mut self, now: Duration, network: Network) -> Result<(), Duration> {
        let Some(limits) = self.limits else { return Ok(()) };
        let subject = Subject::Registrations(network);
        let wait = self.wait(now, &subject);
        if wait > Duration::ZERO {
            return Err(wait);
        }
        self.count(now, subject, &limits.registrations);
        Ok(())
    }

    /// How many counts there are.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    fn wait(&self, now: Duration, subject: &Subject) -> Duration {
        self.counts.get(subject).map_or(Duration::ZERO, |count| count.blocked_until.saturating_sub(now))
    }

    fn count(&mut self, now: Duration, subject: Subject, rules: &BackOff) {
        let level = 1.0 + self.counts.get(&subject).map_or(0.0, |count| leaked(count, now, rules));
        let excess = (level - f64::from(rules.free)).ceil();
        // Beyond 2³¹ times the first wait any limit is reached.
        let wait = if excess < 1.0 {
            Duration::ZERO
        } else {
            rules.first.saturating_mul(1 << ((excess - 1.0).min(31.0) as u32)).min(rules.longest)
        };
        let blocked_until = now + wait;
        let forget_at = (now + rules.leak.mul_f64(level)).max(blocked_until);
        self.forget(&subject);
        self.put(subject, Count { level, at: now, blocked_until, forget_at });
    }

    fn put(&mut self, subject: Subject, count: Count) {
        let most = self.limits.map_or(0, |limits| limits.counts);
        if self.counts.len() >= most
            && let Some((_, first)) = self.order.pop_first()
        {
            self.counts.remove(&first);
        }
        self.order.insert((count.forget_at, subject.clone()));
        self.counts.insert(subject, count);
    }

    fn forget(&mut self, subject: &Subject) {
        if let Some(count) = self.counts.remove(subject) {
            self.order.remove(&(count.forget_at, subject.clone()));
        }
    }

    /// Forgets what says nothing any more.
    pub(super) fn advance(&mut self, now: Duration) {
        while let Some((forget_at, _)) = self.order.first()
            && *forget_at <= now
            && let Some((_, subject)) = self.order.pop_first()
        {
            self.counts.remove(&subject);
        }
    }
}

fn leaked(count: &Count, now: Duration, rules: &BackOff) -> f64 {
    let gone = now.saturating_sub(count.at).as_secs_f64() / rules.leak.as_secs_f64().max(1e-9);
    (count.level - gone).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;

    const SECOND: Duration = Duration::from_secs(1);

    fn key(name: &str) -> NameKey {
        Name::new(name).unwrap().key().clone()
    }

    fn network(last: u8) -> Network {
        Network::of([192, 0, 2, last].into())
    }

    #[test]
    fn waits_double_and_other_networks_are_free() {
        let mut attempts = Attempts::new(Some(AttemptLimits::default()));
        let alice = key("alice");
        for _ in 0..5 {
            assert_eq!(attempts.begin_log_in(SECOND, &alice, network(1)), Ok(()));
        }
        let mut now = SECOND;
        let mut waits = Vec::new();
        for _ in 0..6 {
            attempts.begin_log_in(now, &alice, network(1)).unwrap();
            let wait = attempts.begin_log_in(now, &alice, network(1)).unwrap_err();
            waits.push(wait.as_secs());
            now += wait;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32]);
        assert_eq!(attempts.begin_log_in(now, &alice, network(2)), Ok(()), "the user from elsewhere");
        assert_eq!(
            attempts.begin_log_in(now, &key("bob"), network(1)),
            Ok(()),
            "another user of the network"
        );
        attempts.succeed(now, &alice, network(1));
        assert_eq!(attempts.begin_log_in(now, &alice, network(1)), Ok(()));
    }

    #[test]
    fn a_guesser_gets_a_dozen_attempts_an_hour_in_the_long_run() {
        let mut attempts = Attempts::new(Some(AttemptLimits::default()));
        let (alice, mut now, mut made) = (key("alice"), Duration::ZERO, 0);
        while now < 24 * 3600 * SECOND {
            match attempts.begin_log_in(now, &alice, network(1)) {
                Ok(()) => made += 1,
                Err(wait) => now += wait,
            }
        }
        assert!((24 * 4..=24 * 13).contains(&made), "{made} attempts in a day");
    }

    #[test]
    fn many_networks_together_get_few_attempts_at_an_account_and_its_user_enters() {
        let mut attempts = Attempts::new(Some(AttemptLimits::default()));
        let (alice, home, hour) = (key("alice"), network(1), 3600);
        attempts.begin_log_in(Duration::ZERO, &alice, home).unwrap();
        attempts.succeed(Duration::ZERO, &alice, home);
        // 50,000 networks, each of which tries once, as soon as it may.
        let mut made = 0;
        for number in 0_u32..50_000 {
            let now = SECOND * hour * number / 50_000;
            let other = Network::of((0x0a00_0000 + number).to_be_bytes().into());
            made += u32::from(attempts.begin_log_in(now, &alice, other).is_ok());
            if number % 5000 == 0 {
                assert_eq!(attempts.begin_log_in(now, &alice, home), Ok(()), "at {now:?}");
                attempts.succeed(now, &alice, home);
            }
            assert!(attempts.begin_log_in(now, &key(&format!("user{number}x")), other).is_ok());
        }
        assert!((50..=50 + 6 + 121).contains(&made), "{made} attempts in an hour");
    }

    #[test]
    fn a_network_that_tries_many_names_is_slowed_down_and_its_successes_do_not_count() {
        let mut attempts = Attempts::new(Some(AttemptLimits::default()));
        let names: Vec<NameKey> = (0..200).map(|i| key(&format!("user{i}x"))).collect();
        let begun = |attempts: &mut Attempts, network| {
            names.iter().filter(|name| attempts.begin_log_in(SECOND, name, network).is_ok()).count()
        };
        assert_eq!(begun(&mut attempts, network(1)), 101);
        for name in &names {
            attempts.begin_log_in(SECOND, name, network(2)).unwrap();
            attempts.succeed(SECOND, name, network(2));
        }
        assert_eq!(begun(&mut attempts, network(2)), 101);
    }

    #[test]
    fn counts_are_bounded_and_forgotten() {
        let limits = AttemptLimits { counts: 10, ..AttemptLimits::default() };
        let mut attempts = Attempts::new(Some(limits));
        for last in 0..=255 {
            attempts.begin_log_in(SECOND, &key(&format!("user{last}x")), network(last)).unwrap();
            assert!(attempts.len() <= 10);
        }
        attempts.advance(3600 * SECOND);
        assert_eq!((attempts.len(), attempts.order.len()), (0, 0));
    }
}
