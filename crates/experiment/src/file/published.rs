//! `[[published]]`: figures that others published, for levels that this experiment has.

use toml::Spanned;
use toml::de::DeValue;

use super::Reader;
use super::items::{in_order, value_in};
use crate::experiment::{CASE, Experiment, Level, Published, PublishedRow};
use crate::fault::Fault;
use crate::measure::Measure;
use kendall_system::{Kind, Value, nearest};

/// The keys of a table of published figures.
const KEYS: [&str; 6] = ["source", "measure", "class", "unit", "baseline", "rows"];
/// The key of the figure in a row.
const VALUE: &str = "value";

impl Reader<'_> {
    pub(super) fn published(
        &self,
        item: &Spanned<DeValue<'_>>,
        experiment: &Experiment,
    ) -> Result<Vec<Published>, Fault> {
        let Some(list) = item.get_ref().as_array() else {
            let message = "published figures are written [[published]], with double brackets";
            return Err(self.fault(item.span(), message));
        };
        list.iter().map(|item| self.published_table(item, experiment)).collect()
    }

    fn published_table(
        &self,
        item: &Spanned<DeValue<'_>>,
        experiment: &Experiment,
    ) -> Result<Published, Fault> {
        let items = in_order(self.table("published", item)?);
        for (key, place, _) in &items {
            if !KEYS.contains(key) {
                return Err(self.unknown(key, place, "in [[published]]", KEYS));
            }
        }
        let find = |name: &str| items.iter().find(|item| item.0 == name).map(|item| item.2);
        let needed = |name: &str| {
            find(name).ok_or_else(|| self.fault(item.span(), format!("published figures need a {name}")))
        };
        let measure = self.measure(needed("measure")?, find("class"))?;
        let unit = self.unit(&measure, needed("unit")?)?;
        let baseline = match find("baseline") {
            Some(levels) => self.levels("baseline", levels, experiment)?,
            None => Vec::new(),
        };
        let rows = needed("rows")?;
        let Some(list) = rows.get_ref().as_array() else {
            let message = "rows is a list of tables, such as [ { rate = 20, value = 576 } ]";
            return Err(self.fault(rows.span(), message));
        };
        Ok(Published {
            source: self.text_of("source", needed("source")?)?,
            measure,
            unit,
            baseline,
            rows: list.iter().map(|row| self.row(row, experiment)).collect::<Result<_, _>>()?,
        })
    }

    fn measure(
        &self,
        item: &Spanned<DeValue<'_>>,
        class: Option<&Spanned<DeValue<'_>>>,
    ) -> Result<Measure, Fault> {
        let name = self.text_of("measure", item)?;
        if !Measure::NAMES.contains(&name.as_str()) {
            let hint = match nearest(&name, Measure::NAMES) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("known are {}", Measure::NAMES.join(", ")),
            };
            return Err(self.fault(item.span(), format!("unknown measure {name:?}; {hint}")));
        }
        let class_name = class.map(|class| self.text_of("class", class)).transpose()?;
        let place = class.unwrap_or(item).span();
        Measure::named(&name, class_name)
            .ok_or_else(|| self.fault(place, format!("there is no {name} of a class; leave the class out")))
    }

    fn unit(&self, measure: &Measure, item: &Spanned<DeValue<'_>>) -> Result<String, Fault> {
        let unit = self.text_of("unit", item)?;
        let known: Vec<&str> = measure.units().iter().map(|(unit, _)| *unit).collect();
        if known.contains(&unit.as_str()) {
            return Ok(unit);
        }
        let known: Vec<String> = known.iter().map(|unit| format!("{unit:?}")).collect();
        let message =
            format!("{} cannot be in {unit:?}; its units are {}", measure.words(), known.join(", "));
        Err(self.fault(item.span(), message))
    }

    /// One published figure. Its levels must be those of exactly one combination.
    fn row(&self, item: &Spanned<DeValue<'_>>, experiment: &Experiment) -> Result<PublishedRow, Fault> {
        let levels = self.levels("a row", item, experiment)?;
        let value = self.table("a row", item)?.get(VALUE);
        let Some(value) = value else {
            return Err(self.fault(item.span(), "a row needs a value, such as value = 576"));
        };
        let value = match self.value(VALUE, &Kind::Number { least: 0.0, most: 1e300 }, value)? {
            Value::Number(number) if number > 0.0 => number,
            _ => return Err(self.fault(value.span(), "value must be more than 0")),
        };
        for factor in experiment.factors() {
            if !levels.iter().any(|(name, _)| *name == factor.name) {
                let message = format!("the row does not say for which {} it holds", factor.name);
                return Err(self.fault(item.span(), message));
            }
        }
        Ok(PublishedRow { levels, value })
    }

    /// Levels of this experiment, by factor.
    pub(super) fn levels(
        &self,
        what: &str,
        item: &Spanned<DeValue<'_>>,
        experiment: &Experiment,
    ) -> Result<Vec<Level>, Fault> {
        let mut levels = Vec::new();
        for (key, place, value) in in_order(self.table(what, item)?) {
            if key == VALUE && what != "baseline" {
                continue;
            }
            let variable = experiment.variables.iter().find(|variable| variable.parameter.name == key);
            let (name, known, level) = match variable {
                Some(variable) => {
                    let level = self.value(key, &variable.parameter.kind, value)?;
                    // For a long value, the level is its letter.
                    let level = variable.level_of(&level).unwrap_or(level);
                    (variable.parameter.name, variable.levels(), level)
                }
                None if key == CASE && !experiment.cases.is_empty() => {
                    let names = experiment.cases.iter().map(|case| Value::Word(case.name.clone()));
                    (CASE, names.collect(), Value::Word(self.text_of(CASE, value)?))
                }
                None => {
                    let factors = experiment.factors();
                    let known = factors.iter().map(|factor| factor.name);
                    return Err(self.unknown(key, &place, &format!("in {what}"), known));
                }
            };
            if !known.contains(&level) {
                let texts: Vec<String> = known.iter().map(ToString::to_string).collect();
                let hint = match nearest(&level.to_string(), texts.iter().map(String::as_str)) {
                    Some(near) if matches!(level, Value::Word(_)) => format!("did you mean {near:?}?"),
                    _ => format!("it has {}", texts.join(", ")),
                };
                let place = value_in(item, key).unwrap_or(place);
                return Err(self.fault(place, format!("this experiment has no {name} {level}; {hint}")));
            }
            levels.push((name, level));
        }
        Ok(levels)
    }
}
