//! Checks `[link]` as a whole.

use toml::Spanned;
use toml::de::DeValue;

use super::Reader;
use super::items::value_in;
use crate::experiment::{Experiment, Section};
use crate::fault::Fault;

/// The parameters that must be the same for all trials of a run, because the link is set up once.
const ONCE: [&str; 2] = ["congestion", "back-end"];

impl Reader<'_> {
    /// Checks that each combination's link is possible, that fixed parameters do not vary, and that no two factors have the same
    /// name.
    pub(super) fn check_link(
        &self,
        experiment: &Experiment,
        link: Option<&Spanned<DeValue<'_>>>,
        cases: Option<&Spanned<DeValue<'_>>>,
    ) -> Result<(), Fault> {
        let end = self.text.len()..self.text.len();
        let place = |name| link.and_then(|link| value_in(link, name));
        let section = || link.or(cases).map_or_else(|| end.clone(), Spanned::span);
        let combinations = experiment.combinations();
        for combination in &combinations {
            experiment.link(combination).map_err(|(name, message)| {
                let own = || self.place_in_case(cases, combination, Section::Link, name);
                self.fault(place(name).or_else(own).unwrap_or_else(section), format!("{name}: {message}"))
            })?;
        }
        for name in ONCE {
            let mut values = combinations.iter().map(|combination| combination.link.get(name));
            let first = values.next().flatten();
            if values.any(|value| value != first) {
                let message = format!("{name} cannot vary: the link is set up once for all trials");
                return Err(self.fault(place(name).unwrap_or_else(section), message));
            }
        }
        let factors = experiment.factors();
        for (i, factor) in factors.iter().enumerate() {
            let twin = factors[..i].iter().find(|other| other.name == factor.name);
            if let Some((one, other)) = twin.and_then(|twin| twin.section.zip(factor.section)) {
                let message = format!(
                    "{} varies in [{}] and in [{}]; vary one of them, and the other by cases",
                    factor.name,
                    one.name(),
                    other.name()
                );
                return Err(self.fault(place(factor.name).unwrap_or_else(section), message));
            }
        }
        Ok(())
    }
}
