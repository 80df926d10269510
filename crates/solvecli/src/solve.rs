//! `kendall solve`: answers for a station, a network, a named model, or a table of rows.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{bail, ensure};

use crate::ask::{AnswerMethod, Solve};
use crate::station::StationOptions;
use crate::{alone, batch, model, scenario, several, tandem};

/// Answers a question; the exit status is [`UNSTABLE`](crate::UNSTABLE) where there is no steady state.
///
/// # Errors
/// Says what is missing or impossible about the question.
pub fn solve(options: &Solve) -> anyhow::Result<ExitCode> {
    if let Some(path) = &options.batch {
        options.refuse_station_options("--batch")?;
        return batch::answer(path);
    }
    let Some(question) = &options.question else {
        return model::list(options.json);
    };
    if let Ok(model) = kendall_theory::batch::model(question) {
        options.refuse_station_options(question)?;
        return model::solve(model, &options.inputs, options.json);
    }
    if Path::new(question).extension().is_some_and(|extension| extension == "toml") {
        ensure!(
            self_contained(options),
            "{question} describes its stations itself: the options of a station apply only to Kendall's notation"
        );
        return scenario::solve(Path::new(question), options);
    }
    if let Some(parts) = tandem::split(question) {
        refuse_delay(options)?;
        ensure!(options.inputs.is_empty(), "write stations in series as one quoted argument");
        return tandem::solve(question, &parts, options);
    }
    if !question.contains('/') {
        bail!(
            "{question:?} is neither a station such as M/M/6, nor a file of a network (.toml), nor a model; kendall solve \
             --models lists the models"
        );
    }
    if let Some(input) = options.inputs.iter().find(|input| input.contains('=')) {
        bail!(
            "{input:?} is an input of a model, but {question} is a station: use options, such as --arrival-rate"
        );
    }
    if options.station.times_are_relative() {
        kendall_stdio::note(
            "No service time is given, so it is 1 s: read the times as multiples of the mean service time",
        );
    }
    let sweep = options.station.quantities.sweep()?;
    if sweep.is_some() || !options.inputs.is_empty() {
        refuse_delay(options)?;
        let words: Vec<&str> =
            std::iter::once(question.as_str()).chain(options.inputs.iter().map(String::as_str)).collect();
        return several::solve(&words, sweep.as_ref(), options);
    }
    let notation = several::read(question)?;
    let station = options.station.station(&notation)?;
    if options.station.needs_no_law(&notation) && options.asks(AnswerMethod::Simulation) {
        kendall_stdio::note(
            "No distribution of service times is given. Under processor sharing the means do not depend on it (insensitivity); the \
             simulation uses log-normal service times with a coefficient of variation of 1, and its quantiles hold only for these",
        );
    }
    alone::solve(&station, options)
}

/// # Errors
/// Fails where a delay is given.
fn refuse_delay(options: &Solve) -> anyhow::Result<()> {
    ensure!(options.delay.is_none(), "--delay needs one station without a range");
    Ok(())
}

/// Whether the command line has only a file, without options of a station or a model.
fn self_contained(options: &Solve) -> bool {
    let none =
        options.station == StationOptions::default() && options.inputs.is_empty() && options.delay.is_none();
    none && !options.approximations
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn refused(words: &str) -> String {
        let matches =
            Solve::augment_args(Command::new("solve")).try_get_matches_from(words.split(' ')).unwrap();
        solve(&Solve::from_arg_matches(&matches).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn a_delay_needs_one_station() {
        let one = "--delay needs one station without a range";
        assert_eq!(refused("solve M/M/1 M/M/2 --rho 0.5 --delay 1"), one);
        assert_eq!(refused("solve M/M/1 --rho 0.1..0.5 --delay 20ms"), one);
        assert!(
            refused("solve closed_mva D=0.05 Z=1 N=20 --delay 1").contains("not as options of a station")
        );
    }
}
