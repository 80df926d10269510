//! From what a run left to plain data: answers, findings, comparisons, verdicts.
//!
//! [`Report`] is all that is known of one experiment, and [`findings`] what it says in sentences. Nothing here draws, reads a
//! file or a clock: rows, manifests and settings are handed in, and what comes out is numbers, sentences and tables of text.

pub mod candidates;
pub mod comparison;
pub mod effects;
pub mod expected;
pub mod finding;
pub mod generator;
pub mod link;
pub mod models;
pub mod ratio;
pub mod relative;
pub mod replay;
pub mod report;
pub mod scaling;
pub mod spread;
pub mod table;
pub mod thin;
pub mod trial_view;
pub mod versus;

pub use finding::contrast::Contrast;
pub use finding::judge::findings;
pub use finding::kind::Finding;
pub use finding::reason::{Answers, AssumedLaw, PredictedBy, Reason, Trend};
pub use finding::severity::Severity;
pub use finding::tail::TailMiss;
pub use replay::Replayed;
pub use report::Report;
pub use report::effects::EffectsSeen;
pub use report::expected::ExpectedAt;
pub use report::factor::{Factor, FactorKind};
pub use report::link::{LinkProperty, LinkQuantity, TrialLink};
pub use report::point::{
    Curve, ExpectedWidth, Growth, Modelled, Modelling, Point, ServiceSeen, ServiceSpread,
};
pub use report::published::{Measure, Published, PublishedRow};
pub use report::resources::Resources;
pub use report::scaling::{Knee, Scaling, UslSeen};
pub use report::trial::{Counts, LeftOut, TrialLine, WarmupBy};
pub use report::trial_view::{
    AgainstLaw, Dispersion, Ended, Heat, Interval, Spread, Stages, TrialView, Window, WindowOf,
};
pub use table::Table;
