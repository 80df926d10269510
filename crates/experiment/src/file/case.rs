//! `[[case]]`: named sets of values.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::Reader;
use super::items::{in_order, value_in};
use crate::experiment::{CASE, Case, Combination, Section, Variable};
use crate::fault::Fault;
use kendall_system::System;
use kendall_system::Value;

impl Reader<'_> {
    pub(super) fn cases(
        &self,
        item: &Spanned<DeValue<'_>>,
        system: &'static System,
        variables: &[Variable],
    ) -> Result<Vec<Case>, Fault> {
        let Some(list) = item.get_ref().as_array() else {
            return Err(self.fault(item.span(), "a case is written [[case]], with double brackets"));
        };
        let mut cases: Vec<Case> = Vec::new();
        for item in list {
            let case = self.case(item, system, variables)?;
            if cases.iter().any(|known| known.name == case.name) {
                let place = value_in(item, "name").unwrap_or_else(|| item.span());
                return Err(self.fault(place, format!("there are two cases {:?}", case.name)));
            }
            cases.push(case);
        }
        Ok(cases)
    }

    fn case(
        &self,
        item: &Spanned<DeValue<'_>>,
        system: &'static System,
        variables: &[Variable],
    ) -> Result<Case, Fault> {
        let (mut name, mut values) = (None, Vec::new());
        for (key, place, value) in in_order(self.table(CASE, item)?) {
            let section = Section::ALL.into_iter().find(|section| section.name() == key);
            match (key, section) {
                ("name", _) => name = Some(self.case_name(value)?),
                (_, Some(section)) => values.extend(self.case_values(section, system, value, variables)?),
                _ => {
                    let known = std::iter::once("name").chain(Section::ALL.map(Section::name));
                    return Err(self.unknown(key, &place, "in [[case]]", known));
                }
            }
        }
        let missing = || self.fault(item.span(), "a case needs a name, such as name = \"many easy\"");
        Ok(Case { name: name.ok_or_else(missing)?, values })
    }

    fn case_name(&self, item: &Spanned<DeValue<'_>>) -> Result<String, Fault> {
        let name = self.text_of("name", item)?;
        if name.trim().is_empty() || name.contains(char::is_control) {
            return Err(self.fault(item.span(), "name must be a text on one line that is not empty"));
        }
        Ok(name)
    }

    /// The values that a case sets in one section.
    fn case_values(
        &self,
        section: Section,
        system: &'static System,
        item: &Spanned<DeValue<'_>>,
        variables: &[Variable],
    ) -> Result<Vec<(Section, &'static kendall_system::Parameter, Value)>, Fault> {
        let name = format!("{CASE}.{}", section.name());
        let mut values = Vec::new();
        for (key, place, value) in in_order(self.table(&name, item)?) {
            let parameter = self.parameter(section.parameters(system), key, &place, &name)?;
            let same = |variable: &&Variable| variable.section == section && variable.parameter.name == key;
            if variables.iter().find(same).is_some_and(|variable| variable.values.len() > 1) {
                let message = format!(
                    "{key} has several values in [{}]; a case can set only parameters with one value",
                    section.name()
                );
                return Err(self.fault(place, message));
            }
            if value.get_ref().as_array().is_some() {
                let message = format!("a case has one {key}; write a case for each");
                return Err(self.fault(value.span(), message));
            }
            values.push((section, parameter, self.value(key, &parameter.kind, value)?));
        }
        Ok(values)
    }

    /// The value that the case of a combination sets for a parameter of a section, if it does.
    pub(super) fn place_in_case(
        &self,
        cases: Option<&Spanned<DeValue<'_>>>,
        combination: &Combination,
        section: Section,
        name: &str,
    ) -> Option<Range<usize>> {
        let list = cases?.get_ref().as_array()?;
        let level = combination.levels.iter().find(|(factor, _)| *factor == CASE);
        let own = list.iter().find(|item| {
            let table = item.get_ref().as_table();
            let its_name = table.and_then(|table| table.get("name")?.get_ref().as_str());
            // Without a level there is one case only.
            level.is_none_or(|(_, level)| its_name == Some(&level.to_string()))
        })?;
        let table = own.get_ref().as_table()?.get(section.name());
        Some(table.and_then(|table| value_in(table, name)).unwrap_or_else(|| own.span()))
    }
}
