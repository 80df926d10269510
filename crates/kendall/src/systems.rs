//! The table of systems: the one place that names them.

use kendall_system::System;

/// Every system that kendall ships.
#[rustfmt::skip] // A line each.
pub(crate) static SYSTEMS: &[System] = &[
    kendall_reverse::ROW,
    kendall_recover::ROW,
    kendall_textsearch::ROW,
    kendall_hold::ROW,
    kendall_chat::ROW,
    kendall_transport::ROW,
    kendall_http::ROW,
];

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_book::{read, refresh};
    use kendall_system::{Caller, Settings, System, chapter, readme_rows, system_rows};

    /// A page with fresh rows where the first row of the same kind is; the other old ones are dropped.
    fn with_rows(text: &str, is_row: impl Fn(&str) -> bool, fresh: &str) -> String {
        let (mut page, mut is_written) = (String::new(), false);
        for line in text.lines() {
            match is_row(line) {
                true if is_written => {}
                true => {
                    page += fresh;
                    is_written = true;
                }
                false => page += &format!("{line}\n"),
            }
        }
        page
    }

    fn readme(text: &str) -> String {
        let names = |line: &str, system: &System| line.starts_with(&format!("| `kendall {}` |", system.name));
        let is_row = |line: &str| {
            // A command of the same name as a system that brings no subcommands is not the system's.
            let mut offering = SYSTEMS.iter().filter(|system| !system.subcommands.all.is_empty());
            line.starts_with("| `kendall serve ") || offering.any(|system| names(line, system))
        };
        with_rows(text, is_row, &readme_rows(SYSTEMS))
    }

    fn experiments(text: &str) -> String {
        let is_row = |line: &str| line.starts_with("| [`") && line.contains("](systems.md#");
        let rows: String = system_rows(SYSTEMS).lines().skip(2).map(|line| format!("{line}\n")).collect();
        with_rows(text, is_row, &rows)
    }

    /// `KENDALL_DOCS=write cargo test --package kendall --bin kendall systems` writes them anew.
    #[test]
    fn the_documentation_says_what_the_rows_say() {
        refresh("docs/systems.md", &chapter(SYSTEMS)).unwrap();
        refresh("README.md", &readme(&read("README.md"))).unwrap();
        refresh("docs/experiments.md", &experiments(&read("docs/experiments.md"))).unwrap();
    }

    #[test]
    fn subcommands_take_valid_defaults_and_every_argument() {
        for subcommand in SYSTEMS.iter().flat_map(|system| system.subcommands.all) {
            Settings::defaults(subcommand.options);
            assert!(subcommand.arguments.iter().all(|argument| argument.default.is_none()));
            assert!(subcommand.caller == Caller::Server || !subcommand.about.ends_with('.'));
        }
    }

    #[test]
    fn every_parameter_of_the_load_stands_in_the_documentation() {
        let page = include_str!("../../../docs/experiments.md");
        for parameter in kendall_experiment::LOAD {
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
