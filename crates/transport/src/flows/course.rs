//! One run over a link: `kendall link run` with this program at both ends, and the files that they and the
//! link wrote.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use kendall_archive::read_json;
use kendall_flows::{ClientRecord, LINK, SEEN, Traces};
use kendall_system::quoted;

use super::plan::{PLAN, Plan, TROUBLE, Task};
use super::source::Source;

/// The setting of runs.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The link, as settings of hops with > between them.
    pub(crate) link: String,
    /// The congestion control of TCP at both ends.
    pub(crate) congestion: String,
    /// The seed of the random conditions of the link.
    pub(crate) seed: u64,
}

/// Runs a task in an existing, empty folder.
///
/// # Errors
/// Reports why no link can be emulated, what an end could not do, or what could not be read.
pub(crate) fn run(task: Task, echo: Source, setting: &Setting, folder: &Path) -> Result<Traces, String> {
    let folder = fs::canonicalize(folder).map_err(|error| cannot("find", folder, &error))?;
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        kendall_files::replace(&path, text).map_err(|error| cannot("write", &path, &error))
    };
    let secrets = tempfile::tempdir().map_err(|error| format!("cannot make a folder for keys: {error}"))?;
    let plan =
        Plan { task, echo, congestion: setting.congestion.clone(), secrets: secrets.path().to_owned() };
    write(PLAN, serde_json::to_string_pretty(&plan).map_err(|error| error.to_string())?)?;
    let status = link_run(setting, &folder)?;
    let written = |name: &str| fs::read_to_string(folder.join(name)).ok();
    if let Some(why) = written(TROUBLE) {
        return Err(format!("the far end of the link failed: {}", why.trim()));
    }
    if !status.success() {
        return Err(
            "the run over the link failed; its output has the reason, and `kendall doctor` shows what works on this machine"
                .into(),
        );
    }
    Traces::read(&folder).map_err(|error| error.to_string())
}

fn link_run(setting: &Setting, folder: &Path) -> Result<std::process::ExitStatus, String> {
    let program = env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(&program);
    command.args(["link", "run", "--quiet", "--seed", &setting.seed.to_string()]);
    command.args(["--congestion", &setting.congestion]);
    for hop in setting.link.split('>') {
        command.args(["--hop", hop.trim()]);
    }
    command.arg("--record").arg(folder.join(LINK));
    let shown = |path: &Path| quoted(&path.display().to_string());
    let far = format!("exec {} transport far {}", shown(&program), shown(folder));
    command.args(["--server", &far, "--"]).arg(&program).args(["transport", "near"]).arg(folder);
    let status = command.stdin(Stdio::null()).status();
    status.map_err(|error| format!("cannot start {}: {error}", program.display()))
}

/// The plan in a folder.
pub(crate) fn plan_in(folder: &Path) -> Result<Plan, String> {
    read_json(&folder.join(PLAN)).map_err(|error| error.to_string())
}

/// Writes the observations of the near end.
pub(crate) fn write_seen(folder: &Path, seen: &ClientRecord) -> Result<(), String> {
    let path = folder.join(SEEN);
    let text = serde_json::to_string(seen).map_err(|error| error.to_string())?;
    kendall_files::replace(&path, text).map_err(|error| cannot("write", &path, &error))
}

fn cannot(what: &str, path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("cannot {what} {}: {error}", path.display())
}
