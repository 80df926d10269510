//! The servers that are validated: experiment files, the programs that they start, and notes about them.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

/// Where programs of the system are, in addition to `PATH`.
const MORE_PATHS: [&str; 2] = ["/usr/sbin", "/sbin"];
/// The arguments with which programs print their version.
const VERSION: [&str; 3] = ["--version", "-version", "-v"];

/// A server to validate.
pub(super) struct Server {
    /// The name of its file without the ending.
    pub(super) name: String,
    pub(super) file: PathBuf,
    /// The question that its file asks.
    pub(super) question: String,
    /// The command that starts it; `None` of kendall's own systems.
    pub(super) command: Option<String>,
}

/// The part of an experiment file that is read here.
#[derive(Deserialize)]
struct ServerFile {
    #[serde(default)]
    question: String,
    system: SystemTable,
}

#[derive(Deserialize)]
struct SystemTable {
    command: Option<String>,
}

/// Every experiment file of a folder, in the order of their names.
pub(super) fn all(folder: &Path) -> Result<Vec<Server>, String> {
    let cannot = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(|error| cannot(&error))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    files.into_iter().map(Server::read).collect()
}

/// The notes about servers, by name: a paragraph of Markdown each. There may be no such file.
pub(super) fn notes(file: &Path) -> Result<BTreeMap<String, String>, String> {
    match fs::read_to_string(file) {
        Ok(text) => toml::from_str(&text).map_err(|error| format!("{}: {error}", file.display())),
        Err(_) => Ok(BTreeMap::new()),
    }
}

impl Server {
    fn read(file: PathBuf) -> Result<Self, String> {
        let cannot = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(|error| cannot(&error))?;
        let ServerFile { question, system } = toml::from_str(&text).map_err(|error| cannot(&error))?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, file, question, command: system.command })
    }

    /// The programs that the command executes: the word after `exec`, variables of the environment apart.
    fn programs(&self) -> Vec<&str> {
        let lines = self.command.iter().flat_map(|command| command.lines());
        let executed = lines.filter_map(|line| line.trim_start().strip_prefix("exec "));
        executed
            .filter_map(|line| line.split_whitespace().find(|word| *word != "env" && !word.contains('=')))
            // What the command itself makes in its folder.
            .filter(|program| !program.contains('{'))
            .collect()
    }

    /// The first program that is not installed.
    pub(super) fn missing(&self) -> Option<&str> {
        self.programs().into_iter().find(|program| path_of(program).is_none())
    }

    /// The versions of its programs, as they print them.
    pub(super) fn versions(&self) -> Vec<String> {
        self.programs().into_iter().filter_map(version).collect()
    }
}

/// Where a program is.
fn path_of(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(MORE_PATHS.map(PathBuf::from));
    // Of an absolute path, joining leaves nothing but it.
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The first line with a digit that a program prints about its version.
fn version(program: &str) -> Option<String> {
    let path = path_of(program)?;
    VERSION.into_iter().find_map(|argument| {
        let output = Command::new(&path).arg(argument).stdin(Stdio::null()).output().ok()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = text.lines().find(|line| line.contains(|letter: char| letter.is_ascii_digit()))?;
        output.status.success().then(|| match line.contains(program) {
            true => line.trim().to_owned(),
            false => format!("{program} {}", line.trim()),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_of_the_repository_has_a_question() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/validate");
        let servers = all(&folder).unwrap();
        assert!(servers.len() >= 3);
        for server in &servers {
            assert!(server.question.ends_with('?'), "{}", server.name);
        }
        let node = servers.iter().find(|server| server.name == "node").unwrap();
        assert_eq!(node.programs(), ["node"]);
    }

    #[test]
    fn programs_are_what_a_command_executes() {
        let of = |command: &str| {
            let command = Some(command.to_owned());
            let server =
                Server { name: String::new(), file: PathBuf::new(), question: String::new(), command };
            server.programs().iter().map(|program| (*program).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of("echo exec of\n  exec env A=1 nginx -c x\n"), ["nginx"]);
        assert!(of("exec {folder}/server").is_empty());
        assert!(of("cat > file <<END\nexecute\nEND").is_empty());
        assert!(path_of("sh").is_some() && path_of("/no/such/program").is_none());
    }

    #[test]
    fn notes_are_optional_and_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes.toml");
        assert!(notes(&file).unwrap().is_empty());
        fs::write(&file, "node = \"\"\"\nOne loop.\n\"\"\"\n").unwrap();
        assert_eq!(notes(&file).unwrap()["node"].trim(), "One loop.");
        fs::write(&file, "node = [").unwrap();
        assert!(notes(&file).is_err());
    }
}
