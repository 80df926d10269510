//! Figures, findings and pages from the records of an experiment.
//!
//! The laboratory fills a [`Report`]; this crate judges it ([`findings`]: what agrees, what does not and why, and
//! every reason to doubt) and renders it three ways: a [`terminal`] table, one self-contained HTML page ([`page`])
//! and JSON ([`Report::to_json`]).
//!
//! It computes no answers and reads no records: all numbers on its pages come from the [`Report`].

mod chart;
mod comparison;
mod effects;
mod expected;
pub mod figure;
mod finding;
pub mod flame;
pub mod junit;
mod link;
mod load;
mod model;
pub mod openmetrics;
mod page;
mod paper;
pub mod picture;
mod plot;
mod published;
mod ratio;
mod relative;
mod replay;
pub mod resources;
mod scaling;
pub mod script;
mod style;
mod svg;
pub mod terminal;
mod trial_view;
pub mod versus;

pub use kendall_stats::number;

pub use effects::EffectsSeen;
pub use expected::ExpectedAt;
pub use finding::{Answers, AssumedLaw, Contrast, Finding, Reason, Severity, TailMiss, Trend, Way, findings};
pub use link::{LinkProperty, LinkQuantity, TrialLink};
pub use load::{LoadPage, load_figures, load_page};
pub use model::{
    Counts, Curve, Factor, FactorKind, Growth, LeftOut, Modelled, Modelling, Point, Report, ServiceSeen,
    ServiceSpread, TrialLine, WarmupBy,
};
pub use page::page;
pub use paper::paper;
#[cfg(feature = "png")]
pub use paper::{Painter, PngError};
pub use published::{Measure, Published, PublishedRow};
pub use replay::{Expected, Replayed};
pub use resources::Resources;
pub use scaling::{Knee, Scaling, UslSeen};
pub use style::{STYLE, UPLOT_CSS, UPLOT_JS};
pub use trial_view::{
    AgainstLaw, Dispersion, Ended, Heat, Interval, Spread, Stages, TrialView, Window, WindowOf,
};
