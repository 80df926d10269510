//! Database servers of Debian's packages, each with its data in a temporary folder, on a free port of this machine.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::program::free_port;
use crate::waiting::{LIMIT, wait_until};
use crate::{TempDir, has_peer, tempdir};

/// The number of databases of a server, each empty at first.
pub const SPACES: usize = 8;

/// A kind of database server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseKind {
    /// PostgreSQL.
    Postgres,
    /// MariaDB without its tables of users: any user may log in.
    Mariadb,
    /// Redis, which flushes each write (`appendfsync always`).
    Redis,
}

/// A database server, killed when this is dropped. It flushes what it acknowledges.
#[derive(Debug)]
pub struct Database {
    kind: DatabaseKind,
    folder: TempDir,
    port: u16,
    settings: Vec<String>,
    child: Option<Child>,
}

impl Database {
    /// Starts a server with these additional arguments, and waits until it listens; it may still reject calls for a moment.
    /// `None`, with a message, where the server is not installed.
    ///
    /// # Panics
    /// Where it is missing while `CI` is set, or does not start.
    pub fn start(kind: DatabaseKind, settings: &[&str]) -> Option<Self> {
        let program = program(kind);
        if !has_peer(&program.to_string_lossy(), "--version") {
            eprintln!("skipped: {} is not installed (tools/install test)", program.display());
            return None;
        }
        let folder = tempdir().expect("a temporary folder");
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("a folder for the data");
        match kind {
            DatabaseKind::Postgres => initialise_postgres(folder.path(), &data, &program),
            DatabaseKind::Mariadb => initialise_mariadb(&data, &program),
            DatabaseKind::Redis => {}
        }
        let settings = settings.iter().map(ToString::to_string).collect();
        let mut database = Self { kind, folder, port: free_port(), settings, child: None };
        database.start_again();
        Some(database)
    }

    /// The URL of one of its [`SPACES`] databases.
    pub fn url(&self, space: usize) -> String {
        let port = self.port;
        match self.kind {
            DatabaseKind::Postgres => format!("postgres://postgres@127.0.0.1:{port}/kendall_{space}"),
            DatabaseKind::Mariadb => format!("mysql://root@127.0.0.1:{port}/kendall_{space}"),
            DatabaseKind::Redis => format!("redis://127.0.0.1:{port}/{space}"),
        }
    }

    /// The folder of everything that the server stores and logs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills the server and all processes that it has started with SIGKILL.
    ///
    /// # Panics
    /// Where they do not end.
    pub fn kill(&mut self) {
        let children = self.kill_all();
        // They hold the port and shared memory until they have ended.
        wait_until("the server's processes have ended", || children.iter().all(|id| state_of(*id).is_none()));
    }

    /// Kills the server without waiting for the processes that it has started, and returns those.
    fn kill_all(&mut self) -> Vec<u32> {
        let Some(mut child) = self.child.take() else { return Vec::new() };
        let children = children_of(child.id());
        let _ = child.kill();
        let _ = child.wait();
        for id in &children {
            let id = i32::try_from(*id).ok().and_then(Pid::from_raw);
            let _ = id.map(|id| kill_process(id, Signal::KILL));
        }
        children
    }

    /// Stops the server's processes without ending them: it does not answer until [`Database::resume`].
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Continues a paused server.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let Some(child) = &self.child else { return };
        let ids = std::iter::once(child.id()).chain(children_of(child.id()));
        for id in ids.filter_map(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            let _ = kill_process(id, signal);
        }
    }

    /// Starts the server again with its existing data, if it is not running, and waits until it listens.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn start_again(&mut self) {
        if self.child.is_some() {
            return;
        }
        let log = fs::File::create(self.folder.path().join("log")).expect("a file for the server's messages");
        let mut command = self.command();
        command
            .args(&self.settings)
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("a descriptor"))
            .stdout(log);
        self.child = Some(command.spawn().expect("the server can be started"));
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let has_ended = self.child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)));
            if has_ended || begun.elapsed() > LIMIT {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                panic!("{:?} does not listen:\n{log}", self.kind);
            }
            sleep(Duration::from_millis(5));
        }
    }

    fn command(&self) -> Command {
        let (folder, port) = (self.folder.path(), self.port.to_string());
        let data = folder.join("data");
        let mut command = Command::new(program(self.kind));
        match self.kind {
            DatabaseKind::Postgres => {
                as_postgres(&mut command);
                command.arg("-D").arg(data).args(["-h", "127.0.0.1", "-p", &port, "-k", ""]);
                // A recovery flushes the whole file system in one call, instead of thousands of files.
                command.args(["-c", "shared_buffers=16MB", "-c", "recovery_init_sync_method=syncfs"]);
                // In its folder, because a server that is killed removes nothing from /dev/shm.
                command.args(["-c", "dynamic_shared_memory_type=mmap"]);
            }
            DatabaseKind::Mariadb => {
                command.args(mariadb_options(&data)).arg("--bind-address=127.0.0.1");
                command.arg(format!("--port={port}")).arg(option("--socket", &folder.join("socket")));
            }
            DatabaseKind::Redis => {
                command.args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--dir"]).arg(data);
                command.args(["--appendonly", "yes", "--appendfsync", "always"]);
            }
        }
        command
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A panic here would hide the one of the test.
        if std::thread::panicking() {
            self.kill_all();
        } else {
            self.kill();
        }
    }
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

/// The server's program. Debian keeps PostgreSQL's outside the search path, in a folder for each version.
fn program(kind: DatabaseKind) -> PathBuf {
    match kind {
        DatabaseKind::Postgres => {
            let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
            let programs = versions.map(|version| version.path().join("bin/postgres"));
            programs.filter(|program| program.exists()).max().unwrap_or_else(|| "postgres".into())
        }
        DatabaseKind::Mariadb => {
            let program = Path::new("/usr/sbin/mariadbd");
            if program.exists() { program.into() } else { "mariadbd".into() }
        }
        DatabaseKind::Redis => "redis-server".into(),
    }
}

/// The statements that create the databases, one a line.
fn creations() -> String {
    (0..SPACES).map(|space| format!("CREATE DATABASE kendall_{space};\n")).collect()
}

/// Runs a server that reads statements and ends at the end of its input.
fn run_statements(mut command: Command) {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = command.spawn().expect("the server can be started");
    let mut input = server.stdin.take().expect("it is piped");
    input.write_all(creations().as_bytes()).expect("the server reads statements");
    drop(input);
    assert!(server.wait().expect("it is a child").success(), "databases cannot be created");
}

/// Options of every start of MariaDB with this data.
fn mariadb_options(data: &Path) -> [String; 6] {
    // Under any other user, root would have to give the folder away.
    let user = if geteuid().is_root() { "--user=root" } else { "--skip-symbolic-links" };
    let sizes = ["--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M"];
    [
        "--no-defaults".to_owned(),
        "--skip-grant-tables".to_owned(),
        user.to_owned(),
        option("--datadir", data),
        sizes[0].to_owned(),
        sizes[1].to_owned(),
    ]
}

/// Creates the files of a server, and its databases. A server that created them at its first start would not start again after a
/// kill.
fn initialise_mariadb(data: &Path, program: &Path) {
    let mut command = Command::new(program);
    command.args(mariadb_options(data)).arg("--bootstrap");
    run_statements(command);
}

/// PostgreSQL does not run as root.
fn as_postgres(command: &mut Command) {
    if let Some((user, group)) = postgres_ids() {
        command.uid(user).gid(group);
    }
}

/// The user and group that run PostgreSQL in place of root: `postgres`, otherwise a user without rights. `None` for any other
/// user.
fn postgres_ids() -> Option<(u32, u32)> {
    if !geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("the list of users");
    let ids = |wanted: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(wanted))?;
        let mut fields = line.split(':').skip(2).map(str::parse);
        Some((fields.next()?.ok()?, fields.next()?.ok()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).expect("there is a user without rights"))
}

/// Creates the files of a server, and its databases.
fn initialise_postgres(folder: &Path, data: &Path, program: &Path) {
    if let Some((user, group)) = postgres_ids() {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("the folder is ours");
        chown(data, Some(user), Some(group)).expect("root may give a folder away");
    }
    let mut command = Command::new(program.with_file_name("initdb"));
    as_postgres(&mut command);
    command.args(["-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"]);
    let made = command.arg(data).current_dir("/").output().expect("initdb is beside postgres");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut command = Command::new(program);
    as_postgres(&mut command);
    command.args(["--single", "-F", "-D"]).arg(data).arg("postgres").current_dir("/");
    run_statements(command);
}

/// The state and the parent of a process, unless it has ended.
fn state_of(id: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before it may contain spaces and parentheses.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != 'Z').then_some((state, parent))
}

/// The processes that a process has started.
fn children_of(id: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|child| state_of(*child).is_some_and(|(_, parent)| parent == id)).collect()
}
