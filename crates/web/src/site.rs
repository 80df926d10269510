//! The routes of the site.

use std::path::PathBuf;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query, Request, State as Shared};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use kendall_archive::origin;
use kendall_report::{STYLE, UPLOT_CSS, UPLOT_JS};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;

use crate::Site;
use crate::analysis::Analysis;
use crate::children::{ActionError, Children, stop};
use crate::door::{Door, Entry};
use crate::events::{MOST_WATCHERS, events};
use crate::files;
use crate::heavy::{Heavy, HeavyError};
use crate::id::RunId;
use crate::pages::{ComparePage, List, ListPage, Message, ResumePage, RunPage, WhatIfPage};
use crate::picture::Pictures;
use crate::run::{Changed, Run, changed, experiment};
use crate::runs::Runs;
use crate::watch::{RunStatus, Watchers};
use crate::what_if::{self, Detail, FittedRun, FittedRuns, Question, WhatIf};

/// The content security policy of the site's pages: only their own content.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// The policy of a picture, which may come from another person: it uses its own style, and a browser that shows it as a page
/// runs and sends nothing.
const PICTURE_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; \
     frame-ancestors 'none'";
/// The most characters of a search; the rest is cut off.
const LONGEST_SEARCH: usize = 200;
/// The number of runs offered for a comparison.
const MOST_OFFERED: usize = 200;

/// The state that all requests share.
struct House {
    site: Site,
    analysis: Analysis,
    runs: Arc<Runs>,
    pictures: Arc<Pictures>,
    watchers: Arc<Watchers>,
    places: Arc<Semaphore>,
    children: Arc<Children>,
    heavy: Heavy,
    /// Previews of what-if views, which must not wait for reports.
    previews: Heavy,
    fitted: Arc<FittedRuns>,
    leaving: watch::Receiver<bool>,
    /// The build, in the URLs of files that never change within it.
    build: String,
}

type Here = Shared<Arc<House>>;

/// All routes of a site, behind its access control.
pub(crate) fn pages(site: Site, analysis: Analysis, door: Door, leaving: watch::Receiver<bool>) -> Router {
    let house = House {
        runs: Arc::new(Runs::new(site.results.clone())),
        pictures: Arc::new(Pictures::new()),
        watchers: Arc::default(),
        places: Arc::new(Semaphore::new(MOST_WATCHERS)),
        children: Arc::new(Children::new(site.program.clone())),
        heavy: Heavy::new(),
        previews: Heavy::new(),
        fitted: Arc::new(FittedRuns::new(site.systems)),
        leaving,
        build: build(),
        site,
        analysis,
    };
    Router::new()
        .route("/", get(list))
        .route("/list", get(list_alone))
        .route("/runs/{experiment}/{stamp}/", get(run))
        .route("/runs/{experiment}/{stamp}/{*file}", get(file))
        .route("/events/{experiment}/{stamp}", get(watch_run))
        .route("/picture/{experiment}/{stamp}", get(picture))
        .route("/stop/{experiment}/{stamp}", post(stop_run))
        .route("/resume/{experiment}/{stamp}", get(ask_to_resume).post(resume_run))
        .route("/compare", get(compare))
        .route("/what-if", get(what_if_page))
        .route("/what-if/answer", get(what_if_answer))
        .route("/assets/{build}/{name}", get(asset))
        .route("/favicon.ico", get(icon))
        .fallback(nothing)
        .with_state(Arc::new(house))
        .layer(middleware::from_fn_with_state(Arc::new(door), enter))
}

/// A name that changes with the embedded files.
fn build() -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (STYLE, WEB_CSS, LIST_JS, LIVE_JS, WHAT_IF_JS, UPLOT_JS, UPLOT_CSS).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

const WEB_CSS: &str = include_str!("../templates/web.css");
const LIST_JS: &str = include_str!("../templates/list.js");
const LIVE_JS: &str = include_str!("../templates/live.js");
const WHAT_IF_JS: &str = include_str!("../templates/what-if.js");

const ICON: &str = include_str!("../templates/icon.svg");

async fn asset(Path((_, name)): Path<(String, String)>) -> Response {
    const CSS: &str = "text/css; charset=utf-8";
    const JS: &str = "text/javascript; charset=utf-8";
    match name.as_str() {
        "page.css" => files::asset([STYLE, UPLOT_CSS, WEB_CSS].join("\n"), CSS),
        "list.js" => files::asset(LIST_JS, JS),
        "live.js" => files::asset(LIVE_JS, JS),
        "what-if.js" => files::asset(WHAT_IF_JS, JS),
        "uplot.js" => files::asset(UPLOT_JS, JS),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The files that browsers request on their own initiative.
async fn icon() -> Response {
    // The drawing contains its style.
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    let headers = [(header::CONTENT_TYPE, "image/svg+xml"), (header::CONTENT_SECURITY_POLICY, policy)];
    (headers, ICON).into_response()
}

/// Checks access, and adds the security headers.
async fn enter(Shared(door): Shared<Arc<Door>>, request: Request, next: Next) -> Response {
    let entry = door.entry(request.method(), request.uri().query(), request.headers());
    let mut response = match &entry {
        Entry::Refused(status, why) => (*status, format!("kendall: {why}\n")).into_response(),
        // Without the token, the URL stays out of the browser's history and out of the referrer that a report could see.
        Entry::Known(_) if is_shown(&request) => Redirect::to(&without_token(request.uri())).into_response(),
        Entry::Open | Entry::Known(_) => next.run(request).await,
    };
    let headers = response.headers_mut();
    if let Entry::Known(cookie) = &entry
        && let Ok(cookie) = HeaderValue::from_str(cookie)
    {
        headers.append(header::SET_COOKIE, cookie);
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    // Forms need the referrer; other sites must not get it.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Whether a browser requests a page to show.
fn is_shown(request: &Request) -> bool {
    let accepted = request.headers().get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    request.method() == Method::GET && accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

fn without_token(uri: &Uri) -> String {
    let pairs = uri.query().unwrap_or_default().split('&');
    let others: Vec<&str> = pairs.filter(|pair| !pair.starts_with("token=") && !pair.is_empty()).collect();
    if others.is_empty() { uri.path().to_owned() } else { format!("{}?{}", uri.path(), others.join("&")) }
}

/// The query of a request for the list of runs.
#[derive(Default)]
struct ListQuery {
    search: String,
    page: usize,
}

impl ListQuery {
    fn of(pairs: &[(String, String)]) -> Self {
        let value = |name| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let search = value("q").unwrap_or_default().chars().take(LONGEST_SEARCH).collect();
        Self { search, page: value("page").and_then(|page| page.parse().ok()).unwrap_or(1) }
    }
}

type Pairs = Query<Vec<(String, String)>>;

async fn list(Shared(house): Here, Query(pairs): Pairs) -> Result<Response, Refusal> {
    let results = house.site.results.display().to_string();
    let list = house.list(&pairs).await?;
    house.html(&ListPage { build: &house.build, results, list })
}

async fn list_alone(Shared(house): Here, Query(pairs): Pairs) -> Result<Response, Refusal> {
    let list = house.list(&pairs).await?;
    house.html(&list)
}

async fn run(Shared(house): Here, Path(names): Path<(String, String)>) -> Result<Response, Refusal> {
    let (id, folder) = house.find(names).await?;
    let note = house.children.note(&id);
    let runs = Arc::clone(&house.runs);
    let of_run = id.clone();
    let read = blocking(move || {
        let run = Run::read(of_run.clone(), &folder, Changed::of(&folder))?;
        let all = runs.all();
        let same = all.iter().filter(|other| other.name == run.name && other.id != of_run);
        let others = same.take(MOST_OFFERED).map(|other| other.id.clone()).collect();
        let seen = RunStatus::read(&folder, None, note);
        Some((run, seen, files::listed(&folder), experiment(&folder).unwrap_or_default(), others))
    });
    let (run, seen, files, experiment, others) = read.await?.ok_or_else(|| house.missing())?;
    house.html(&RunPage { build: &house.build, run: &run, seen: &seen, files, experiment, others })
}

async fn file(
    Shared(house): Here,
    Path((experiment, stamp, path)): Path<(String, String, String)>,
) -> Result<Response, Refusal> {
    let (_, folder) = house.find((experiment, stamp)).await?;
    if path == "report.html" {
        house.renew_report(folder.clone()).await?;
    }
    let (of, name) = (Arc::clone(&house.runs), PathBuf::from(path));
    let opened = blocking(move || (of.hold(&folder).and_then(|held| held.file(&name)).ok(), name)).await?;
    let (Some(file), name) = opened else { return Err(house.missing()) };
    files::send(file, &name).await.map_err(|_| house.missing())
}

async fn watch_run(
    Shared(house): Here,
    Path(names): Path<(String, String)>,
    Query(pairs): Pairs,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let (id, folder) = house.find(names).await?;
    // A browser that reconnects sends its last number in a header; a page that connects anew sends it in the URL.
    let header = headers.get("last-event-id").and_then(|mark| mark.to_str().ok());
    let asked = pairs.iter().find(|(key, _)| key == "since").map(|(_, mark)| mark.as_str());
    let mark = header.or(asked).unwrap_or_default().to_owned();
    let busy = (
        StatusCode::SERVICE_UNAVAILABLE,
        [(header::RETRY_AFTER, "5")],
        "too many browsers are watching already\n",
    );
    let Ok(place) = Arc::clone(&house.places).try_acquire_owned() else { return Ok(busy.into_response()) };
    let note = house.children.note(&id);
    let looked = folder.clone();
    let first = blocking(move || RunStatus::read(&looked, None, note)).await?;
    let seen = house.watchers.watch(&id, folder, first, &house.children);
    Ok(events(seen, mark, house.leaving.clone(), place))
}

async fn picture(Shared(house): Here, Path(names): Path<(String, String)>) -> Result<Response, Refusal> {
    let (id, folder) = house.find(names).await?;
    let pictures = Arc::clone(&house.pictures);
    let svg = blocking(move || pictures.of(&id, &folder)).await?.ok_or_else(|| house.missing())?;
    let headers =
        [(header::CONTENT_TYPE, "image/svg+xml"), (header::CONTENT_SECURITY_POLICY, PICTURE_POLICY)];
    Ok((headers, svg.to_string()).into_response())
}

async fn stop_run(Shared(house): Here, Path(names): Path<(String, String)>) -> Result<Response, Refusal> {
    let (id, folder) = house.find(names).await?;
    let runs = Arc::clone(&house.runs);
    let stopped = blocking(move || stop(&runs.hold(&folder).map_err(ActionError::Stop)?)).await?;
    house.done(&id, stopped)
}

/// Shows the command before it is started.
async fn ask_to_resume(
    Shared(house): Here,
    Path(names): Path<(String, String)>,
) -> Result<Response, Refusal> {
    let (id, folder) = house.find(names).await?;
    let of = folder.clone();
    let (is_ours, experiment) = blocking(move || (origin::is_ours(&of), experiment(&of))).await?;
    let command = house.children.command(&folder);
    house.html(&ResumePage {
        build: &house.build,
        id,
        is_ours,
        command,
        experiment: experiment.unwrap_or_default(),
    })
}

async fn resume_run(Shared(house): Here, Path(names): Path<(String, String)>) -> Result<Response, Refusal> {
    let (id, folder) = house.find(names).await?;
    let (runs, children, of) = (Arc::clone(&house.runs), Arc::clone(&house.children), id.clone());
    let resumed = blocking(move || {
        let held = runs.hold(&folder).map_err(ActionError::Start)?;
        children.resume(&of, &held, &folder)
    });
    let resumed = resumed.await?;
    house.done(&id, resumed)
}

async fn compare(Shared(house): Here, Query(pairs): Pairs) -> Result<Response, Refusal> {
    let runs = Arc::clone(&house.runs);
    let known =
        blocking(move || runs.all().iter().take(MOST_OFFERED).map(|run| run.id.to_string()).collect());
    let known: Vec<String> = known.await?;
    let mut asked = pairs.into_iter().filter(|(key, value)| key == "run" && !value.is_empty());
    let sides = [asked.next(), asked.next()].map(|side| side.map(|(_, value)| value));
    let [Some(base), Some(side)] = &sides else {
        return house.html(&ComparePage::empty(&house.build, sides, known, None));
    };
    let mut named = Vec::new();
    // Short names, since each is in many column heads.
    for (letter, name) in [("A", base), ("B", side)] {
        let found = RunId::parse(name).map(|id| house.folder(id));
        match found {
            Some(found) => match found.await {
                Ok((_, folder)) => named.push((letter.to_owned(), folder)),
                Err(_) => break,
            },
            None => break,
        }
    }
    if named.len() < 2 || base == side {
        let why = "Name two different runs of these results, as EXPERIMENT/INSTANT.".to_owned();
        return house.html(&ComparePage::empty(&house.build, sides, known, Some(why)));
    }
    let shared = Arc::clone(&house);
    let compared = house.heavy.work(move || (shared.analysis.compare)(&named)).await;
    let page = |why| ComparePage::empty(&house.build, sides.clone(), known.clone(), why);
    match compared {
        Ok(compared) => house.html(&page(None).with(&compared)),
        Err(HeavyError::Failed(why)) => house.html(&page(Some(why))),
        Err(error) => Err(house.refusal(StatusCode::SERVICE_UNAVAILABLE, "Not now", &error.to_string())),
    }
}

async fn what_if_page(Shared(house): Here, Query(pairs): Pairs) -> Result<Response, Refusal> {
    let named = pairs.iter().find(|(key, _)| key == "run");
    house.html(&WhatIfPage::new(&house.build, named.and_then(|(_, name)| RunId::parse(name))))
}

async fn what_if_answer(Shared(house): Here, Query(pairs): Pairs) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    match house.what_if(&pairs).await {
        Ok(answer) => (json, serde_json::json!(answer).to_string()).into_response(),
        Err((status, why)) => (status, json, serde_json::json!({ "error": why }).to_string()).into_response(),
    }
}

async fn nothing(Shared(house): Here) -> Refusal {
    house.missing()
}

/// An error page.
struct Refusal(Box<Response>);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        *self.0
    }
}

impl Refusal {
    fn of(response: impl IntoResponse) -> Self {
        Self(Box::new(response.into_response()))
    }
}

/// Runs a function that reads files, on a separate thread.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let lost = |_| Refusal::of(StatusCode::INTERNAL_SERVER_ERROR);
    spawn_blocking(work).await.map_err(lost)
}

impl House {
    async fn list(&self, pairs: &[(String, String)]) -> Result<List, Refusal> {
        let (asked, runs) = (ListQuery::of(pairs), Arc::clone(&self.runs));
        blocking(move || List { page: runs.page(&asked.search, asked.page), search: asked.search }).await
    }

    /// The identity and the folder of the run with these names.
    async fn find(&self, (experiment, stamp): (String, String)) -> Result<(RunId, PathBuf), Refusal> {
        let id = RunId::new(&experiment, &stamp).ok_or_else(|| self.missing())?;
        self.folder(id).await
    }

    async fn folder(&self, id: RunId) -> Result<(RunId, PathBuf), Refusal> {
        let (runs, of) = (Arc::clone(&self.runs), id.clone());
        let folder = blocking(move || of.folder(runs.results())).await?;
        Ok((id, folder.ok_or_else(|| self.missing())?))
    }

    /// Writes a report where it is missing, or older than the run's results.
    async fn renew_report(self: &Arc<Self>, folder: PathBuf) -> Result<(), Refusal> {
        let of = folder.clone();
        if blocking(move || is_new(&of)).await? {
            return Ok(());
        }
        let house = Arc::clone(self);
        let written = self.heavy.work(move || {
            // Another request may have written it meanwhile.
            if is_new(&folder) { Ok(()) } else { (house.analysis.write_report)(&folder) }
        });
        written.await.map_err(|error| match error {
            HeavyError::Failed(why) => self.refusal(StatusCode::NOT_FOUND, "There is no report yet", &why),
            error => self.refusal(StatusCode::SERVICE_UNAVAILABLE, "Not now", &error.to_string()),
        })
    }

    /// The answer to the question of a what-if view, or the reason why there is no answer.
    async fn what_if(self: &Arc<Self>, pairs: &[(String, String)]) -> Result<WhatIf, (StatusCode, String)> {
        let question = Question::of(pairs).map_err(|why| (StatusCode::BAD_REQUEST, why))?;
        let is = |name, value| pairs.iter().any(|(key, given)| key == name && given == value);
        let detail = if is("detail", "full") { Detail::Full } else { Detail::Preview };
        let with_curve = is("curve", "1");
        let run = match &question.run {
            None => None,
            Some(id) => Some(self.fitted_run(id, question.group.clone()).await?),
        };
        let lane = if detail == Detail::Full { &self.heavy } else { &self.previews };
        let answer = lane.work(move || what_if::answer(&question, run.as_deref(), detail, with_curve));
        answer.await.map_err(refused)
    }

    /// The fitted run of this identity: kept, or fitted now.
    async fn fitted_run(
        self: &Arc<Self>,
        id: &RunId,
        group: Option<String>,
    ) -> Result<Arc<FittedRun>, (StatusCode, String)> {
        let (runs, fitted, of, named) =
            (Arc::clone(&self.runs), Arc::clone(&self.fitted), id.clone(), group.clone());
        let find = move || {
            let folder = of.folder(runs.results())?;
            Some((fitted.kept(&of, named.as_deref(), &folder), folder))
        };
        let missing = || (StatusCode::NOT_FOUND, format!("run: there is no run {id} here"));
        let lost = |_| (StatusCode::INTERNAL_SERVER_ERROR, "the run cannot be read".to_owned());
        let (kept, folder) = spawn_blocking(find).await.map_err(lost)?.ok_or_else(missing)?;
        if let Some(kept) = kept {
            return Ok(kept);
        }
        let (fitted, of) = (Arc::clone(&self.fitted), id.clone());
        let fit = self.heavy.work(move || fitted.fitted(&of, group.as_deref(), &folder));
        fit.await.map_err(refused)
    }

    fn done(&self, id: &RunId, result: Result<(), ActionError>) -> Result<Response, Refusal> {
        match result {
            Ok(()) => Ok(Redirect::to(&format!("/runs/{}/", id.address())).into_response()),
            Err(error) => Err(self.refusal(StatusCode::CONFLICT, "This cannot be done", &error.to_string())),
        }
    }

    fn html(&self, page: &impl Template) -> Result<Response, Refusal> {
        let lost = |_| Refusal::of(StatusCode::INTERNAL_SERVER_ERROR);
        Ok(Html(page.render().map_err(lost)?).into_response())
    }

    fn missing(&self) -> Refusal {
        self.refusal(StatusCode::NOT_FOUND, "There is nothing here", "No run and no file has this address.")
    }

    fn refusal(&self, status: StatusCode, title: &str, text: &str) -> Refusal {
        let page = self.html(&Message { build: &self.build, title, text });
        Refusal::of((status, page))
    }
}

/// The status and the reason of work that has no result.
fn refused(error: HeavyError) -> (StatusCode, String) {
    let status = match error {
        HeavyError::Failed(_) => StatusCode::UNPROCESSABLE_ENTITY,
        HeavyError::Busy => StatusCode::SERVICE_UNAVAILABLE,
        HeavyError::Lost => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, error.to_string())
}

/// Whether a run has a report of all its finished trials.
fn is_new(folder: &std::path::Path) -> bool {
    let Some(report) = changed(&folder.join("report.html")) else { return false };
    let trials = std::fs::read_dir(folder.join("trials")).into_iter().flatten().flatten();
    let answers = trials.filter_map(|trial| changed(&trial.path().join("answer.json")));
    answers.max().is_none_or(|newest| newest <= report)
}

#[cfg(test)]
mod tests;
