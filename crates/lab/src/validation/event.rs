//! What happens during a validation.

use std::fmt::{self, Display, Formatter};

use kendall_analysis::{Compared, Predicted, Validated};
use kendall_stats::number::{percent, significant, time};

use crate::peak::LightLoad;

/// An event during a validation.
#[derive(Debug)]
pub enum ValidationEvent<'a> {
    /// The throughput of closed populations is known.
    Light(&'a LightLoad),
    /// A round of low loads begins, the first being 1.
    Round(u32),
    /// A load was disturbed and is made again; its name, and what disturbed it.
    Repeated(&'a str, &'a str),
    /// A prediction is on disk.
    Predicted(&'a Predicted),
    /// The load of the prediction was measured.
    Measured(&'a Validated),
}

/// As a line for the user.
impl Display for ValidationEvent<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Light(light) => {
                let most = light.throughput_per_s.iter().max_by(|a, b| a.1.total_cmp(&b.1));
                let (users, per_s) = most.copied().unwrap_or_default();
                let (alone, per_s) = (time(light.response_s), significant(per_s, 3));
                write!(f, "A request alone takes {alone}; with {users} users the server handles {per_s}/s")
            }
            Self::Round(round) => write!(f, "Round {round} of low loads …"),
            Self::Repeated(name, why) => write!(f, "  … {name} again, because {why}"),
            Self::Predicted(predicted) => write!(
                f,
                "{} of the capacity, {}/s: predicted at {} (BLAKE3 {}…); measuring …",
                percent(predicted.share),
                significant(predicted.prediction.rate_per_s, 4),
                predicted.written_utc,
                &predicted.blake3[..16]
            ),
            Self::Measured(validated) => {
                let error =
                    |compared: &Compared| format!("{} {:+.0} %", compared.quantity, 100.0 * compared.error);
                let errors: Vec<String> = validated.compared.iter().map(error).collect();
                write!(f, "  predicted less measured: {}", errors.join(", "))
            }
        }
    }
}
