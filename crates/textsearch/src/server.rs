//! The server: each request is a search, which its worker leads and others help with.

mod answer;
mod board;
mod reload;
mod source;

use std::mem::take;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kendall_service::{
    Body, Counter, Decoded, Handler, Malformed, Registry, Reply, Server, ServiceError, Step, Then,
};
use kendall_station::{Discipline, Job, Size};

use crate::options::Options;
use crate::protocol::{Dialect, END, Framed, REQUEST_BYTES, TOO_BIG, fill_empty_rows, utf};
use crate::{Form, Origin, Reading, Rows, Search, SearchError, Semantics, Way};
use answer::{Answer, Kept, PIECE_BYTES};
use board::{Board, Crews, Help, Turn};
use source::DataSource;

/// The longest request that is answered, what frames it excluded: twice the longest pattern.
const TEXT_BYTES: usize = 8192;

/// Why a server does not start or ends early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The database cannot be opened.
    #[error(transparent)]
    Data(#[from] SearchError),
    /// The runtime says why.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// Opens the database and the server's sockets.
///
/// # Errors
/// Fails if the data cannot be read, an address is taken, or the file of stamps cannot be written.
pub fn bind(options: &Options) -> Result<Server<TextSearch>, ServeError> {
    Ok(Server::bind(options.service.clone(), TextSearch::new(options)?)?)
}

/// Serves until SIGINT or SIGTERM; on SIGHUP reads the file again and searches the new rows from then on. Calls `ready` with the
/// address once connections are accepted.
///
/// # Errors
/// As [`bind`], and if the stamps cannot be written.
pub fn serve(options: &Options, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let system = TextSearch::new(options)?;
    let source = Arc::clone(&system.source);
    let server = Server::bind(options.service.clone(), system)?;
    let hangups = reload::on_hangup(source);
    let result = server.run_until_signalled(ready);
    drop(hangups);
    Ok(result?)
}

/// The system as the runtime sees it.
#[derive(Debug)]
pub struct TextSearch {
    source: Arc<DataSource>,
    dialect: Dialect,
    semantics: Semantics,
    form: Form,
    deadline: Duration,
    /// Whether who is served next depends on how long it takes.
    sizes_matter: bool,
    /// Whether who interrupts a worker can only mean that its client went away.
    is_interrupted_by_leaving: bool,
    board: Arc<Board>,
    _crews: Crews,
    kept: Kept,
    answer_bytes: usize,
    meters: Meters,
}

/// What the system counts besides what the runtime counts.
#[derive(Debug, Default)]
struct Meters {
    searches: Counter,
    /// By the plan's way, in the order of [`Way::ALL`].
    ways: [Counter; Way::ALL.len()],
    shared: Counter,
    remembered: Counter,
    rows: Counter,
    refused: Counter,
    late: Counter,
    too_big: Counter,
    restarted: Counter,
}

/// A request in the hands of the runtime.
#[derive(Debug)]
pub struct Task {
    text: String,
    work: Option<Work>,
}

/// A search, and what was made of it so far.
#[derive(Debug)]
struct Work {
    search: Arc<Search>,
    spent: Duration,
    making: Making,
}

/// How the answer is made.
#[derive(Debug)]
enum Making {
    /// Nothing was sent yet.
    Lines,
    /// Its first rows are on their way.
    Begun(Arc<Answer>),
    /// As one message.
    Message { rows: Rows, text: Vec<u8> },
}

impl TextSearch {
    /// The system without its sockets.
    ///
    /// # Errors
    /// Fails if the data cannot be read or threads cannot be started.
    pub fn new(options: &Options) -> Result<Self, ServeError> {
        let source = DataSource::open(&options.data, &options.open, options.cache_bytes)?;
        let discipline = options.service.discipline;
        let board = Arc::new(Board::new(options.service.workers.get(), options.threads.get()));
        let crews = Crews::start(&board, options.deadline)
            .map_err(|source| ServiceError::Start { what: "threads that search", source })?;
        Ok(Self {
            source: Arc::new(source),
            dialect: options.dialect,
            semantics: options.semantics,
            form: options.form,
            deadline: options.deadline,
            sizes_matter: matches!(
                discipline,
                Discipline::ShortestRemaining | Discipline::CMu | Discipline::Gittins
            ),
            is_interrupted_by_leaving: !discipline.preempts(),
            board,
            _crews: crews,
            kept: Kept::default(),
            answer_bytes: options.answer_bytes,
            meters: Meters::default(),
        })
    }

    fn error(&self, words: &str) -> Reply {
        Reply::new(self.dialect.encode_error(words), Then::Keep)
    }

    /// Begins to work on a request, or says why not.
    fn begin(&self, text: &str) -> Result<Work, Reply> {
        if self.kept.bytes() >= self.answer_bytes {
            return Err(self.refusal());
        }
        let query = self.source.cache.query(text, &self.semantics).map_err(|error| {
            self.meters.refused.inc();
            self.error(&error.to_string())
        })?;
        let (search, origin) = self.source.cache.search(&self.source.current(), &query);
        match origin {
            Origin::New => {
                self.meters.searches.inc();
                self.meters.ways[search.plan().way() as usize].inc();
            }
            Origin::Shared => _ = self.meters.shared.inc(),
            Origin::Kept => _ = self.meters.remembered.inc(),
        }
        let making = match self.dialect {
            Dialect::Lines => Making::Lines,
            Dialect::Utf => Making::Message { rows: self.rows(&search), text: Vec::new() },
        };
        Ok(Work { search, spent: Duration::ZERO, making })
    }

    fn rows(&self, search: &Arc<Search>) -> Rows {
        Rows::new(Arc::clone(search), self.form)
    }

    /// What the discipline may know of a request: what the plan expects. As that is no more than an estimate, one that has taken so
    /// long already is not taken to be nearly done. One of which nothing is known counts as one of a second.
    fn job(&self, text: &str) -> Job {
        let expected_s = if self.sizes_matter { self.source.expected_s(text, &self.semantics) } else { None };
        Job { size: expected_s.map_or(Size::Unknown, Size::Memoryless), ..Job::new() }
    }

    /// Whoever interrupted went to somebody else, or a request of before was meant: all is searched again.
    fn restart(&self, work: &mut Work) {
        self.meters.restarted.inc();
        work.search = Arc::new(work.search.database().search(work.search.query()));
        match &mut work.making {
            Making::Lines => {}
            Making::Begun(answer) => answer.replace(&work.search),
            Making::Message { rows, text } => {
                *rows = Rows::new(Arc::clone(&work.search), self.form);
                text.clear();
            }
        }
    }

    /// What to do with what was found so far.
    fn hand_out(&self, work: &mut Work, attained: f64) -> Step {
        match &mut work.making {
            Making::Lines if work.search.rows_found() > 0 => {
                let answer = Arc::new(Answer::new(Arc::clone(&work.search), self.form, &self.kept));
                work.making = Making::Begun(Arc::clone(&answer));
                Step::Begun { reply: Reply { body: Body::Stream(answer), then: Then::Keep }, attained }
            }
            Making::Lines => Step::Continue { attained },
            Making::Begun(answer) => {
                answer.grew();
                Step::Continue { attained }
            }
            Making::Message { rows, text } => {
                rows.read(text, utf::MESSAGE_BYTES + 1);
                if text.len() <= utf::MESSAGE_BYTES {
                    return Step::Continue { attained };
                }
                work.search.cancel();
                Step::Done(self.message(take(text)))
            }
        }
    }

    /// The answer of a search that has found all.
    fn complete(&self, work: &mut Work) -> Reply {
        self.meters.rows.inc_by(work.search.rows_found());
        self.source.keep(&work.search);
        match &mut work.making {
            Making::Lines => self.lines(&work.search),
            Making::Begun(answer) => {
                answer.grew();
                nothing_more()
            }
            Making::Message { rows, text } => {
                rows.read(text, utf::MESSAGE_BYTES + 1);
                self.message(take(text))
            }
        }
    }

    /// A short answer as it is, a long one as it will be read.
    fn lines(&self, search: &Arc<Search>) -> Reply {
        let mut bytes = Vec::new();
        if self.rows(search).read(&mut bytes, PIECE_BYTES) == Reading::End {
            if self.form == Form::Sentence {
                fill_empty_rows(&mut bytes, 0);
            }
            bytes.push(END);
            return Reply::new(bytes, Then::Keep);
        }
        let answer = Answer::new(Arc::clone(search), self.form, &self.kept);
        Reply { body: Body::Stream(Arc::new(answer)), then: Then::Keep }
    }

    /// One message of these rows, or of the words that it would be too long.
    fn message(&self, mut rows: Vec<u8>) -> Reply {
        if self.form == Form::Sentence {
            fill_empty_rows(&mut rows, 0);
        }
        let rows = String::from_utf8(rows).expect("a database holds text");
        let bytes = self.dialect.encode_answer(&rows);
        if &bytes[utf::LENGTH_BYTES..] == TOO_BIG.as_bytes() {
            self.meters.too_big.inc();
        }
        Reply::new(bytes, Then::Keep)
    }

    /// The end of a search that cannot go on.
    fn fail(&self, work: &Work, why: &str) -> Reply {
        self.source.keep(&work.search);
        match &work.making {
            Making::Begun(answer) => {
                answer.fail(why);
                nothing_more()
            }
            Making::Lines | Making::Message { .. } => self.error(why),
        }
    }
}

/// What ends the work of an answer that is sent already; it reaches nobody.
fn nothing_more() -> Reply {
    Reply::new(Vec::new(), Then::Keep)
}

impl Handler for TextSearch {
    type Task = Task;

    fn max_request_bytes(&self) -> usize {
        REQUEST_BYTES
    }

    fn decode(&self, bytes: &[u8]) -> Result<Option<Decoded<Task>>, Malformed> {
        let Some(Framed { used_bytes, text }) = self.dialect.decode_request(bytes) else { return Ok(None) };
        let refused = |words: &str| {
            self.meters.refused.inc();
            Decoded::Answer { used_bytes, reply: self.error(words), body: None }
        };
        Ok(Some(match text {
            // Many may wait, so what each of them keeps is small.
            Ok(text) if text.len() > TEXT_BYTES => refused(&format!(
                "the request has more than the {TEXT_BYTES} bytes that are read: name fewer types, or make the pattern shorter"
            )),
            Ok(text) => {
                let key = Some(text.clone().into_bytes());
                Decoded::Work {
                    used_bytes,
                    job: self.job(&text),
                    task: Task { text, work: None },
                    key,
                    body: None,
                }
            }
            Err(error) => refused(&error.to_string()),
        }))
    }

    fn first_chunk(&self) -> u64 {
        1000
    }

    /// A unit is a microsecond.
    fn advance(&self, worker: usize, task: &mut Task, units: u64) -> Step {
        let begun = Instant::now();
        let (work, help) = match &mut task.work {
            Some(work) => (work, Help::Wanted),
            none => match self.begin(&task.text) {
                Ok(work) => (none.insert(work), Help::NotYet),
                Err(reply) => return Step::Done(reply),
            },
        };
        if work.search.is_cancelled() {
            self.restart(work);
        }
        let (budget, until) =
            (Duration::from_micros(units), begun + self.deadline.saturating_sub(work.spent));
        let turn = self.board.work(worker, &work.search, budget, until, help);
        let took = begun.elapsed();
        work.spent += took;
        match turn {
            Turn::More => self.hand_out(work, took.as_secs_f64()),
            Turn::Interrupted => Step::Continue { attained: took.as_secs_f64() },
            Turn::Complete => Step::Done(self.complete(work)),
            Turn::Failed => {
                let why = work.search.failure().map(ToString::to_string).unwrap_or_default();
                Step::Done(self.fail(work, &why))
            }
            Turn::Late => {
                self.meters.late.inc();
                let why = format!(
                    "the search took longer than the {:?} that this server spends on a request: make the pattern simpler, or \
                     name fewer types",
                    self.deadline
                );
                Step::Done(self.fail(work, &why))
            }
        }
    }

    fn interrupt(&self, worker: usize) {
        if self.is_interrupted_by_leaving {
            self.board.interrupt(worker);
        }
    }

    fn refusal(&self) -> Reply {
        self.error("the server has no room for this request now, or shuts down; ask again later")
    }

    fn register(&self, registry: &mut Registry) {
        let mut add = |name: &str, help: &str, counter: &Counter| {
            registry.register(format!("textsearch_{name}"), help, counter.clone());
        };
        add("searches", "Searches that were begun", &self.meters.searches);
        for way in Way::ALL {
            let name = format!("by_{}", way.name().replace('-', "_"));
            add(&name, "Searches by the way that their plan chose", &self.meters.ways[way as usize]);
        }
        add(
            "shared",
            "Requests that joined the search of another that comes to the same",
            &self.meters.shared,
        );
        add("remembered", "Requests whose answer was remembered", &self.meters.remembered);
        add("rows", "Rows found by searches that came to their end", &self.meters.rows);
        add("refused", "Requests whose pattern or types were refused", &self.meters.refused);
        add("late", "Searches that were given up at the deadline", &self.meters.late);
        add("too_big", "Answers that were longer than a message", &self.meters.too_big);
        add("restarted", "Searches that were interrupted by mistake and begun again", &self.meters.restarted);
        add("reloads", "Times that the data was read again", &self.source.reloads);
        add("failed_reloads", "Times that it could not be", &self.source.failed_reloads);
    }
}
