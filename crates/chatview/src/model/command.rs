//! Commands that are typed: `/call bob`.

/// What can be typed: the command, its operand, and what it does.
pub(crate) const COMMANDS: [(&str, &str, &str); 21] = [
    ("help", "", "show this"),
    ("open", "NAME", "go to a contact, or add one"),
    ("call", "[NAME]", "call the contact, as a message does"),
    ("accept", "", "take the call that rings (Alt-A)"),
    ("refuse", "", "refuse the call that rings (Alt-R)"),
    ("file", "PATH", "offer a file to the contact"),
    ("take", "[FILE]", "take a file that the contact offers"),
    ("decline", "[FILE]", "refuse it"),
    ("cancel", "[FILE]", "end a file that is on its way"),
    ("bye", "", "end the talk"),
    ("who", "", "list the users who are there"),
    ("search", "[TEXT]", "find text; Ctrl-R goes back, Ctrl-S on"),
    ("safety", "", "show safety numbers, to compare by phone"),
    ("trust", "", "accept the contact's new key"),
    ("block", "", "refuse all calls of the contact"),
    ("unblock", "", "take calls of the contact again"),
    ("remove", "", "take the contact off the list"),
    ("receipts", "on|off", "report what you have seen, or not"),
    ("top", "", "go to the beginning of the conversation"),
    ("bottom", "", "go to the newest message"),
    ("quit", "", "end the program (Ctrl-D)"),
];

/// A command, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Open(String),
    Call(Option<String>),
    Accept,
    Refuse,
    File(String),
    Take(Option<String>),
    Decline(Option<String>),
    Cancel(Option<String>),
    Bye,
    Who,
    Search(Option<String>),
    Safety,
    Trust,
    Block,
    Unblock,
    Remove,
    Receipts(bool),
    Top,
    Bottom,
    Quit,
}

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// A message. A slash at its beginning is written twice.
    Message(String),
    /// A command.
    Command(Command),
}

/// Reads a line; an error says what to type.
pub(crate) fn read(line: &str) -> Result<Typed, String> {
    let Some(rest) = line.strip_prefix('/') else { return Ok(Typed::Message(line.to_owned())) };
    if rest.starts_with('/') {
        return Ok(Typed::Message(rest.to_owned()));
    }
    let (name, operand) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let operand = Some(operand.trim()).filter(|it| !it.is_empty()).map(str::to_owned);
    let needs = |what: &str| format!("/{name} needs {what}: /{name} {what}");
    let command = match (name, operand) {
        ("open", operand) => Command::Open(operand.ok_or_else(|| needs("NAME"))?),
        ("call", operand) => Command::Call(operand),
        ("file", operand) => Command::File(operand.ok_or_else(|| needs("PATH"))?),
        ("take", operand) => Command::Take(operand),
        ("decline", operand) => Command::Decline(operand),
        ("cancel", operand) => Command::Cancel(operand),
        ("search", operand) => Command::Search(operand),
        ("receipts", operand) => match operand.as_deref() {
            Some("on") => Command::Receipts(true),
            Some("off") => Command::Receipts(false),
            _ => return Err(needs("on|off")),
        },
        (_, Some(_)) if COMMANDS.iter().any(|(known, ..)| *known == name) => {
            return Err(format!("/{name} has no operand"));
        }
        ("help", _) => Command::Help,
        ("accept", _) => Command::Accept,
        ("refuse", _) => Command::Refuse,
        ("bye", _) => Command::Bye,
        ("who", _) => Command::Who,
        ("safety", _) => Command::Safety,
        ("trust", _) => Command::Trust,
        ("block", _) => Command::Block,
        ("unblock", _) => Command::Unblock,
        ("remove", _) => Command::Remove,
        ("top", _) => Command::Top,
        ("bottom", _) => Command::Bottom,
        ("quit", _) => Command::Quit,
        _ => {
            return Err(format!(
                "there is no command /{name}; /help lists them, and // begins a message with a slash"
            ));
        }
    };
    Ok(Typed::Command(command))
}

/// The completions of the word before the cursor: its position and the candidates. At the beginning of a line it is a command,
/// otherwise a name.
pub(crate) fn candidates<'a>(before: &str, names: impl Iterator<Item = &'a str>) -> (usize, Vec<String>) {
    let from = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
    let word = &before[from..];
    let found = match word.strip_prefix('/') {
        Some(word) if from == 0 => {
            let starts = COMMANDS.iter().filter(|(name, ..)| name.starts_with(word));
            starts.map(|(name, ..)| format!("/{name}")).collect()
        }
        _ if word.is_empty() && !before.starts_with('/') => Vec::new(),
        _ => names.filter(|name| name.starts_with(word)).map(str::to_owned).collect(),
    };
    (from, found)
}

/// What all candidates begin with.
pub(crate) fn common(candidates: &[String]) -> String {
    let Some((first, rest)) = candidates.split_first() else { return String::new() };
    let shared = |other: &String| {
        first.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
    };
    first[..rest.iter().map(shared).min().unwrap_or(first.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_list_is_read() {
        for (name, operand, _) in COMMANDS {
            let operand = if operand == "on|off" { "on" } else { operand };
            let line = format!("/{name} {operand}");
            assert!(matches!(read(&line), Ok(Typed::Command(_))), "{line}: {:?}", read(&line));
        }
    }

    #[test]
    fn what_cannot_be_read_says_what_to_type() {
        assert_eq!(read("/open").unwrap_err(), "/open needs NAME: /open NAME");
        assert_eq!(read("/quit now").unwrap_err(), "/quit has no operand");
        assert!(read("/fly").unwrap_err().starts_with("there is no command /fly; /help lists them"));
        assert_eq!(read("//etc"), Ok(Typed::Message("/etc".into())));
    }

    #[test]
    fn words_are_completed_by_commands_and_names() {
        let names = || ["ann", "anton", "bob"].into_iter();
        assert_eq!(candidates("/sa", names()), (0, vec!["/safety".into()]));
        assert_eq!(candidates("/call an", names()), (6, vec!["ann".into(), "anton".into()]));
        assert_eq!(common(&candidates("hello a", names()).1), "an");
        assert_eq!(candidates("hello ", names()).1, Vec::<String>::new());
    }
}
