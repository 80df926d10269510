//! The directory against a model: random sequences of requests, by clients that do what they like.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use kendall_chat::directory::{AttemptLimits, ConnectionId, Directory, Introduction, Limits};
use kendall_chat::name::Name;
use kendall_chat::protocol::{
    Answer, Blame, Contact, EndOfCall, EndOfSession, Presence, Push, Request, Secret,
};
use kendall_talk::relay::{Limits as RelayLimits, Pairs};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const NAMES: [&str; 4] = ["alice", "bob", "carol", "dave"];
const CONNECTIONS: u64 = 6;

/// What a client does.
#[derive(Clone, Debug)]
enum Act {
    Connect(u64),
    Disconnect(u64),
    BeginLogIn(u64, usize),
    /// The client of this connection proves the password of the account that it named.
    Prove(u64),
    /// The client has no proof.
    Abandon(u64),
    Resume(u64, Index),
    Ask(u64, Ask),
    Change(u64),
    Delete(u64),
    Pass(u64),
}

#[derive(Clone, Debug)]
enum Ask {
    StayAlive,
    Watch(usize),
    Unwatch(usize),
    Wait,
    StopWaiting,
    Call(usize),
    Accept(Index),
    Refuse(Index),
    Cancel(Index),
    LogOut,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let connection = || 0..CONNECTIONS;
    let name = || 0..NAMES.len();
    let ask = prop_oneof![
        1 => Just(Ask::StayAlive),
        1 => name().prop_map(Ask::Watch),
        1 => name().prop_map(Ask::Unwatch),
        3 => Just(Ask::Wait),
        1 => Just(Ask::StopWaiting),
        4 => name().prop_map(Ask::Call),
        3 => any::<Index>().prop_map(Ask::Accept),
        1 => any::<Index>().prop_map(Ask::Refuse),
        1 => any::<Index>().prop_map(Ask::Cancel),
        1 => Just(Ask::LogOut),
    ];
    let act = prop_oneof![
        2 => connection().prop_map(Act::Connect),
        1 => connection().prop_map(Act::Disconnect),
        4 => (connection(), name()).prop_map(|(connection, name)| Act::BeginLogIn(connection, name)),
        4 => connection().prop_map(Act::Prove),
        1 => connection().prop_map(Act::Abandon),
        1 => (connection(), any::<Index>()).prop_map(|(connection, token)| Act::Resume(connection, token)),
        14 => (connection(), ask).prop_map(|(connection, ask)| Act::Ask(connection, ask)),
        1 => connection().prop_map(Act::Change),
        1 => connection().prop_map(Act::Delete),
        2 => select(vec![10, 1_000, 9_000, 20_000, 61_000]).prop_map(Act::Pass),
    ];
    prop::collection::vec(act, 1..200)
}

/// Whether the account of a log-in is still what it was when the log-in began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Withdrawn,
}

/// What must be true of a directory, by the messages that clients got.
struct Model {
    directory: Directory,
    pairs: Pairs,
    now: Duration,
    /// Open connections.
    open: BTreeSet<u64>,
    /// The account that a log-in on a connection is for, and whether it was withdrawn.
    log_ins: HashMap<u64, (usize, Fate)>,
    /// The account of the session that a connection carries, by the answers and pushes on it.
    carries: BTreeMap<u64, usize>,
    /// Every token that was handed out, and the account.
    tokens: Vec<(Secret, usize)>,
    /// What watches report, by connection and name.
    watched: BTreeMap<(u64, usize), Presence>,
    /// Watches that have begun and have had no report yet.
    begun: BTreeSet<(u64, usize)>,
    /// Calls by their numbers: caller and callee.
    calls: BTreeMap<u64, (u64, usize, usize)>,
    /// Which calls ring at which connections, by the messages that these got.
    rings: BTreeSet<(u64, u64)>,
    next_token: u8,
}

fn limits() -> Limits {
    let attempts = AttemptLimits { counts: 8, ..AttemptLimits::default() };
    Limits {
        sessions: 5,
        sessions_of_account: 2,
        log_ins: 3,
        watches: 3,
        calls: 2,
        attempts: Some(attempts),
        ..Limits::default()
    }
}

fn name(number: usize) -> Name {
    Name::new(NAMES[number]).unwrap()
}

impl Model {
    fn new() -> Self {
        Self {
            directory: Directory::new(limits()),
            pairs: Pairs::new(RelayLimits::default()),
            now: Duration::ZERO,
            open: BTreeSet::new(),
            log_ins: HashMap::new(),
            carries: BTreeMap::new(),
            tokens: Vec::new(),
            watched: BTreeMap::new(),
            begun: BTreeSet::new(),
            calls: BTreeMap::new(),
            rings: BTreeSet::new(),
            next_token: 0,
        }
    }

    fn act(&mut self, act: &Act) -> Result<(), TestCaseError> {
        let now = self.now;
        match act {
            Act::Connect(number) => {
                if self.open.insert(*number) {
                    let peer: SocketAddr = ([10, 0, 0, (*number % 3) as u8], 1000).into();
                    self.directory.connect(ConnectionId(*number), peer);
                }
            }
            Act::Disconnect(number) => {
                self.open.remove(number);
                self.log_ins.remove(number);
                self.left(*number);
                self.directory.disconnect(now, ConnectionId(*number));
            }
            Act::BeginLogIn(number, account) => {
                let begun = self.directory.begin_log_in(now, ConnectionId(*number), name(*account).key());
                match begun {
                    Ok(()) => drop(self.log_ins.insert(*number, (*account, Fate::Open))),
                    Err(refusal) => {
                        let other = self.carries.get(number).is_some_and(|own| own != account);
                        prop_assert_eq!(refusal.why == Blame::OtherSession, other);
                        prop_assert_eq!(refusal.why == Blame::TooManyAttempts, !refusal.retry.is_zero());
                        prop_assert!(
                            self.open.contains(number) || refusal.why == Blame::NoSession,
                            "a connection that is not open"
                        );
                    }
                }
            }
            Act::Prove(number) => self.prove(*number)?,
            Act::Abandon(number) => {
                self.log_ins.remove(number);
                self.directory.abandon_log_in(ConnectionId(*number));
            }
            Act::Resume(number, token) => self.resume(*number, token)?,
            Act::Ask(number, ask) => self.ask(*number, ask)?,
            Act::Change(number) | Act::Delete(number) => {
                let changed = self.directory.to_change(now, ConnectionId(*number));
                if let Ok((changed, _)) = changed {
                    prop_assert_eq!(self.carries.get(number).map(|own| NAMES[*own]), Some(changed.shown()));
                    for (account, fate) in self.log_ins.values_mut() {
                        if NAMES[*account] == changed.shown() {
                            *fate = Fate::Withdrawn;
                        }
                    }
                    if matches!(act, Act::Change(_)) {
                        self.directory.password_changed(changed.key(), ConnectionId(*number), [1; 32]);
                    } else {
                        self.directory.account_deleted(changed.key(), ConnectionId(*number));
                        self.left(*number);
                        prop_assert!(!self.directory.is_there(changed.key()));
                    }
                }
            }
            Act::Pass(ms) => {
                let until = now + Duration::from_millis(*ms);
                // Each deadline is met at its instant, and the next is later.
                while let Some(deadline) = self.directory.next_deadline().filter(|next| *next <= until) {
                    prop_assert!(deadline >= self.now);
                    self.now = deadline;
                    self.directory.advance(deadline);
                    prop_assert!(
                        self.directory.next_deadline() > Some(deadline)
                            || self.directory.next_deadline().is_none()
                    );
                    self.take_pushes()?;
                }
                self.now = until;
                self.directory.advance(until);
            }
        }
        self.take_pushes()?;
        self.check()
    }

    fn prove(&mut self, number: u64) -> Result<(), TestCaseError> {
        let Some((account, fate)) = self.log_ins.remove(&number) else { return Ok(()) };
        self.next_token += 1;
        let token = Secret([self.next_token; 32]);
        let connection = ConnectionId(number);
        let entered =
            self.directory.finish_log_in(self.now, connection, name(account), [0; 32], token.clone());
        if let Ok(Answer::InSession { name, .. }) = entered {
            prop_assert_eq!(fate, Fate::Open, "the password before a change enters after it");
            prop_assert_eq!(name, NAMES[account]);
            self.tokens.push((token, account));
            self.carries.insert(number, account);
            prop_assert!(self.directory.is_there(Name::new(NAMES[account]).unwrap().key()));
        }
        Ok(())
    }

    fn resume(&mut self, number: u64, token: &Index) -> Result<(), TestCaseError> {
        if self.tokens.is_empty() || !self.open.contains(&number) {
            return Ok(());
        }
        let (token, account) = self.tokens[token.index(self.tokens.len())].clone();
        let resumed = self.directory.resume(self.now, ConnectionId(number), token);
        if let Ok(Answer::InSession { name, .. }) = resumed {
            prop_assert_eq!(name, NAMES[account]);
            self.carries.insert(number, account);
        }
        let wrong = self.directory.resume(self.now, ConnectionId(number), Secret([0; 32]));
        prop_assert_eq!(wrong.unwrap_err().why, Blame::NoSession, "a token that was never handed out");
        Ok(())
    }

    fn ask(&mut self, number: u64, ask: &Ask) -> Result<(), TestCaseError> {
        let own = self.carries.get(&number).copied();
        let calls: Vec<u64> = self.calls.keys().copied().collect();
        let call = |index: &Index| if calls.is_empty() { 0 } else { calls[index.index(calls.len())] };
        let contact = || Contact::unlisted([number as u8; 32]);
        let asked = |account: &usize| NAMES[*account].to_owned();
        let request = match ask {
            Ask::StayAlive => Request::StayAlive,
            Ask::Watch(account) => Request::Watch { name: asked(account) },
            Ask::Unwatch(account) => Request::Unwatch { name: asked(account) },
            Ask::Wait => Request::WaitForCalls,
            Ask::StopWaiting => Request::StopWaiting,
            Ask::Call(account) => Request::Call { name: asked(account), talk: [0; 16], contact: contact() },
            Ask::Accept(index) => Request::Accept { call: call(index), contact: contact() },
            Ask::Refuse(index) => Request::Refuse { call: call(index) },
            Ask::Cancel(index) => Request::Cancel { call: call(index) },
            Ask::LogOut => Request::LogOut,
        };
        let answer = match request.clone() {
            Request::Accept { call, contact } => {
                let tokens = [(); 2].map(|()| [self.pairs.len() as u8; 16]);
                let pair = self.pairs.open(self.now, tokens).unwrap();
                let introduction = Introduction { pair, tokens };
                self.directory.accept(self.now, ConnectionId(number), call, contact, introduction)
            }
            request => self.directory.perform(self.now, ConnectionId(number), request),
        };
        prop_assert_eq!(answer.as_ref().is_err_and(|refusal| refusal.why == Blame::NoSession), own.is_none());
        let Ok(answer) = answer else { return Ok(()) };
        let own = own.expect("it has a session");
        match (request, answer, ask) {
            (Request::Watch { .. }, _, Ask::Watch(account)) => {
                // The push that comes now is not a change of what the client knows, but the beginning of it.
                self.watched.remove(&(number, *account));
                self.begun.insert((number, *account));
            }
            (Request::Unwatch { .. }, _, Ask::Unwatch(account)) => {
                self.watched.remove(&(number, *account));
            }
            (_, Answer::Ringing { call }, Ask::Call(account)) => {
                prop_assert!(self.calls.insert(call, (number, own, *account)).is_none());
            }
            (Request::Accept { call, .. }, Answer::Joined { peer, .. }, _) => {
                let (caller, caller_account, called) = self.calls[&call];
                prop_assert_eq!(called, own, "only the called user takes a call");
                prop_assert_eq!(peer.name, NAMES[caller_account]);
                prop_assert_eq!(peer.contact.key, [caller as u8; 32]);
                // The caller learns of it; `take_pushes` checks that it is this one.
                self.rings.remove(&(number, call));
            }
            (Request::Refuse { call }, _, _) => {
                prop_assert_eq!(self.calls[&call].2, own);
                self.rings.remove(&(number, call));
            }
            (Request::Cancel { call }, _, _) => prop_assert_eq!(self.calls[&call].0, number),
            (Request::LogOut, _, _) => self.left(number),
            _ => {}
        }
        Ok(())
    }

    /// A connection carries no session any more.
    fn left(&mut self, number: u64) {
        self.carries.remove(&number);
        self.watched.retain(|(connection, _), _| *connection != number);
        self.rings.retain(|(connection, _)| *connection != number);
    }

    fn take_pushes(&mut self) -> Result<(), TestCaseError> {
        for (ConnectionId(number), push) in self.directory.take_pushes() {
            match push {
                Push::Changed { name, presence } => {
                    let account = NAMES.iter().position(|known| *known == name).unwrap();
                    let before = self.watched.insert((number, account), presence);
                    let is_first = self.begun.remove(&(number, account));
                    prop_assert!(is_first || before.is_some_and(|before| before != presence), "no change");
                }
                Push::Incoming { call, name, .. } => {
                    let (_, caller, called) = self.calls[&call];
                    prop_assert_eq!(name, NAMES[caller]);
                    prop_assert_eq!(self.carries.get(&number), Some(&called));
                    self.rings.insert((number, call));
                }
                Push::Accepted { call, peer, .. } => {
                    let (caller, _, called) = self.calls[&call];
                    prop_assert_eq!(caller, number);
                    prop_assert_eq!(&peer.name, NAMES[called]);
                    let key = u64::from(peer.contact.key[0]);
                    prop_assert_eq!(self.carries.get(&key), Some(&called), "the key of the called client");
                }
                Push::PeerSeen { .. } => prop_assert!(false, "no client announces itself here"),
                Push::CallEnded { call, why } => {
                    self.rings.remove(&(number, call));
                    let (caller, _, _) = self.calls[&call];
                    prop_assert!(why != EndOfCall::Elsewhere || caller != number);
                }
                Push::SessionEnded { why } => {
                    prop_assert!(self.carries.contains_key(&number));
                    self.left(number);
                    prop_assert!(why != EndOfSession::Expired || self.now > Duration::ZERO);
                }
            }
        }
        Ok(())
    }

    /// Presence is sessions, what watchers know is true, and nothing grows beyond its bound.
    fn check(&mut self) -> Result<(), TestCaseError> {
        prop_assert!(self.begun.is_empty(), "each watch reports at once");
        for (number, account) in &self.carries {
            prop_assert!(self.open.contains(number));
            prop_assert!(self.directory.is_there(name(*account).key()));
        }
        for ((number, account), presence) in &self.watched {
            let is_there = self.directory.is_there(name(*account).key());
            prop_assert_eq!(is_there, *presence == Presence::There, "what {} knows of {}", number, account);
        }
        let (sizes, limits) = (self.directory.sizes(), limits());
        prop_assert!(sizes.sessions <= limits.sessions && sizes.sessions >= self.carries.len());
        prop_assert!(sizes.log_ins <= limits.log_ins && sizes.counts <= 8);
        prop_assert!(sizes.watches <= limits.watches * sizes.sessions);
        prop_assert!(sizes.calls <= limits.calls * sizes.sessions);
        let ringing: BTreeSet<u64> = self.rings.iter().map(|(_, call)| *call).collect();
        prop_assert_eq!(ringing.len(), sizes.calls, "clients know which calls ring");
        prop_assert_eq!(sizes.connections, self.open.len());
        Ok(())
    }
}

proptest! {
    #[test]
    fn the_directory_keeps_its_word_whatever_clients_do(acts in acts()) {
        let mut model = Model::new();
        // Most are there at first and wait for calls, so that calls are many.
        for number in 0..CONNECTIONS - 1 {
            let account = number as usize % NAMES.len();
            model.act(&Act::Connect(number))?;
            model.act(&Act::BeginLogIn(number, account))?;
            model.act(&Act::Prove(number))?;
            model.act(&Act::Ask(number, Ask::Wait))?;
        }
        for act in &acts {
            model.act(act)?;
        }
        // In the end, all are gone, and nothing of them is left but counts that leak.
        for number in 0..CONNECTIONS {
            model.act(&Act::Disconnect(number))?;
        }
        model.act(&Act::Pass(61_000))?;
        let left = model.directory.sizes();
        prop_assert_eq!(
            (left.sessions, left.log_ins, left.watches, left.calls, left.connections),
            (0, 0, 0, 0, 0)
        );
        model.now += Duration::from_secs(24 * 3600);
        model.directory.advance(model.now);
        prop_assert_eq!(model.directory.sizes().counts, 0);
    }
}
