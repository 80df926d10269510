//! Every command with its options, as a page, from what the command line itself knows.

use clap::{Arg, Command};

/// The page: a section for each command that does something, in the order of `--help`.
pub fn reference(command: &Command) -> String {
    let mut command = command.clone();
    command.build();
    let mut page = "# Commands\n\n\
        Every command with its arguments and options, as `--help` explains them. A test generates this page from the program.\n"
        .to_owned();
    let global: Vec<&Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).collect();
    page += &format!("\nThese options belong to every command:\n{}", table(&global));
    each(&command, &mut |command| page += &section(command));
    page
}

/// Calls a function for each command that does something.
fn each(command: &Command, describe: &mut impl FnMut(&Command)) {
    let shown = |one: &&Command| one.get_name() != "help" && !one.is_hide_set();
    for one in command.get_subcommands().filter(shown) {
        if one.has_subcommands() { each(one, describe) } else { describe(one) }
    }
}

fn section(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about =
        command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    let mut text = format!("\n## {name}\n\n{}\n\n", sentence(&about));
    text += &format!("<!-- not run: placeholder -->\n```text\n{usage}\n```\n");
    let arguments: Vec<&Arg> = command.get_arguments().filter(|arg| is_shown(arg)).collect();
    let mut headings: Vec<Option<&str>> = Vec::new();
    for heading in arguments.iter().map(|arg| arg.get_help_heading()) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    // Options without a heading come first, as in `--help`.
    headings.sort_by_key(Option::is_some);
    for heading in headings {
        let of = |arg: &&Arg| arg.get_help_heading() == heading;
        let these: Vec<&Arg> = arguments.iter().copied().filter(of).collect();
        text += &heading.map(|heading| format!("\n**{heading}**\n")).unwrap_or_default();
        text += &table(&these);
    }
    text
}

fn is_shown(arg: &Arg) -> bool {
    let id = arg.get_id().as_str();
    !arg.is_hide_set() && !arg.is_global_set() && id != "help" && id != "version"
}

fn table(arguments: &[&Arg]) -> String {
    let rows: String = arguments.iter().map(|arg| row(arg)).collect();
    format!("\n| argument | meaning |\n| --- | --- |\n{rows}")
}

fn row(arg: &Arg) -> String {
    let value = || {
        let names = arg.get_value_names().unwrap_or_default();
        names.iter().map(|name| format!(" <{name}>")).collect::<String>()
    };
    let takes_value = arg.get_action().takes_values();
    let name = match (arg.get_long(), arg.get_short()) {
        (None, None) => format!("`{}`", value().trim()),
        (long, short) => {
            let long =
                long.map(|long| format!("`--{long}{}`", if takes_value { value() } else { String::new() }));
            let short = short.map(|short| format!("`-{short}`"));
            long.into_iter().chain(short).collect::<Vec<_>>().join(", ")
        }
    };
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut help = sentence(&help);
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_value && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        help += &format!(" [default: {}]", defaults.join(" "));
    }
    let possible = arg.get_possible_values();
    let possible: Vec<&str> =
        possible.iter().filter(|one| !one.is_hide_set()).map(|one| one.get_name()).collect();
    if takes_value && !possible.is_empty() && !arg.is_hide_possible_values_set() {
        help += &format!(" [possible values: {}]", possible.join(", "));
    }
    format!("| {} | {} |\n", name.replace('|', "\\|"), cell(&help))
}

/// A help text as one paragraph.
fn sentence(help: &str) -> String {
    help.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text in a table: its marks of Markdown and HTML are letters.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_")
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn a_command_has_its_options_by_heading() {
        let option = Arg::new("rate")
            .long("rate")
            .short('r')
            .value_name("RATE")
            .help("How many | per second")
            .default_value("5");
        let hidden = Arg::new("former").long("former").hide(true);
        let target = Arg::new("target").value_name("URL").required(true).help("The server");
        let load = Command::new("load").about("Load a server").args([
            option.help_heading("Arrivals"),
            hidden,
            target,
        ]);
        let page = reference(&Command::new("kendall").subcommand(load));
        let section = page.split("## kendall load").nth(1).unwrap();
        assert!(
            section.contains("\nLoad a server\n") && section.contains("kendall load [OPTIONS] <URL>"),
            "{section}"
        );
        assert!(section.contains("| `<URL>` | The server |"), "{section}");
        assert!(section.contains("**Arrivals**\n\n| argument | meaning |\n"), "{section}");
        assert!(
            section.contains("| `--rate <RATE>`, `-r` | How many \\| per second [default: 5] |"),
            "{section}"
        );
        assert!(!page.contains("former") && !page.contains("## kendall help"), "{page}");
    }
}
