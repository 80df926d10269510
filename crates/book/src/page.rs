//! A page as text and consoles, and whether what its commands print is what stands there.
//!
//! A console is a block of code, marked `console` (lines that begin with `$ ` are commands, what follows is their output) or `sh` (every
//! line is a command). A comment on the line above, which readers do not see, says what a test does with its commands:
//!
//! - no comment: it runs them, and they print what stands there. A line `…` stands for any number of lines. In a block of `sh`, each must
//!   end with status 0.
//! - `<!-- varies -->`: it runs them, each must end with status 0, and the output is an example. `<!-- varies, status 0 3 -->` allows
//!   other statuses.
//! - `<!-- serves -->`: the last one is a server, which runs until the end of the page.
//! - `<!-- not run: REASON -->`: it does not run them. The test has the list of reasons.
//!
//! `<!-- first: COMMAND -->` is a command that a reader has run already, or runs in some other way.

/// How lines begin that are commands in any block of code.
const COMMANDS: [&str; 4] = ["$ ", "kendall ", "make ", "cargo "];

/// A page of the documentation.
#[derive(Debug)]
pub struct Page {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Text(String),
    First(Step),
    Console(Console),
}

#[derive(Debug)]
struct Console {
    mark: Mark,
    /// Whether the output of commands follows them.
    has_output: bool,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Mark {
    Exact,
    Varies(Vec<i32>),
    Serves,
    NotRun(String),
}

/// A command of a page.
#[derive(Debug)]
pub struct Step {
    /// The lines of the page before the output: those of the command.
    lines: String,
    /// The command as a shell takes it.
    pub command: String,
    /// Whether it runs until the end of the page.
    pub serves: bool,
    output: Vec<String>,
}

/// What a command printed, and how it ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What it printed, errors included.
    pub output: String,
    /// Its exit status.
    pub status: i32,
}

impl Mark {
    /// The mark that a line of a page says, if it says one.
    fn of(line: &str) -> Option<Self> {
        let mark = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
        if let Some(reason) = mark.strip_prefix("not run: ") {
            return Some(Self::NotRun(reason.to_owned()));
        }
        if let Some(statuses) = mark.strip_prefix("varies, status ") {
            return Some(Self::Varies(
                statuses.split(' ').map(|status| status.parse().expect("a status")).collect(),
            ));
        }
        match mark {
            "varies" => Some(Self::Varies(vec![0])),
            "serves" => Some(Self::Serves),
            _ => None,
        }
    }
}

impl Page {
    /// Reads a page.
    ///
    /// # Errors
    /// Says which block of code has commands that no test would see.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut mark = Mark::Exact;
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let command = line.strip_prefix("<!-- first: ").and_then(|rest| rest.strip_suffix(" -->"));
            if let Some(command) = command {
                parts.push(Part::First(Step::new(command, format!("{line}\n"))));
                continue;
            }
            parts.push(Part::Text(format!("{line}\n")));
            let Some(language) = line.strip_prefix("```") else {
                mark = Mark::of(line).unwrap_or(Mark::Exact);
                continue;
            };
            let mut block = Vec::new();
            block.extend(std::iter::from_fn(|| lines.next_if(|line| !line.starts_with("```"))));
            let end = lines.next().ok_or("a block of code has no end")?;
            let mark = std::mem::replace(&mut mark, Mark::Exact);
            match language {
                "console" | "sh" => {
                    parts.push(Part::Console(Console::read(&block, mark, language == "console")?))
                }
                _ => {
                    let is_command = |line: &&&str| COMMANDS.iter().any(|start| line.starts_with(start));
                    if let Some(command) =
                        block.iter().find(is_command).filter(|_| !matches!(mark, Mark::NotRun(_)))
                    {
                        return Err(format!(
                            "mark the block of {command:?} as console or sh, so that it is run"
                        ));
                    }
                    parts.push(Part::Text(block.iter().map(|line| format!("{line}\n")).collect()));
                }
            }
            parts.push(Part::Text(format!("{end}\n")));
        }
        Ok(Self { parts })
    }

    /// The commands to run, in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.parts.iter().flat_map(|part| match part {
            Part::First(step) => std::slice::from_ref(step),
            Part::Console(console) if !matches!(console.mark, Mark::NotRun(_)) => &console.steps,
            Part::Console(_) | Part::Text(_) => &[],
        })
    }

    /// The reasons for which commands are not run.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Console(Console { mark: Mark::NotRun(reason), .. }) => Some(reason.as_str()),
            _ => None,
        })
    }

    /// The page with what its commands printed where it must be what stands there.
    ///
    /// # Errors
    /// Says which command did not end as it should.
    pub fn with(&self, ran: &[Ran]) -> Result<String, String> {
        let mut ran = ran.iter();
        let mut fresh = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => fresh += text,
                Part::First(step) => {
                    step.ended(ran.next(), &[0])?;
                    fresh += &step.lines;
                }
                Part::Console(console) => fresh += &console.with(&mut ran)?,
            }
        }
        Ok(fresh)
    }
}

impl Console {
    fn read(block: &[&str], mark: Mark, has_output: bool) -> Result<Self, String> {
        let mut steps: Vec<Step> = Vec::new();
        let mut lines = block.iter().copied();
        while let Some(line) = lines.next() {
            let command = if has_output { line.strip_prefix("$ ") } else { Some(line) };
            let Some(command) = command else {
                match steps.last_mut() {
                    Some(step) => step.output.push(line.to_owned()),
                    // A prompt of another form, on several machines.
                    None if matches!(mark, Mark::NotRun(_)) => {
                        steps.push(Step::new(":", format!("{line}\n")))
                    }
                    None => return Err(format!("a console begins with a command, and not with {line:?}")),
                }
                continue;
            };
            let (mut command, mut source) = (command.to_owned(), format!("{line}\n"));
            while command.ends_with('\\') {
                let more = lines.next().expect("a line that ends in \\ goes on");
                source += &format!("{more}\n");
                command = format!("{}{}", command.trim_end_matches('\\'), more.trim_start());
            }
            steps.push(Step::new(&command, source));
        }
        if let Some(last) = steps.last_mut().filter(|_| mark == Mark::Serves) {
            last.serves = true;
        }
        Ok(Self { mark, has_output, steps })
    }

    fn with<'a>(&self, ran: &mut impl Iterator<Item = &'a Ran>) -> Result<String, String> {
        let mut fresh = String::new();
        for step in &self.steps {
            fresh += &step.lines;
            let as_it_stands: String = step.output.iter().map(|line| format!("{line}\n")).collect();
            fresh += &match &self.mark {
                Mark::NotRun(_) => as_it_stands,
                Mark::Exact if self.has_output => {
                    let printed = &ran.next().ok_or_else(|| format!("{} did not end", step.command))?.output;
                    if is_like(&step.output, &printed.lines().collect::<Vec<_>>()) {
                        as_it_stands
                    } else {
                        printed.clone()
                    }
                }
                mark => {
                    let allowed = if let Mark::Varies(statuses) = mark { statuses } else { &vec![0] };
                    step.ended(ran.next(), allowed)?;
                    as_it_stands
                }
            };
        }
        Ok(fresh)
    }
}

impl Step {
    fn new(command: &str, lines: String) -> Self {
        // Readers see how a server goes into the background, and so does the test.
        let (command, serves) =
            command.strip_suffix(" &").map_or((command, false), |command| (command, true));
        Self { lines, command: command.to_owned(), serves, output: Vec::new() }
    }

    fn ended(&self, ran: Option<&Ran>, allowed: &[i32]) -> Result<(), String> {
        let Ran { output, status } = ran.ok_or_else(|| format!("{} did not end", self.command))?;
        if allowed.contains(status) {
            Ok(())
        } else {
            Err(format!("{} ended with {status}:\n{output}", self.command))
        }
    }
}

/// Whether lines are those that were expected, in which `…` stands for any number of lines.
fn is_like(expected: &[String], lines: &[&str]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=lines.len()).any(|skipped| is_like(rest, &lines[skipped..]))
        }
        Some((first, rest)) => {
            lines.split_first().is_some_and(|(line, others)| line == first && is_like(rest, others))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(output: &str, status: i32) -> Ran {
        Ran { output: output.to_owned(), status }
    }

    #[test]
    fn commands_and_outputs_are_recognised() {
        let text = "<!-- first: make ready -->\n# Page\n```console\n$ one \\\n    --more\nout\n$ two\n```\n<!-- varies, status 0 3 -->\n\
                    ```sh\nthree # comment\nfour &\n```\n<!-- not run: root -->\n```console\n$ five\n```\n";
        let page = Page::read(text).unwrap();
        let commands: Vec<&str> = page.steps().map(|step| step.command.as_str()).collect();
        assert_eq!(commands, ["make ready", "one --more", "two", "three # comment", "four"]);
        assert_eq!(page.steps().filter(|step| step.serves).count(), 1);
        assert_eq!(page.reasons().collect::<Vec<_>>(), ["root"]);
        let all = [ran("", 0), ran("out\n", 1), ran("new\n", 0), ran("any", 3), ran("", 0)];
        assert_eq!(page.with(&all).unwrap(), text.replace("$ two\n", "$ two\nnew\n"));
        let failed = [ran("", 0), ran("out\n", 1), ran("", 0), ran("why", 1), ran("", 0)];
        assert!(page.with(&failed).unwrap_err().contains("ended with 1:\nwhy"));
        assert!(page.with(&all[..4]).unwrap_err().contains("did not end"));
    }

    #[test]
    fn no_command_is_overlooked() {
        assert!(Page::read("```\n$ kendall solve M/M/1\n```\n").is_err());
        assert!(Page::read("```text\nkendall solve M/M/1\n```\n").is_err());
        assert!(Page::read("```toml\nname = 1\n```\n").is_ok());
    }

    #[test]
    fn an_ellipsis_stands_for_any_lines() {
        let like = |expected: &[&str], lines: &[&str]| {
            is_like(&expected.iter().map(|&line| line.to_owned()).collect::<Vec<_>>(), lines)
        };
        assert!(like(&["a", "…", "d"], &["a", "b", "c", "d"]) && like(&["…"], &[]));
        assert!(!like(&["a", "…", "d"], &["a", "b"]) && !like(&["a"], &["a", "b"]));
    }
}
