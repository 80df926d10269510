//! The documentation of systems, generated from their rows: the chapter, and the tables of other pages.

use crate::parameter::Parameter;
use crate::row::System;
use crate::subcommand::{Caller, Subcommand};

/// The chapter of all systems: a description, the settings and the subcommands of each.
pub fn chapter(systems: &[System]) -> String {
    let mut page = String::from(
        "# Systems\n\n`kendall serve NAME` takes the settings of a server as options (`--workers 4`), an experiment file as \
         keys of `[system]`; those of a workload stand in `[workload]`, or in the URL of `kendall load` as \
         `?NAME=VALUE`. What else an experiment file holds is in [experiments.md](experiments.md).\n",
    );
    for system in systems {
        page += &format!(
            "\n## {}\n\n`{}` {}. Its port is {} unless another is named.\n",
            system.name, system.name, system.about, system.default_port
        );
        for (title, parameters) in [("server", system.server), ("workload", system.workload)] {
            if !parameters.is_empty() {
                page += &format!("\n{}", parameter_table(title, parameters));
            }
        }
        for subcommand in users(system) {
            page += &section(system.name, subcommand);
        }
    }
    page
}

/// The subcommands for users.
fn users(system: &System) -> impl Iterator<Item = &'static Subcommand> {
    system.subcommands.all.iter().filter(|subcommand| subcommand.caller == Caller::User)
}

/// The section of a subcommand in the chapter.
fn section(system: &str, subcommand: &Subcommand) -> String {
    let usage: String =
        subcommand.arguments.iter().map(|argument| format!(" {}", argument.name.to_uppercase())).collect();
    let mut text = format!(
        "\n### `kendall {system} {}{usage}`\n\n{}.\n\n",
        subcommand.name,
        subcommand.about.replace('|', "\\|")
    );
    let arguments = subcommand.arguments.iter().map(|one| row(&one.name.to_uppercase(), one));
    let options = subcommand.options.iter().map(|one| row(&format!("--{}", one.name), one));
    text += &head("argument");
    text.extend(arguments.chain(options));
    text
}

/// A table of parameters, under a title.
pub fn parameter_table(title: &str, parameters: &[Parameter]) -> String {
    let mut table = head(title);
    table.extend(parameters.iter().map(|parameter| row(parameter.name, parameter)));
    table
}

fn head(title: &str) -> String {
    format!("| {title} | meaning | default |\n| --- | --- | --- |\n")
}

fn row(name: &str, parameter: &Parameter) -> String {
    let default = parameter.default.map_or_else(String::new, |default| format!("`{default}`"));
    format!("| `{name}` | {} | {default} |\n", parameter.help.replace('|', "\\|"))
}

/// The systems in the README: a row for each server, and one for each subcommand.
pub fn readme_rows(systems: &[System]) -> String {
    systems
        .iter()
        .flat_map(|system| {
            let serve = format!("| `kendall serve {}` | {} |\n", system.name, system.about);
            let about = small_initial(system.subcommands.about);
            let names: Vec<&str> = users(system).map(|subcommand| subcommand.name).collect();
            let own = (!names.is_empty())
                .then(|| format!("| `kendall {}` | {about}: {} |\n", system.name, names.join(", ")));
            [Some(serve), own]
        })
        .flatten()
        .collect()
}

/// A sentence as it stands in a cell.
fn small_initial(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect()
}

/// The systems in the chapter of experiment files: the keys of each, which the chapter of systems explains.
pub fn system_rows(systems: &[System]) -> String {
    let keys = |parameters: &[Parameter]| {
        let names: Vec<String> = parameters.iter().map(|parameter| format!("`{}`", parameter.name)).collect();
        names.join(", ")
    };
    let mut table =
        String::from("| system | keys of `[system]` | keys of `[workload]` |\n| --- | --- | --- |\n");
    table.extend(systems.iter().map(|system| {
        let (name, server, workload) = (system.name, keys(system.server), keys(system.workload));
        format!("| [`{name}`](systems.md#{name}) | {server} | {workload} |\n")
    }));
    table
}
