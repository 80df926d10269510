//! A single load: its page, and the same words on the terminal. Who limited it, the three times, what passed along time.

mod figures;
mod text;
mod words;

use askama::Template;
use kendall_analysis::{ResourceRecord, Table, TrialResult};
use kendall_evidence::streamed::Streamed;

use crate::figure::{Figure, Named};
use crate::resources::{OneServer, ServerResources};
use crate::terminal::percent;
use words::{
    checks, correlated, expectations, rates, recorded, score_in_words, sentences, times, without_answer,
    without_intervals,
};

pub use text::load_text;

/// What the page of a load shows.
#[derive(Clone, Debug)]
struct LoadPage<'a> {
    /// What was loaded.
    target: String,
    /// The start of the load, in UTC.
    started_utc: String,
    /// The verdict on what limited the load, as a sentence.
    headline: String,
    /// The other lines at the top: how many requests, how they ended, whether the rate exceeds the system's capacity.
    sentences: Vec<String>,
    /// Every reason to doubt it, as sentences.
    doubts: Vec<String>,
    /// The three times, as a table.
    times: Table,
    /// Rates and shares: what, and its value.
    rates: Vec<(String, String)>,
    /// What the generator was asked, and what was found.
    checks: Table,
    /// What clients saw; `None` where nothing was answered.
    seen: Option<&'a Streamed>,
    /// What was seen of the server, if it was watched.
    watched: Option<ServerResources<'a>>,
    /// The command that runs it again.
    command: String,
}

impl<'a> LoadPage<'a> {
    fn of(found: &'a TrialResult) -> Self {
        let mut rates = found.seen.iter().flat_map(|seen| rates(found, seen)).collect::<Vec<_>>();
        if let Some(score) = &found.score {
            rates.push(("right answers".into(), percent(score.right)));
            if score.is_weighted() {
                rates.push(("score".into(), score_in_words(score)));
            }
        }
        let mut sentences = sentences(found);
        sentences.extend(expectations(found));
        let mut doubts: Vec<String> = found.verdict.doubts.iter().map(|doubt| format!("{doubt}.")).collect();
        doubts.extend(without_answer(found));
        doubts.extend(found.seen.iter().flat_map(correlated));
        doubts.extend(found.seen.iter().flat_map(without_intervals));
        Self {
            target: recorded(&found.target).into(),
            started_utc: recorded(&found.started_utc).into(),
            headline: found.verdict.headline_of(&found.run),
            sentences,
            doubts,
            times: found.seen.as_ref().map(times).unwrap_or_default(),
            rates,
            checks: checks(found),
            seen: found.seen.as_ref(),
            watched: found.resources.as_ref().map(watched),
            command: recorded(&found.again).into(),
        }
    }
}

/// What was seen of a server that was watched.
fn watched(seen: &ResourceRecord) -> ServerResources<'_> {
    let ResourceRecord { summary, limit, split, profile, .. } = seen;
    ServerResources { summary, limit: limit.as_ref(), split: split.as_ref(), profile: profile.as_ref() }
}

/// The page of a load, as HTML: self-contained, and it reads without script.
pub fn load_page(found: &TrialResult) -> String {
    let page = &LoadPage::of(found);
    let figures = page.seen.map(|seen| (figures::along_time(seen), figures::quantiles(seen)));
    let (along_time, quantiles) = figures.unzip();
    let style = concat!(include_str!("../templates/page.css"), include_str!("../templates/figure.css"));
    let server = page.watched.as_ref().map(OneServer::of);
    let view = View { page, style, along_time, quantiles, server };
    view.render().expect("rendering to a string fails only where a value's Display does")
}

/// The figures of that page that have data.
pub fn load_figures(found: &TrialResult) -> Vec<Named> {
    let page = LoadPage::of(found);
    let cores = page.watched.as_ref().and_then(|watched| OneServer::of(watched).over_time);
    let figures = [
        ("along-time", page.seen.map(figures::along_time)),
        ("quantiles", page.seen.map(figures::quantiles)),
        ("cores", cores),
    ];
    let named = |(name, figure): (_, Option<Figure>)| Some(Named { name, figure: figure?, left: 1 });
    figures.into_iter().filter_map(named).collect()
}

#[derive(Template)]
#[template(path = "load.html")]
struct View<'a> {
    page: &'a LoadPage<'a>,
    style: &'static str,
    along_time: Option<Figure>,
    quantiles: Option<Figure>,
    server: Option<OneServer>,
}

#[cfg(test)]
mod tests;
