//! Laws by their names in files and options.

use kendall_station::{Kind as LawKind, Law};

/// A law by its name in files and options, with the given mean and, if its kind takes one, the given squared coefficient
/// of variation.
///
/// # Errors
/// Returns a message to follow the name of the parameter.
pub fn named_law(name: &str, mean_s: f64, scv: Option<f64>) -> Result<Law, String> {
    let kind = law_kind(name).ok_or_else(|| {
        format!(
            "must be exponential, constant, erlang-2 (any number of stages), hyperexponential, uniform, log-normal or \
             pareto, not {name:?}"
        )
    })?;
    kind.law(mean_s, scv.filter(|_| kind.takes_scv())).map_err(|error| error.to_string())
}

/// The kind of law of a name.
pub fn law_kind(name: &str) -> Option<LawKind> {
    Some(match name {
        "exponential" => LawKind::Exponential,
        "constant" => LawKind::Constant,
        "hyperexponential" => LawKind::Hyperexponential,
        "uniform" => LawKind::Uniform,
        "log-normal" => LawKind::LogNormal,
        "pareto" => LawKind::Pareto,
        _ => match name.strip_prefix("erlang-")?.parse().ok()? {
            stages @ 1..=10_000 => LawKind::Erlang(stages),
            _ => return None,
        },
    })
}
