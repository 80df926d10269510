//! Why agents cannot make a load.

use kendall_load::RowsMissing;
use kendall_nats::NatsError;
use kendall_stats::number::time;

/// The reason why agents cannot make a load, or have not made all of it.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum FleetError {
    #[error(transparent)]
    Nats(#[from] NatsError),
    #[error("cannot talk to the NATS server: {0}")]
    Talk(String),
    #[error("cannot set up the connection to agents: {0}")]
    Setup(#[from] std::io::Error),
    #[error(
        "{found} of {wanted} agents answer; start more with kendall agent --nats URL --allow HOST:PORT, or lower \
         --agents-count"
    )]
    TooFew { found: usize, wanted: usize },
    #[error("agent {agent} does not answer; the load is not valid without its share")]
    Silent { agent: String },
    #[error("agent {agent} refuses its share: {why}")]
    Refused { agent: String, why: String },
    #[error("agent {agent} failed: {why}; the load is not valid without its share")]
    Failed { agent: String, why: String },
    #[error("messages of agent {agent} were lost; the load is not valid without them")]
    Lost { agent: String },
    #[error("agent {agent} started {} late, so its requests are not of one schedule with the others", time(*late_s))]
    Late { agent: String, late_s: f64 },
    #[error(
        "the clock of agent {agent} is known only to {}, and more than 5 ms would mix up the schedule; use agents that \
         are nearer to the NATS server, or less busy",
        time(*bound_s)
    )]
    Clock { agent: String, bound_s: f64 },
    #[error(
        "the load is too long to describe in a message; a trace must have fewer than some 40,000 instants"
    )]
    TooLong,
    #[error(transparent)]
    Rows(#[from] RowsMissing),
}

/// A text of another machine, as it may be shown.
pub(crate) fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(300).collect()
}
