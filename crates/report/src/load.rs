//! The page of a single load: who limited it, the three times, what passed along time.
//!
//! The figures are drawn here; the words and the tables of numbers come from whoever printed the same on the terminal.

mod figures;

use askama::Template;
use kendall_analysis::Table;
use kendall_evidence::streamed::Streamed;

use crate::figure::{Figure, Named};
use crate::resources::{OneServer, Watched};

/// What the page of a load shows.
#[derive(Clone, Debug)]
pub struct LoadPage<'a> {
    /// What was loaded.
    pub target: String,
    /// When it began, in UTC.
    pub started_utc: String,
    /// Who limited it, as a sentence.
    pub headline: String,
    /// What else is to be said first: how many requests, how they ended, whether the rate is more than the system bears.
    pub sentences: Vec<String>,
    /// Every reason to doubt it, as sentences.
    pub doubts: Vec<String>,
    /// The three times, as a table.
    pub times: Table,
    /// Rates and shares: what, and its value.
    pub rates: Vec<(String, String)>,
    /// What the generator was asked, and what was found.
    pub checks: Table,
    /// What clients saw; `None` where nothing was answered.
    pub seen: Option<&'a Streamed>,
    /// What was seen of the server, if it was watched.
    pub watched: Option<Watched<'a>>,
    /// The command that runs it again.
    pub command: String,
}

/// The page of a load, as HTML: self-contained, and it reads without script.
pub fn load_page(page: &LoadPage<'_>) -> String {
    let figures = page.seen.map(|seen| (figures::along_time(seen), figures::quantiles(seen)));
    let (along_time, quantiles) = figures.unzip();
    let style = concat!(include_str!("../templates/page.css"), include_str!("../templates/figure.css"));
    let server = page.watched.as_ref().map(OneServer::of);
    let view = View { page, style, along_time, quantiles, server };
    view.render().expect("rendering to a string fails only where a value's Display does")
}

/// The figures of that page that have something to show.
pub fn load_figures(page: &LoadPage<'_>) -> Vec<Named> {
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
