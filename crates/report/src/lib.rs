//! Figures, pages and tables of the analysis of a run.
//!
//! The analysis (`kendall_analysis::Report`) is drawn three ways: a [`terminal`] table, one self-contained HTML page ([`page`]) and
//! pictures for a paper ([`paper`]). This crate computes no answers, judges nothing: every number and every sentence
//! on its pages comes from the analysis. Only [`export`] reads records, to write the requests in the formats of other tools.
//! It writes pages, pictures and exports, and nothing that any program reads back.

mod chart;
pub mod export;
pub mod figure;
pub mod fitted;
pub mod flame;
pub mod forecasted;
mod load;
mod page;
mod page_file;
mod paper;
pub mod picture;
mod plot;
pub mod resources;
pub mod script;
mod sentences;
mod style;
mod svg;
pub mod terminal;
mod traffic;
pub mod trial_view;
mod validation;
pub mod versus;

pub use load::{load_figures, load_page, load_text};
pub use page::{page, page_figures};
pub use page_file::{
    PageError, analyse_into_page, write_flows_page, write_load_page, write_page, write_validation_page,
};
pub use paper::paper;
#[cfg(feature = "png")]
pub use paper::{PaintError, Painter};
pub use sentences::Sentences;
pub use style::{STYLE, UPLOT_CSS, UPLOT_JS};
pub use traffic::{flows_figures, flows_page, flows_text};
pub use validation::{validation_figures, validation_page, validation_text};
