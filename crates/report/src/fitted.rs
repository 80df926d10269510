//! A fitted station in sentences.

use kendall_evidence::fit::{Candidate, Fit, Origin, Parameter, ServiceTime, Source};
use kendall_stats::number;

/// The most points that are listed with the reason why they were left out.
const MOST_SHOWN: usize = 5;

/// The line that follows a list that was cut short.
fn more(total: usize) -> Option<String> {
    (total > MOST_SHOWN).then(|| format!("… and {} more; --json lists all.", total - MOST_SHOWN))
}

/// A fit as lines.
pub fn lines(fit: &Fit) -> Vec<String> {
    let [first, .., last] = fit.points.as_slice() else { return Vec::new() };
    let reduced = fit.reduced_to.map_or_else(String::new, |few| format!(", reduced to {few} for the fit"));
    let mut lines = vec![format!("{} points, {} to {}{reduced}", fit.points.len(), first.load, last.load)];
    lines.extend(fit.left_out.iter().take(MOST_SHOWN).map(|why| format!("Left out: {why}.")));
    lines.extend(more(fit.left_out.len()).map(|more| format!("Left out: {more}")));
    if !fit.service.is_empty() {
        lines.push("\nService time, by what is at hand, best first".into());
        lines.extend(fit.service.iter().map(source));
    }
    let judged = fit.split.as_ref().map_or_else(
        || "there are too few points for cross-validation".into(),
        |split| {
            format!(
                "fitted on {} points up to {}, asked for the {} from {} to {}",
                split.fitted, split.up_to, split.predicted, split.from, split.to
            )
        },
    );
    lines.push(format!("\nModels, {judged}"));
    lines.push(format!(
        "  {:<34} {:>14} {:>8} {:>14} {:>8}",
        "model", "error there", "worst", "error on all", "AICc"
    ));
    lines.extend(fit.candidates.iter().map(ranked));
    lines.push(String::new());
    lines.extend(best(fit.best()));
    lines
}

fn source(service: &ServiceTime) -> String {
    let name = match service.source {
        Source::Stamps => "timestamps of the server",
        Source::Utilisation => "slope of the CPU use",
        Source::LowLoad => "response at the lowest load",
        Source::Curve => "curve of the best model",
    };
    let used = if service.used { "used" } else { "for comparison" };
    let doubt = service.doubt.as_ref().map_or(String::new(), |doubt| format!("; {doubt}"));
    let time = number::time_with_interval(service.mean_s, service.interval_s);
    format!("  {name:<30} {time}, {used}{doubt}")
}

fn ranked(candidate: &Candidate) -> String {
    let share = |error: f64| if error.is_finite() { number::percent(error) } else { "unstable".into() };
    let [error, worst] = match &candidate.held_out {
        Some(held_out) => [share(held_out.error), share(held_out.worst)],
        None => [number::NONE.into(), number::NONE.into()],
    };
    let aicc = candidate.aicc.map_or_else(|| number::NONE.into(), |aicc| format!("{aicc:.1}"));
    let on_all = share(candidate.error);
    format!("  {:<34} {error:>14} {worst:>8} {on_all:>14} {aicc:>8}", candidate.name)
}

/// The winner, with its formula and parameters.
pub fn best(candidate: &Candidate) -> Vec<String> {
    let mut lines = vec![format!("Best: {}", candidate.name), format!("  {}", candidate.formula)];
    lines.extend(candidate.parameters.iter().map(parameter));
    lines.extend(candidate.notes.iter().map(|note| format!("  Note: {note}.")));
    lines
}

fn parameter(parameter: &Parameter) -> String {
    let quantity = parameter.quantity;
    let show = |value: f64| match value {
        value if quantity.is_time() => number::time(value),
        value if quantity.is_count() => format!("{value:.0}"),
        value => number::significant(value, 3),
    };
    let value = match parameter.interval {
        Some((low, high)) if quantity.is_time() && high.is_finite() => {
            number::time_with_interval(parameter.value, Some((low, high)))
        }
        Some((low, high)) if high.is_finite() => {
            format!("{} [{}, {}]", show(parameter.value), show(low), show(high))
        }
        Some((low, _)) => format!("{} [from {}]", show(parameter.value), show(low)),
        None => show(parameter.value),
    };
    let given = if parameter.origin == Origin::Given { ", given" } else { "" };
    format!("  {:<2} {:<30} {value}{given}", quantity.symbol(), quantity.name())
}
