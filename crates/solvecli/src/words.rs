//! Stations, networks and the length of a simulation from the words of the command line, for other programs.

use anyhow::{Context, anyhow};
use clap::{Args, Command, FromArgMatches};
use kendall_simulation::StopRule;
use kendall_station::{Network, Station};
use kendall_theory::closed_network;
use serde_json::Value;

use crate::run::RunOptions;
use crate::station::{RecordedLaws, StationOptions};
use crate::{model, scenario, several, station_keys};

/// The station of a notation and of options such as `--arrival-rate=20`, each in one word.
///
/// # Errors
/// As `kendall solve` reports them.
pub fn station(notation: &str, words: &[String], given: RecordedLaws) -> anyhow::Result<Station> {
    options::<StationOptions>(words)?.with(given).station(&several::read(notation)?)
}

/// How long to simulate, and the seed, from options such as `--customers=1000000`, which alone means all of these.
///
/// # Errors
/// As `kendall solve` reports them.
pub fn simulation(words: &[String]) -> anyhow::Result<(StopRule, u64)> {
    let options = options::<RunOptions>(words)?;
    Ok((options.stop_after_all(), options.seed()))
}

/// A network with the keys of its file.
///
/// # Errors
/// As `kendall solve FILE.toml` reports them.
pub fn network(mut table: toml::Table) -> anyhow::Result<Network> {
    station_keys::write_out(&mut table)?;
    let network: Network = table.try_into()?;
    network.validate().context("the network")?;
    Ok(network)
}

/// The bounds of a closed network, in the form of `--json`; `None` where it has none, as an open network.
pub fn bounds(network: &Network) -> Option<Value> {
    closed_network(network).and_then(|users| users.bounds().ok()).map(|bounds| scenario::bounds_json(&bounds))
}

/// Every quantity of a named model for inputs that are a JSON object, in the form of `--json`.
///
/// # Errors
/// As `kendall solve MODEL` reports them.
pub fn model(name: &str, inputs: &str) -> anyhow::Result<Value> {
    model::solved(kendall_theory::batch::model(name)?, inputs)
}

fn options<T: Args + FromArgMatches>(words: &[String]) -> anyhow::Result<T> {
    let command = T::augment_args(Command::new("kendall").no_binary_name(true).disable_help_flag(true));
    let matches = command.try_get_matches_from(words);
    matches.and_then(|matches| T::from_arg_matches(&matches)).map_err(|error| anyhow!(sentence(&error)))
}

/// The first paragraph of clap's message; the others are about a command line.
fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    text.split("\n\n").next().unwrap_or(text).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use kendall_station::Law;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn words_make_a_station_and_faults_are_those_of_the_command_line() {
        let found = station("M/M/6", &words("--arrival-rate=20 --service-rate=4.2"), RecordedLaws::default());
        assert_eq!(found.unwrap().offered_utilisation(), Some(20.0 / 4.2 / 6.0));
        let fault =
            |text: &str| station("M/M/6", &words(text), RecordedLaws::default()).unwrap_err().to_string();
        assert!(fault("--arrival-rate=20").contains("give --service-rate or --service-time"));
        assert!(fault("--arrival-rate=-1").contains("--arrival-rate"), "{}", fault("--arrival-rate=-1"));
        assert!(!fault("--arrival-rat=1").contains("Usage"), "{}", fault("--arrival-rat=1"));
    }

    #[test]
    fn laws_take_the_place_of_files() {
        let service = Some(Law::empirical(vec![0.1, 0.3]).unwrap());
        let with = |notation: &str| {
            let given = RecordedLaws { service: service.clone(), ..RecordedLaws::default() };
            station(notation, &words("--arrival-rate=2"), given)
        };
        assert!((with("M/G/1").unwrap().offered_utilisation().unwrap() - 0.4).abs() < 1e-12);
        assert!(with("M/M/1").unwrap_err().to_string().contains("write G for them, not M"));
    }

    #[test]
    fn a_simulation_is_as_long_as_the_words_say() {
        let stop = |text: &str| simulation(&words(text)).unwrap();
        assert_eq!(stop("--customers=5000 --seed=7"), (StopRule::customers(5_000), 7));
        let precise = StopRule::Steady { max_customers: 5_000, relative_half_width: Some(0.02) };
        assert_eq!(stop("--customers=5000 --precision=2%"), (precise, 1));
        assert!(simulation(&words("--customers=0")).is_err());
    }
}
