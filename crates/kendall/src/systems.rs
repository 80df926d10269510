//! The table of systems: the one place that names them.

use kendall_system::System;

/// Every system that kendall ships.
#[rustfmt::skip] // A line each.
pub(crate) static SYSTEMS: &[System] = &[
    kendall_reverse::ROW,
    kendall_recover::ROW,
    kendall_textsearch::ROW,
    kendall_hold::ROW,
    kendall_http::ROW,
];

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{env, fs};

    use super::*;
    use kendall_system::{Parameter, Settings};

    /// The chapter of the systems, from their rows.
    fn chapter() -> String {
        let mut page = String::from(
            "# Systems\n\n`kendall serve NAME` takes the settings of a server as options (`--workers 4`), an experiment file as \
             keys of `[system]`; those of a workload stand in `[workload]`, or in the URL of `kendall load` as \
             `?NAME=VALUE`. What else an experiment file holds is in [experiments.md](experiments.md).\n",
        );
        for system in SYSTEMS {
            page += &format!(
                "\n## {}\n\n`{}` {}. Its port is {} unless another is named.\n",
                system.name, system.name, system.about, system.default_port
            );
            for (title, parameters) in [("server", system.server), ("workload", system.workload)] {
                if !parameters.is_empty() {
                    page += &format!("\n| {title} | meaning | default |\n| --- | --- | --- |\n");
                    page.extend(parameters.iter().map(line));
                }
            }
        }
        page
    }

    fn line(parameter: &Parameter) -> String {
        let default = parameter.default.map_or_else(String::new, |default| format!("`{default}`"));
        format!("| `{}` | {} | {default} |\n", parameter.name, parameter.help.replace('|', "\\|"))
    }

    /// The README with a line for each system where the first of them stands.
    fn readme(text: &str) -> String {
        let is_of_system = |line: &str| line.starts_with("| `kendall serve ");
        let lines =
            || SYSTEMS.iter().map(|row| format!("| `kendall serve {}` | {} |\n", row.name, row.about));
        let mut fresh = String::new();
        for (number, line) in text.lines().enumerate() {
            match is_of_system(line) {
                true if !text.lines().take(number).any(is_of_system) => fresh.extend(lines()),
                true => {}
                false => fresh += &format!("{line}\n"),
            }
        }
        fresh
    }

    /// `KENDALL_DOCS=write cargo test --package kendall --bin kendall systems` writes them anew.
    #[test]
    fn the_documentation_says_what_the_rows_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
        for (name, fresh) in [("docs/systems.md", chapter()), ("README.md", readme(&read("README.md")))] {
            if env::var_os("KENDALL_DOCS").is_some_and(|wish| wish == "write") {
                fs::write(root.join(name), fresh).unwrap();
            } else {
                assert!(read(name) == fresh, "write {name} anew with KENDALL_DOCS=write");
            }
        }
    }

    #[test]
    fn every_parameter_of_the_load_stands_in_the_documentation() {
        let page = include_str!("../../../docs/experiments.md");
        for parameter in kendall_lab::LOAD {
            assert!(page.contains(&format!("| `{}` |", parameter.name)), "{} is missing", parameter.name);
        }
    }

    #[test]
    fn every_default_is_a_valid_value() {
        for system in SYSTEMS {
            let server = Settings::defaults(system.server);
            (system.station)(&server);
            let workload = Settings::defaults(system.workload);
            assert!((system.load)(([127, 0, 0, 1], 1).into(), &workload, 1).is_ok());
        }
    }
}
