//! Joins the terminal, the network, the history and the state: everything that happens becomes an event of the state, and
//! its effects are carried out here.

mod directory;
mod histories;
mod screen;
mod talk;

use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kendall_chat::peer::Met;
use kendall_chatcli::{Account, Acquaintance, Failure, User, note, now_ms, part, path_name, safety_number};
use kendall_curve::curvecp::SecretKey;
use kendall_talk::{Command, Upload};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{interval, timeout};
use zeroize::Zeroizing;

use crate::contacts::Contacts;
use crate::draw::Theme;
use crate::model::{Effect, Event, Model};
use directory::{Login, Request};
pub(crate) use histories::Histories;
use screen::Screen;
use talk::Talk;

/// Events that wait for the state.
const MOST_EVENTS: usize = 1024;
/// The interval at which the state receives the time.
const TICK: Duration = Duration::from_millis(250);
/// How long peers have to say goodbye, too, when the program ends.
const PARTING: Duration = Duration::from_secs(3);
/// How long the directory has to take the log-out.
const LOG_OUT: Duration = Duration::from_secs(1);

/// What reaches the main loop.
pub(crate) enum Happened {
    /// An event for the state.
    Event(Event),
    /// A contact was met for a talk.
    Met { name: String, talk: u128, met: Box<Met> },
    /// The program cannot go on.
    Fatal(anyhow::Error),
}

pub(crate) type Events = mpsc::Sender<Happened>;

/// What the program is started with.
pub(crate) struct Start {
    pub(crate) user: User,
    pub(crate) account: Account,
    pub(crate) password: Zeroizing<String>,
    pub(crate) identity: SecretKey,
    pub(crate) model: Model,
    pub(crate) histories: Option<Histories>,
    /// The folder for the files of contacts.
    pub(crate) files: PathBuf,
    pub(crate) theme: Theme,
}

struct Driver {
    start: Start,
    events: Events,
    directory: Option<mpsc::Sender<Request>>,
    talks: HashMap<String, Talk>,
    screen: Screen,
    is_over: bool,
}

/// Runs until the user ends the program.
pub(crate) async fn run(start: Start) -> anyhow::Result<()> {
    let (events, mut happens) = mpsc::channel(MOST_EVENTS);
    let log = start.user.profile.folder().join("log");
    let screen = Screen::open(&log, events.clone())?;
    let mut driver = Driver { start, events, directory: None, talks: HashMap::new(), screen, is_over: false };
    let done = driver.pass_events(&mut happens).await;
    driver.end().await;
    done
}

impl Driver {
    async fn pass_events(&mut self, happens: &mut mpsc::Receiver<Happened>) -> anyhow::Result<()> {
        let (mut interrupt, mut terminate, mut hang_up) = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        );
        let (columns, rows) = self.screen.size()?;
        self.update(Event::Resize { columns, rows });
        let mut ticks = interval(TICK);
        while !self.is_over {
            tokio::select! {
                happened = happens.recv() => {
                    let mut next = happened;
                    // All that has happened meanwhile is drawn at once.
                    while let Some(happened) = next {
                        self.take(happened)?;
                        next = happens.try_recv().ok();
                    }
                }
                _ = ticks.tick() => self.update(Event::Tick { now_ms: now_ms() }),
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                _ = hang_up.recv() => return Ok(()),
            }
            self.screen.draw(&self.start.model, self.start.theme)?;
        }
        Ok(())
    }

    fn take(&mut self, happened: Happened) -> anyhow::Result<()> {
        match happened {
            Happened::Event(event) => self.update(event),
            Happened::Met { name, talk, met } => self.met(&name, talk, *met)?,
            Happened::Fatal(error) => return Err(error),
        }
        Ok(())
    }

    fn update(&mut self, event: Event) {
        for effect in self.start.model.update(event) {
            if let Err(error) = self.carry_out(effect) {
                self.update(Event::Note { name: None, text: format!("{error:#}") });
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) -> anyhow::Result<()> {
        match effect {
            Effect::Connect => self.connect(),
            Effect::Watch(name) => self.request(Request::Watch(name)),
            Effect::Unwatch(name) => self.request(Request::Unwatch(name)),
            Effect::Who => self.request(Request::Who),
            Effect::Call { name, talk } => self.request(Request::Call { name, talk }),
            Effect::Cancel { name } => self.request(Request::Cancel { name }),
            Effect::Answer { call, name, talk } => self.request(Request::Answer { call, name, talk }),
            Effect::Refuse { call } => self.request(Request::Refuse { call }),
            Effect::Begin { name, talk } => {
                let begun = Talk::begin(name.clone(), talk, self.events.clone());
                self.talks.insert(name, begun);
            }
            Effect::Send { name, at_ms, text } => {
                self.command(&name, Command::Send { sent_ms: at_ms, text });
            }
            Effect::Read { name, through } => self.command(&name, Command::Read(through)),
            Effect::Typing { name } => self.command(&name, Command::Typing),
            Effect::Offer { name, path } => self.command(&name, Command::Offer(open(&path)?)),
            Effect::Take { name, file, title } => {
                let folder = self.start.files.clone();
                self.command(&name, Command::Take { file, name: title, folder });
            }
            Effect::CancelFile { name, file } => self.command(&name, Command::Cancel(file)),
            Effect::Leave { name } => self.command(&name, Command::Leave),
            Effect::Drop { name } => drop(self.talks.remove(&name)),
            Effect::Numbers { name } => return self.numbers(&name),
            Effect::Trust { name } => {
                self.start.user.profile.known_peers()?.forget(&name)?;
            }
            Effect::Save => {
                let contacts = Contacts::of(self.start.model.remembered());
                return contacts.save(self.start.user.profile.folder());
            }
            Effect::Record { name, entry } => {
                if let Some(histories) = &mut self.start.histories {
                    histories.append(&name, &entry)?;
                }
            }
            Effect::Bell => self.screen.bell()?,
            Effect::Redraw => self.screen.clear()?,
            Effect::Quit => self.is_over = true,
        }
        Ok(())
    }

    fn connect(&mut self) {
        let (requests, asked) = mpsc::channel(MOST_EVENTS);
        self.directory = Some(requests);
        let login = Login {
            account: self.start.account.clone(),
            password: self.start.password.clone(),
            identity: self.start.identity.clone(),
            transport: self.start.user.transport,
        };
        tokio::spawn(directory::attend(login, asked, self.events.clone()));
    }

    /// Hands a request to the directory's task. Where it has ended, the state learns so from the task itself.
    fn request(&self, request: Request) {
        if let Some(requests) = &self.directory {
            _ = requests.try_send(request);
        }
    }

    /// Hands a command to a talk. One that does not take it has a connection that is stuck: it begins anew.
    fn command(&mut self, name: &str, command: Command) {
        if let Some(talk) = self.talks.get(name)
            && let Err(why) = talk.command(command)
        {
            let talk = talk.id;
            let event = crate::model::TalkEvent::Broken(why.to_owned());
            self.update(Event::Talk { name: name.to_owned(), talk, event });
        }
    }

    /// Gives a talk its stream, if the contact's key is the one that is known.
    fn met(&mut self, name: &str, talk: u128, met: Met) -> anyhow::Result<()> {
        let Met { stream, path, name: answered, key } = met;
        let number = safety_number(&format!("{key:?}"));
        let name = name.to_owned();
        if answered != name {
            let why = format!("the directory has answered with another user, {answered}");
            self.update(Event::CallFailed { name, talk, why, is_refusal: true });
            return Ok(());
        }
        match self.start.user.profile.known_peers()?.check(&name, &key) {
            Ok(acquaintance) => {
                if acquaintance == Acquaintance::New {
                    self.update(Event::NewKey { name: name.clone(), number });
                }
                let is_relayed = path_name(path) == "relayed";
                match self.talks.get(&name).filter(|it| it.id == talk) {
                    Some(talk) => talk.continue_over(stream, is_relayed),
                    None => drop(tokio::spawn(part(stream))),
                }
            }
            Err(error) if matches!(error.downcast_ref(), Some(Failure::KeyChanged { .. })) => {
                tokio::spawn(part(stream));
                self.update(Event::ChangedKey { name, number });
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn numbers(&mut self, name: &str) -> anyhow::Result<()> {
        let own = safety_number(&format!("{:?}", self.start.identity.public_key()));
        let known = self.start.user.profile.known_peers()?;
        let theirs = known.numbers().find(|(known, _)| *known == name).map(|(_, number)| number);
        let theirs = theirs.unwrap_or_else(|| "not known before the first talk".to_owned());
        let text = format!(
            "safety numbers\n{name}: {theirs}\nyou: {own}\nAsk {name} by telephone whether both programs show the same two numbers."
        );
        self.update(Event::Note { name: Some(name.to_owned()), text });
        Ok(())
    }

    /// Gives the terminal back, says goodbye to peers and logs out.
    async fn end(mut self) {
        self.screen.close();
        let talks = self.talks.drain().map(|(_, talk)| talk.leave());
        let mut leaving = tokio::task::JoinSet::new();
        talks.for_each(|talk| drop(leaving.spawn(talk)));
        _ = timeout(PARTING, async { while leaving.join_next().await.is_some() {} }).await;
        if let Some(directory) = self.directory.take() {
            _ = directory.try_send(Request::LogOut);
            _ = timeout(LOG_OUT, directory.closed()).await;
        }
        let waiting = self.start.model.waiting();
        if waiting > 0 {
            let kept = if self.start.histories.is_some() {
                "they are sent with the next talk"
            } else {
                "they are lost"
            };
            note(&format!("{waiting} messages have not arrived: {kept}"));
        }
    }
}

/// Opens a file that is typed or dropped onto the terminal, which may put quotes around its path.
fn open(typed: &str) -> anyhow::Result<Upload> {
    let quoted = ['\'', '"'].iter().find_map(|quote| typed.strip_prefix(*quote)?.strip_suffix(*quote));
    let path = Path::new(quoted.unwrap_or(typed));
    let home = env::var_os("HOME").map(PathBuf::from);
    let path = match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    };
    Ok(Upload::open(&path)?)
}
