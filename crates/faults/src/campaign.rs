//! Draws the cases from a seed, and runs each in a separate process with its own network, disk and processes.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{env, io, thread};

use kendall_testbed::hostile::Draw;
use rustix::process::geteuid;
use serde_json::{Value, json};

use crate::case::{self, CaseResult};
use crate::faults::{FAULTS, Fault, fault, raise_limit};
use crate::subjects::{SUBJECTS, Scene, Subject, subject};

/// Which cases run.
pub struct Campaign {
    /// The program `kendall`.
    pub program: PathBuf,
    /// The seed of all cases.
    pub seed: u64,
    /// The number of cases.
    pub cases: u64,
    /// The only case, if it is one.
    pub only: Option<u64>,
    /// The names of the systems; all where it is empty.
    pub systems: Vec<String>,
    /// The names of the faults; all where it is empty.
    pub faults: Vec<String>,
    /// Cases at a time.
    pub jobs: usize,
    /// The file of results. Cases of this seed that passed there, or were left out, do not run again.
    pub results: PathBuf,
}

/// The longest case, with the start of a database on a busy machine.
const CASE_LIMIT: &str = "300";

/// The names and the script of a case's namespaces. Its disk has 300 MB.
const ISOLATE: &str = r#"mount -t tmpfs none /run && mount -t tmpfs -o size=300m,mode=1777 none "$1/disk" && ip link set lo up &&
shift && exec "$@""#;

impl Campaign {
    /// Runs all cases that have no result yet, and returns how many of them failed.
    ///
    /// # Errors
    /// Fails where a name is unknown, and where the file of results cannot be read or written.
    pub fn run(&self) -> io::Result<usize> {
        if let Some(why) = self.unknown() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let pairs = self.pairs();
        if let Some(folder) = self.results.parent() {
            fs::create_dir_all(folder)?;
        }
        let done: BTreeSet<u64> = read(&self.results)?
            .iter()
            .filter(|result| result["seed"].as_u64() == Some(self.seed) && result["outcome"] != "failed")
            .filter_map(|result| result["case"].as_u64())
            .collect();
        let file = Mutex::new(File::options().create(true).append(true).open(&self.results)?);
        let (first, end) = self.only.map_or((0, self.cases), |only| (only, only + 1));
        let (next, failures) = (AtomicU64::new(first), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Relaxed);
                        if number >= end {
                            return;
                        }
                        if self.only.is_none() && done.contains(&number) {
                            continue;
                        }
                        let (fault, subject) = pairs[number as usize % pairs.len()];
                        let result = self.isolated(number, fault, subject);
                        failures.fetch_add(u64::from(result["outcome"] == "failed"), Relaxed);
                        println!("{}", line(&result));
                        let mut file = file.lock().expect("no thread panics with it");
                        writeln!(file, "{result}").expect("the file of results can be written");
                    }
                });
            }
        });
        Ok(failures.into_inner() as usize)
    }

    /// Why the names of systems and faults choose nothing.
    fn unknown(&self) -> Option<String> {
        let of = |names: &[String], known: Vec<&str>| {
            let wrong = names.iter().find(|name| !known.contains(&name.as_str()))?;
            Some(format!("{wrong} is not one of {}", known.join(", ")))
        };
        of(&self.systems, SUBJECTS.iter().map(|subject| subject.name).collect())
            .or_else(|| of(&self.faults, FAULTS.iter().map(|fault| fault.name).collect()))
    }

    /// Each fault with each system that it applies to, in an order in which neighbours differ in both.
    fn pairs(&self) -> Vec<(&'static Fault, &'static Subject)> {
        let is_chosen = |names: &[String], name: &str| names.is_empty() || names.iter().any(|it| it == name);
        let (systems, faults): (Vec<_>, Vec<_>) = (
            SUBJECTS.iter().filter(|subject| is_chosen(&self.systems, subject.name)).collect(),
            FAULTS.iter().filter(|fault| is_chosen(&self.faults, fault.name)).collect(),
        );
        let all = (0..systems.len()).flat_map(|shift| (0..faults.len()).map(move |row| (row, row + shift)));
        let pairs = all.map(|(row, column)| (faults[row], systems[column % systems.len()]));
        pairs.filter(|(fault, subject)| (fault.not_for)(subject).is_none()).collect()
    }

    /// A case in its namespaces, which vanish with all its processes.
    fn isolated(&self, number: u64, fault: &Fault, subject: &Subject) -> Value {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // PostgreSQL runs as another user.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("the folder is ours");
        fs::create_dir(folder.path().join("disk")).expect("the folder is ours");
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", CASE_LIMIT, "unshare"]);
        if !geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
        command.args(["sh", "-c", ISOLATE, "sh"]).arg(folder.path());
        command.arg(env::current_exe().expect("a program knows its path"));
        command.arg("case").arg(&self.program).arg(folder.path());
        command.args([subject.name, fault.name, &self.seed.to_string(), &number.to_string()]);
        command.env("TMPDIR", folder.path().join("disk"));
        let output = command.output().expect("timeout of coreutils is installed");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let result = printed.lines().last().and_then(|line| serde_json::from_str(line).ok());
        let mut result: Value = result.unwrap_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let kind = if said.contains("unshare failed") { "left out" } else { "failed" };
            json!({ "outcome": kind, "why": format!("{}: {}", output.status, said.trim()) })
        });
        result["case"] = number.into();
        result["seed"] = self.seed.into();
        result["fault"] = fault.name.into();
        result["system"] = subject.name.into();
        result
    }
}

/// Runs one case in this process, which is in its namespaces already: program, folder, system, fault, seed, number.
///
/// # Errors
/// Fails where the arguments are not those of a case.
pub fn run_case(arguments: &[String]) -> Result<Value, String> {
    let [program, folder, system, name, seed, number] = arguments else {
        return Err("a case has six arguments".into());
    };
    let parse = |text: &String| text.parse::<u64>().map_err(|error| error.to_string());
    let mut draw = Draw::of(parse(seed)?, "campaign", parse(number)?);
    raise_limit();
    let scene = Scene::new(Path::new(program), Path::new(folder))?;
    let subject = subject(system).ok_or("no such system")?;
    let result = case::run(subject, fault(name).ok_or("no such fault")?, scene, &mut draw);
    Ok(match result {
        CaseResult::Passed { recovery, checked } => {
            json!({ "outcome": "passed", "recovery_ms": recovery.as_millis() as u64, "checked": checked })
        }
        CaseResult::Failed(why) => json!({ "outcome": "failed", "why": why }),
        CaseResult::LeftOut(why) => json!({ "outcome": "left out", "why": why }),
    })
}

/// The line that is printed for a result.
fn line(result: &Value) -> String {
    let text = |name: &str| result[name].as_str().unwrap_or_default().trim().to_owned();
    let (case, system, fault) = (&result["case"], text("system"), text("fault"));
    let rest = match result["outcome"].as_str() {
        Some("passed") => format!("recovered in {} ms, {} right", result["recovery_ms"], result["checked"]),
        Some("failed") => {
            let seed = &result["seed"];
            format!("FAILED: {}\n  again: make faults SEED={seed} CASE='campaign {case}'", text("why"))
        }
        _ => format!("left out: {}", text("why")),
    };
    format!("{case:>4} {system}, {fault}: {rest}")
}

/// All results of a file; none where the file does not exist.
///
/// # Errors
/// Fails where the file cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<Value>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
