//! Computes plain data from the records of a run: answers, findings, comparisons, verdicts.
//!
//! [`analyse`](fn@analyse) reads the folder of a run and gives a [`Report`], which is all that is known of one experiment;
//! [`findings`] is what it says in sentences, and [`sides`](fn@sides) are the runs that are compared. [`TrialResult`] is the one
//! `answer.json` with its one reader, and [`generator`] the one judge of the generator.
//!
//! Records are read here, and nothing else: no clock, no process, no network, and no file is written. Nothing is drawn: what comes
//! out is numbers, sentences and tables of text.

mod analyse;
pub mod attempts;
mod axis;
mod bottleneck;
pub mod candidates;
pub mod comparison;
mod disturbance;
pub mod effects;
pub mod expected;
pub mod factorial;
pub mod finding;
pub mod generator;
pub mod link;
mod low_loads;
pub mod machine_limits;
mod machine_use;
pub mod models;
pub mod precision;
pub mod ratio;
pub mod relative;
pub mod replay;
pub mod report;
mod request_split;
mod resource_record;
mod rounds;
pub mod scaling;
mod sides;
pub mod spread;
pub mod table;
pub mod thin;
pub mod traffic;
mod trial_answer;
pub mod trial_result;
pub mod trial_view;
pub mod unstamped;
pub mod validation;
pub mod versus;
pub mod warmup;

pub use analyse::{Points, ReplayError, ReplayedPoint, analyse, observe, replays};
pub use bottleneck::{AnswersSeen, Bottleneck, GeneratorLimit, LoadSeen, NO_DELAY, bottleneck, paused};
pub use disturbance::{Disturbance, ForeignProgram, Stalls, Surroundings, Usual};
pub use finding::contrast::Contrast;
pub use finding::judge::findings;
pub use finding::kind::Finding;
pub use finding::loss::{Losses, Overload, Overloaded};
pub use finding::reason::{Answers, AssumedLaw, Excess, PredictedBy, Reason, Trend};
pub use finding::severity::Severity;
pub use finding::tail::TailMiss;
pub use low_loads::{
    COMPUTATION, LEAST_FULL, LowLoads, MeasuredLoad, falling_throughput, known_station, low_loads,
    recorded_loads,
};
pub use replay::Replayed;
pub use report::Report;
pub use report::effects::EffectsSeen;
pub use report::expected::ExpectedAt;
pub use report::factor::{Factor, FactorKind};
pub use report::limits::{LimitUnit, LimitUse, LimitsUsed};
pub use report::link::{LinkProperty, LinkQuantity, TrialLink};
pub use report::point::{
    Curve, ExpectedWidth, Growth, Modelled, Modelling, Point, ServiceSeen, ServiceSpread,
};
pub use report::published::{Published, PublishedRow};
pub use report::resources::Resources;
pub use report::scaling::{Knee, Scaling, UslSeen};
pub use report::trial::{Counts, LeftOut, TrialLine, WarmupBy};
pub use report::trial_view::{
    AgainstLaw, Dispersion, EndedRequest, Heat, Interval, Spread, Stages, TrialView, Window, WindowOf,
};
pub use request_split::{RequestSplit, SplitPart, SplitPlace};
pub use resource_record::{ResourceRecord, STACKS};
pub use rounds::{Rounds, rounds};
pub use sides::{CompareError, Sides, levels, sides};
pub use table::Table;
pub use trial_answer::{TrialAnswer, TrialSetting};
pub use trial_result::{LinkRecord, Measured, PrecisionReached, ServerUsage, TrialResult};
pub use validation::{
    AtSpeed, Compared, LowLoad, MachineDrift, Predicted, VALIDATION, Validated, ValidationReport,
    read_validation,
};
