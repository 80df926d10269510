//! Comparison of servers that run already. In each round every server gets the same requests at the same instants, one server
//! after the other, in random order, so that a drift of the machine affects all servers alike.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kendall_experiment::{Load, Probing};
use kendall_load::{Progress, Workload};
use kendall_stats::random::{Purpose, derive, shuffle, stream};

use crate::load_trial::LoadTrial;
use crate::surroundings::LoadedServers;
use crate::trial_error::TrialError;

/// A server to compare.
pub struct Contender<'a> {
    /// The name of the server.
    pub name: &'a str,
    /// The URL of the server, without secrets.
    pub target: &'a str,
    /// The command that repeats one of its loads, without its seed.
    pub again: String,
    /// Makes the requests from a seed.
    pub workload: &'a dyn Fn(u64) -> Result<Box<dyn Workload>, String>,
    /// The processes whose CPU time does not count as that of other programs.
    pub servers: &'a LoadedServers,
}

/// The load that each server gets.
pub struct Contest<'a> {
    /// The servers.
    pub contenders: &'a [Contender<'a>],
    /// The load of one round.
    pub load: &'a Load,
    /// How often each server is loaded.
    pub rounds: u32,
    /// The seed of requests, arrivals and orders.
    pub seed: u64,
    /// The folder in which each load has its own folder.
    pub folder: &'a Path,
}

/// The longest warm-up of a server before the first round.
const WARM_UP_AT_MOST: Duration = Duration::from_secs(2);

impl Contest<'_> {
    /// Runs all loads and returns the folders of each server in the order of the rounds; `None` where `cancel` was set. Calls
    /// `report` with the number of each round, from 1, as the round begins.
    ///
    /// # Errors
    /// Fails where the generator cannot be set up, or a record cannot be written.
    pub fn run(
        &self,
        report: &mut dyn FnMut(u32),
        cancel: &AtomicBool,
    ) -> Result<Option<Vec<Vec<PathBuf>>>, TrialError> {
        let warm_up =
            Load { duration: self.load.duration.map(|time| time.min(WARM_UP_AT_MOST)), ..self.load.clone() };
        for contender in self.contenders {
            self.trial(contender, &warm_up, self.seed, None, cancel)?;
        }
        let mut folders = vec![Vec::new(); self.contenders.len()];
        for round in 0..self.rounds {
            report(round + 1);
            let seed = derive(self.seed, Purpose::Trial, u64::from(round));
            for index in self.order(round) {
                if cancel.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                let contender = &self.contenders[index];
                let folder =
                    self.folder.join(format!("{}-{:0>3}", folder_name(contender.name, index), round + 1));
                self.trial(contender, self.load, seed, Some(&folder), cancel)?;
                folders[index].push(folder);
            }
        }
        Ok((!cancel.load(Ordering::Relaxed)).then_some(folders))
    }

    fn trial(
        &self,
        contender: &Contender<'_>,
        load: &Load,
        seed: u64,
        record: Option<&Path>,
        cancel: &AtomicBool,
    ) -> Result<(), TrialError> {
        let workload = (contender.workload)(seed)
            .map_err(|why| TrialError::Workload { system: "a server that is compared", why })?;
        let trial = LoadTrial {
            agents: None,
            target: contender.target,
            again: &format!("{} --seed {seed}", contender.again),
            workload: &*workload,
            load,
            capacity_per_s: None,
            seed,
            precision: None,
            expected: &[],
            server: None,
            probing: Probing::OFF,
            servers: contender.servers,
            record,
        };
        trial.run(&Progress::default(), cancel).map(drop)
    }

    /// The order of the servers in a round; all orders are equally likely (Fisher and Yates 1938).
    fn order(&self, round: u32) -> Vec<usize> {
        let mut draws = stream(self.seed, Purpose::Order, u64::from(round));
        let mut order: Vec<usize> = (0..self.contenders.len()).collect();
        shuffle(&mut draws, &mut order);
        order
    }
}

/// Returns a name of letters and digits unchanged, and otherwise a letter: A for the first server.
fn folder_name(name: &str, index: usize) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if name.chars().all(is_plain) && !name.starts_with('.') && name.len() <= 40 {
        return name.to_owned();
    }
    char::from_u32('A' as u32 + index as u32)
        .filter(char::is_ascii_uppercase)
        .map_or_else(|| format!("S{index}"), String::from)
}
