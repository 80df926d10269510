//! The experiment files of the repository: their questions, and the programs that they start.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

/// Where programs of the system are, in addition to `PATH`.
const MORE_PATHS: [&str; 2] = ["/usr/sbin", "/sbin"];
/// The arguments with which programs print their version.
const VERSION: [&str; 3] = ["--version", "-version", "-v"];

/// An experiment file.
pub(crate) struct ExperimentFile {
    /// Its path in the folder of all of them, without the ending: `reverse/caching`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// The question that it asks.
    pub(crate) question: String,
    /// The command that starts the server; `None` of kendall's own systems.
    pub(crate) command: Option<String>,
}

/// The part of an experiment file that is read here.
#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    question: String,
    system: SystemTable,
}

#[derive(Deserialize)]
struct SystemTable {
    command: Option<String>,
}

/// Every experiment file in a folder and the folders in it, in the order of their names.
pub(crate) fn all(folder: &Path) -> Result<Vec<ExperimentFile>, String> {
    let mut paths = Vec::new();
    add(folder, &mut paths)?;
    paths.sort();
    paths.into_iter().map(|path| ExperimentFile::read(folder, path)).collect()
}

fn add(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), String> {
    let cannot = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(|error| cannot(&error))? {
        let path = entry.map_err(|error| cannot(&error))?.path();
        if path.is_dir() {
            add(&path, paths)?;
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            paths.push(path);
        }
    }
    Ok(())
}

/// Those of these names, or all, in their order. A name may also be that of a folder.
pub(crate) fn named<'f>(
    files: &'f [ExperimentFile],
    names: &[String],
) -> Result<Vec<&'f ExperimentFile>, String> {
    if let Some(unknown) = names.iter().find(|name| !files.iter().any(|file| file.is_in(name))) {
        let known: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        return Err(format!("there is no experiment {unknown:?}; there are {}", known.join(", ")));
    }
    let wanted = |file: &&ExperimentFile| names.is_empty() || names.iter().any(|name| file.is_in(name));
    Ok(files.iter().filter(wanted).collect())
}

impl ExperimentFile {
    fn read(folder: &Path, path: PathBuf) -> Result<Self, String> {
        let cannot = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| cannot(&error))?;
        let Content { question, system } = toml::from_str(&text).map_err(|error| cannot(&error))?;
        let name = path.strip_prefix(folder).expect("it was found there").with_extension("");
        Ok(Self { name: name.to_string_lossy().into_owned(), path, text, question, command: system.command })
    }

    /// Whether it has this name, or is in the folder of this name.
    fn is_in(&self, name: &str) -> bool {
        self.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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
    pub(crate) fn missing(&self) -> Option<&str> {
        self.programs().into_iter().find(|program| path_of(program).is_none())
    }

    /// The versions of its programs, as they print them.
    pub(crate) fn versions(&self) -> Vec<String> {
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
    fn every_experiment_of_the_repository_has_a_question() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let files = all(&folder).unwrap();
        assert!(files.len() >= 30);
        for file in &files {
            assert!(file.question.ends_with('?'), "{}", file.name);
        }
        let node = files.iter().find(|file| file.name == "validate/node").unwrap();
        assert_eq!(node.programs(), ["node"]);
        let names = |name: &str| {
            let found = named(&files, &[name.to_owned()])
                .map(|found| found.into_iter().map(|file| file.name.clone()));
            found.map(Vec::from_iter)
        };
        assert_eq!(names("reverse/caching").unwrap(), ["reverse/caching"]);
        assert!(names("reverse").unwrap().contains(&"reverse/caching-score".to_owned()));
        let error = names("rever").unwrap_err();
        assert!(error.contains("quickstart") && error.contains("reverse/order"), "{error}");
    }

    #[test]
    fn programs_are_what_a_command_executes() {
        let of = |command: &str| {
            let command = Some(command.to_owned());
            let (name, path, text, question) = Default::default();
            let file = ExperimentFile { name, path, text, question, command };
            file.programs().iter().map(|program| (*program).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of("echo exec of\n  exec env A=1 nginx -c x\n"), ["nginx"]);
        assert!(of("exec {folder}/server").is_empty());
        assert!(of("cat > file <<END\nexecute\nEND").is_empty());
        assert!(path_of("sh").is_some() && path_of("/no/such/program").is_none());
    }
}
