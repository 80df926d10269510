//! The server: each request is a search, which its worker leads and other threads help with.

mod answer;
mod board;
mod reload;
mod source;

use std::borrow::Cow;
use std::mem::take;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use kendall_service::{
    Counter, Decoded, Decoding, Handler, Interrupt, Registry, Reply, Server, ServiceError, Step, Then, Turn,
};
use kendall_station::{Job, Knows, Size};

use crate::cache::{Cache, Origin};
use crate::error::SearchError;
use crate::options::TextSearchOptions;
use crate::plan::SearchMethod;
use crate::protocol::{Dialect, END, Framed, REQUEST_BYTES, TOO_BIG, fill_empty_rows, utf};
use crate::query::Stopped;
use crate::rows::{Form, Reading, Rows};
use crate::search::{Interest, Search};
use crate::semantics::Semantics;
use answer::{Answer, AnswerMemory, PIECE_BYTES};
use board::{Board, Crews, Help, Shift, ShiftEnd};
use source::DataSource;

/// The longest request that is answered, without its framing: twice the longest pattern.
const TEXT_BYTES: usize = 8192;

/// The reason why a server does not start or ends early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The database cannot be opened.
    #[error(transparent)]
    Data(#[from] SearchError),
    /// The runtime's error.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// Opens the database and the server's sockets.
///
/// # Errors
/// Fails if the data cannot be read, an address is in use, or the file of stamps cannot be written.
pub fn bind(options: &TextSearchOptions) -> Result<Server<TextSearch>, ServeError> {
    Ok(Server::bind(options.service.clone(), TextSearch::new(options)?)?)
}

/// Serves until SIGINT or SIGTERM; on SIGHUP reads the file again and searches the new rows from then on. Calls `ready` with the
/// address once the server accepts connections.
///
/// # Errors
/// As [`bind`], and if the stamps cannot be written.
pub fn serve(options: &TextSearchOptions, ready: impl FnOnce(SocketAddr)) -> Result<(), ServeError> {
    let system = TextSearch::new(options)?;
    let source = Arc::clone(&system.source);
    let server = Server::bind(options.service.clone(), system)?;
    let hangups = reload::on_hangup(&source);
    let result = server.run_until_signalled(ready);
    source.end();
    drop(hangups);
    Ok(result?)
}

/// The system in the form of the runtime.
#[derive(Debug)]
pub struct TextSearch {
    source: Arc<DataSource>,
    dialect: Dialect,
    semantics: Semantics,
    form: Form,
    deadline: Duration,
    /// Whether the order of service depends on how long a request takes.
    sizes_matter: bool,
    board: Arc<Board>,
    _crews: Crews,
    kept: AnswerMemory,
    answer_bytes: usize,
    meters: Meters,
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub enum Response {
    /// The bytes of the response, ready to be sent.
    Whole(Vec<u8>),
    /// Rows, which can be sent while they are found.
    Rows(RowSource),
    /// The reason why there is no answer.
    Refused(Cow<'static, str>),
    /// The end of rows that were sent already: it reaches no client.
    End,
}

/// Rows of an answer that may still grow.
#[derive(Clone, Debug)]
pub struct RowSource(Arc<Answer>);

/// The counters of the system, in addition to the runtime's.
#[derive(Debug, Default)]
struct Meters {
    searches: Counter,
    /// By the plan's method, in the order of [`SearchMethod::ALL`].
    methods: [Counter; SearchMethod::ALL.len()],
    shared: Counter,
    remembered: Counter,
    rows: Counter,
    refused: Counter,
    late: Counter,
    too_big: Counter,
}

/// A request in the runtime.
#[derive(Debug)]
pub struct Task {
    text: String,
    work: Option<Work>,
}

/// A search, and the state of its answer.
#[derive(Debug)]
struct Work {
    search: Interest,
    spent: Duration,
    making: Making,
}

/// How the answer is sent.
#[derive(Debug)]
enum Making {
    /// Nothing was sent yet.
    Lines,
    /// The first rows of the answer were sent.
    Begun(Arc<Answer>),
    /// The answer is one message.
    Message { rows: Rows, text: Vec<u8> },
}

impl TextSearch {
    /// The system without its sockets.
    ///
    /// # Errors
    /// Fails if the data cannot be read or threads cannot be started.
    pub fn new(options: &TextSearchOptions) -> Result<Self, ServeError> {
        let cache = Cache::new(options.pattern_bytes, options.cache_bytes);
        let source = DataSource::open(&options.data, &options.open, cache)?;
        let discipline = options.service.discipline;
        let board = Arc::new(Board::new(options.service.workers.get(), options.threads.get()));
        let crews = Crews::start(&board)
            .map_err(|source| ServiceError::Start { what: "threads that search", source })?;
        Ok(Self {
            source: Arc::new(source),
            dialect: options.dialect,
            semantics: options.semantics,
            form: options.form,
            deadline: options.deadline,
            sizes_matter: match discipline.knows() {
                Knows::Nothing | Knows::Weight => false,
                Knows::WeightAndMean | Knows::WeightAndLaw | Knows::Size => true,
            },
            board,
            _crews: crews,
            kept: AnswerMemory::default(),
            answer_bytes: options.answer_bytes,
            meters: Meters::default(),
        })
    }

    /// Begins to work on a request, or returns why it cannot. Reading its pattern and planning count towards the deadline.
    fn begin(&self, text: &str, until: Instant, interrupt: &Interrupt) -> Result<Work, Response> {
        let stop = || interrupt.is_abandoned() || Instant::now() >= until;
        if self.kept.bytes() >= self.answer_bytes {
            return Err(self.refusal());
        }
        let query = self.source.cache.query(text, &self.semantics).map_err(|error| {
            self.meters.refused.inc();
            Response::Refused(error.to_string().into())
        })?;
        let database = self.source.current();
        let (search, origin) = loop {
            let planned = self.source.cache.search_unless(&database, &query, &stop);
            let (search, origin) = planned.map_err(|Stopped| Response::Refused(self.late().into()))?;
            // A search that its last request has just left is about to be cancelled.
            match search.join() {
                Some(search) => break (search, origin),
                None => yield_now(),
            }
        };
        match origin {
            Origin::New => {
                self.meters.searches.inc();
                self.meters.methods[search.plan().method() as usize].inc();
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

    /// Counts a request that took too long, and returns the message.
    fn late(&self) -> String {
        self.meters.late.inc();
        format!(
            "the search took longer than the {:?} that this server allows for a request: make the pattern simpler, or name fewer \
             types",
            self.deadline
        )
    }

    fn rows(&self, search: &Arc<Search>) -> Rows {
        Rows::new(Arc::clone(search), self.form)
    }

    /// What the discipline knows of a request: the plan's expectation. As that is only an estimate, a request that has already
    /// taken that long does not count as nearly done. A request of unknown time counts as one of a second.
    fn job(&self, text: &str) -> Job {
        let expected_s = if self.sizes_matter { self.source.expected_s(text, &self.semantics) } else { None };
        Job { size: expected_s.map_or(Size::Unknown, Size::Memoryless), ..Job::new() }
    }

    /// Decides what to send of the rows found up to now.
    fn hand_out(&self, work: &mut Work, attained: f64) -> Step<Response> {
        match &mut work.making {
            Making::Lines if work.search.rows_found() > 0 => {
                let answer = Arc::new(Answer::new(Arc::clone(&work.search), self.form, &self.kept));
                work.making = Making::Begun(Arc::clone(&answer));
                Step::Begun { answer: Response::Rows(RowSource(answer)), attained }
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
                Step::Done(self.message(take(text)))
            }
        }
    }

    /// The answer of a complete search.
    fn complete(&self, work: &mut Work) -> Response {
        self.meters.rows.inc_by(work.search.rows_found());
        self.source.keep(&work.search);
        match &mut work.making {
            Making::Lines => self.lines(&work.search),
            Making::Begun(answer) => {
                answer.grew();
                Response::End
            }
            Making::Message { rows, text } => {
                rows.read(text, utf::MESSAGE_BYTES + 1);
                self.message(take(text))
            }
        }
    }

    /// A short answer as it is, a long one to be read in pieces.
    fn lines(&self, search: &Arc<Search>) -> Response {
        let mut bytes = Vec::new();
        if self.rows(search).read(&mut bytes, PIECE_BYTES) == Reading::End {
            if self.form == Form::Sentence {
                fill_empty_rows(&mut bytes, 0);
            }
            bytes.push(END);
            return Response::Whole(bytes);
        }
        Response::Rows(RowSource(Arc::new(Answer::new(Arc::clone(search), self.form, &self.kept))))
    }

    /// One message of these rows, or of the text that it would be too long.
    fn message(&self, mut rows: Vec<u8>) -> Response {
        if self.form == Form::Sentence {
            fill_empty_rows(&mut rows, 0);
        }
        let rows = String::from_utf8(rows).expect("a database holds text");
        let bytes = self.dialect.encode_answer(&rows);
        if &bytes[utf::LENGTH_BYTES..] == TOO_BIG.as_bytes() {
            self.meters.too_big.inc();
        }
        Response::Whole(bytes)
    }

    /// The end of a search that cannot continue.
    fn fail(&self, work: &Work, why: String) -> Response {
        self.source.keep(&work.search);
        match &work.making {
            Making::Begun(answer) => {
                answer.fail(&why);
                Response::End
            }
            Making::Lines | Making::Message { .. } => Response::Refused(why.into()),
        }
    }
}

impl Handler for TextSearch {
    type Task = Task;
    type Answer = Response;

    fn max_request_bytes(&self) -> usize {
        REQUEST_BYTES
    }

    fn decode(&self, bytes: &[u8]) -> Decoding<Self> {
        let Some(Framed { used_bytes, text }) = self.dialect.decode_request(bytes) else { return Ok(None) };
        let refused = |words: String| {
            self.meters.refused.inc();
            Decoded::answer(used_bytes, Response::Refused(words.into()))
        };
        Ok(Some(match text {
            // Many requests may wait, so the state of each is small.
            Ok(text) if text.len() > TEXT_BYTES => refused(format!(
                "the request is longer than the limit of {TEXT_BYTES} bytes: name fewer types, or make the pattern shorter"
            )),
            Ok(text) => {
                let key = self.source.key(&text);
                Decoded::work(used_bytes, self.job(&text), Task { text, work: None }).sharing(key)
            }
            Err(error) => refused(error.to_string()),
        }))
    }

    fn first_chunk(&self) -> u64 {
        1000
    }

    /// A unit is a microsecond.
    fn advance(&self, task: &mut Task, turn: &mut Turn<Response>) -> Step<Response> {
        let begun = Instant::now();
        let (work, help) = match &mut task.work {
            Some(work) => (work, Help::Wanted),
            none => match self.begin(&task.text, begun + self.deadline, turn.interrupt()) {
                Ok(work) => (none.insert(work), Help::NotYet),
                Err(answer) => return Step::Done(answer),
            },
        };
        let shown = self.board.work(
            &work.search,
            &Shift {
                worker: turn.worker(),
                interrupt: turn.interrupt(),
                budget: Duration::from_micros(turn.units()),
                until: begun + self.deadline.saturating_sub(work.spent),
                help,
            },
        );
        let took = begun.elapsed();
        work.spent += took;
        match shown {
            ShiftEnd::More => self.hand_out(work, took.as_secs_f64()),
            ShiftEnd::Complete => Step::Done(self.complete(work)),
            ShiftEnd::Failed => {
                let why = work.search.failure().map(ToString::to_string).unwrap_or_default();
                Step::Done(self.fail(work, why))
            }
            ShiftEnd::Late => {
                let why = self.late();
                Step::Done(self.fail(work, why))
            }
        }
    }

    fn encode(&self, answer: Response) -> Reply {
        let bytes = match answer {
            Response::Whole(bytes) => bytes,
            Response::Rows(RowSource(rows)) => return Reply::stream(rows, Then::Keep),
            Response::Refused(why) => self.dialect.encode_error(&why),
            Response::End => Vec::new(),
        };
        Reply::new(bytes, Then::Keep)
    }

    fn refusal(&self) -> Response {
        Response::Refused("the server is full or shutting down; retry later".into())
    }

    fn register(&self, registry: &mut Registry) {
        let mut add = |name: &str, help: &str, counter: &Counter| {
            registry.register(format!("textsearch_{name}"), help, counter.clone());
        };
        add("searches", "Searches that were begun", &self.meters.searches);
        for method in SearchMethod::ALL {
            let name = format!("by_{}", method.name().replace('-', "_"));
            add(&name, "Searches by the method that their plan chose", &self.meters.methods[method as usize]);
        }
        add("shared", "Requests that joined the search of an equivalent one", &self.meters.shared);
        add("remembered", "Requests answered from the cache", &self.meters.remembered);
        add("rows", "Rows found by completed searches", &self.meters.rows);
        add("refused", "Requests whose pattern or types were rejected", &self.meters.refused);
        add("late", "Searches abandoned at the deadline", &self.meters.late);
        add("too_big", "Answers that were longer than a message", &self.meters.too_big);
        add("reloads", "Times that the data was read again", &self.source.reloads);
        add("failed_reloads", "Times that reading it again failed", &self.source.failed_reloads);
    }
}
