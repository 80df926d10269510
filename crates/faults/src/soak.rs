//! The soak: loads every server for an hour at a moderate rate, from a fixed seed, while short clients come and go and others send
//! noise, and watches memory, descriptors, threads, response times, logs and stores. It also loads nginx, for the memory of the
//! load generator.

mod load;
mod page;
mod verdict;
mod watch;

use std::env::current_exe;
use std::fs::write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use kendall_stats::quantity::positive_seconds;
use kendall_testbed::{has_peer, tempdir};

pub use self::verdict::{Bin, Drift, Measured};
pub use self::watch::{Machine, Sample};
use crate::subjects::{NGINX, Outcome, Requests, Running, SUBJECTS, Scene, Subject};

/// The word for a soak on the command line.
pub const WORD: &str = "soak";
/// The most samples, and the shortest time between two.
const MOST_SAMPLES: f64 = 720.0;
const LEAST_GAP_S: f64 = 0.1;
/// How long descriptors and threads have to stay the same before they count, and how long to wait for that.
const STEADY: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(90);
/// The time from one short client to the next.
const SHORT_CLIENTS: f64 = 1.0 / 15.0;
/// The load before the first count, which opens what stays open.
const FIRST_LOAD: f64 = 0.02;

/// The requests a second of each system: on two cores, a release build takes less than a twentieth of the machine for one, with
/// its generator.
const RATES: [(&str, f64); 17] = [
    ("reverse", 50.0),
    ("recover", 1.0),
    ("textsearch", 10.0),
    ("hold", 100.0),
    ("chat", 5.0),
    ("chat-postgres", 5.0),
    ("chat-mariadb", 5.0),
    ("chat-redis", 5.0),
    ("transport", 10.0),
    ("curve", 0.5),
    ("copy", 0.5),
    ("shell", 0.5),
    ("tunnel", 0.5),
    ("web", 10.0),
    ("cluster", 1.0),
    ("agents", 0.2),
    ("nginx", 2_000.0),
];
/// The rate of nginx if nothing else is loaded.
const NGINX_ALONE: f64 = 20_000.0;

/// A soak.
#[derive(Clone, Debug)]
pub struct Soak {
    /// The program `kendall`.
    pub program: PathBuf,
    /// How long each system is loaded.
    pub duration: Duration,
    /// The seed of the loads and of the noise.
    pub seed: u64,
    /// Whether systems are loaded at the same time.
    pub side_by_side: bool,
    /// The process whose descendants are not other programs.
    pub root: u32,
}

/// A system with what was measured: nothing where its peer is not installed.
pub type Soaked = (&'static Subject, Result<Option<Measured>, String>);

/// Runs `kendall-faults soak [--program KENDALL] [--for 1h] [--seed 1] [--one-by-one] [SYSTEM...]`: all systems and docs/soak.md if
/// none is named. Returns the number of problems.
///
/// # Errors
/// Fails on arguments that it cannot read, and where the page cannot be written.
pub fn run(arguments: &[String]) -> Result<usize, String> {
    let mut soak = Soak {
        program: current_exe().map_err(|error| error.to_string())?.with_file_name("kendall"),
        duration: Duration::from_secs(3600),
        seed: 1,
        side_by_side: true,
        root: std::process::id(),
    };
    let (mut names, mut arguments) = (Vec::new(), arguments.iter());
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--program" => soak.program = value()?.into(),
            "--for" => {
                soak.duration =
                    Duration::from_secs_f64(positive_seconds(value()?).map_err(|why| format!("--for {why}"))?)
            }
            "--seed" => soak.seed = value()?.parse().map_err(|_| "--seed needs a number")?,
            "--root" => soak.root = value()?.parse().map_err(|_| "--root needs the number of a process")?,
            "--one-by-one" => soak.side_by_side = false,
            option if option.starts_with('-') => {
                return Err(format!("{option} is not an option of the soak"));
            }
            name => names.push(name),
        }
    }
    let all = SUBJECTS.iter().filter(|subject| !matches!(subject.requests, Requests::Inside)).chain([&NGINX]);
    if let Some(unknown) = names.iter().find(|name| all.clone().all(|subject| subject.name != **name)) {
        return Err(format!("{unknown} is not a system of the soak"));
    }
    let chosen: Vec<_> = all.filter(|subject| names.is_empty() || names.contains(&subject.name)).collect();
    if let ([subject], true) = (&chosen[..], soak.root != std::process::id()) {
        let measured = soak.measure(subject)?;
        println!("{}", serde_json::to_string(&measured).map_err(|error| error.to_string())?);
        return Ok(0);
    }
    let soaked = soak.all(&chosen);
    let page = page::page(&soak, &soaked);
    print!("{page}");
    if names.is_empty() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/soak.md");
        write(&path, &page).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(soaked.iter().map(|(_, result)| page::problems(result).len()).sum())
}

impl Soak {
    /// Loads these systems, at the same time or one after the other.
    pub fn all(&self, subjects: &[&'static Subject]) -> Vec<Soaked> {
        let one = |subject: &'static Subject| {
            let alone = subject.name == "tunnel" && self.root == std::process::id();
            (subject, if alone { self.in_namespaces(subject) } else { self.measure(subject) })
        };
        if !self.side_by_side {
            return subjects.iter().map(|subject| one(subject)).collect();
        }
        thread::scope(|scope| {
            let threads: Vec<_> = subjects.iter().map(|subject| scope.spawn(move || one(subject))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a soak does not panic")).collect()
        })
    }

    fn rate(&self, subject: &Subject) -> f64 {
        if subject.name == NGINX.name && !self.side_by_side {
            return NGINX_ALONE;
        }
        RATES.iter().find(|(name, _)| *name == subject.name).map_or(1.0, |(_, rate)| *rate)
    }

    /// Measures a system in a process with its own network, in which it may make interfaces.
    fn in_namespaces(&self, subject: &Subject) -> Result<Option<Measured>, String> {
        let script = r#"mount -t tmpfs none /run && ip link set lo up && exec "$0" "$@""#;
        let mut command = Command::new("unshare");
        command.args([
            "--user",
            "--map-root-user",
            "--net",
            "--mount",
            "--kill-child",
            "--fork",
            "--",
            "sh",
            "-c",
            script,
        ]);
        command
            .arg(current_exe().map_err(|error| error.to_string())?)
            .arg(WORD)
            .arg("--program")
            .arg(&self.program);
        command.args([
            "--for",
            &format!("{}s", self.duration.as_secs_f64()),
            "--seed",
            &self.seed.to_string(),
        ]);
        command.args(["--root", &self.root.to_string(), subject.name]);
        let output = command.output().map_err(|error| format!("unshare: {error}"))?;
        serde_json::from_slice(&output.stdout)
            .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Loads a system and watches it. `None` where its peer is not installed.
    fn measure(&self, subject: &'static Subject) -> Result<Option<Measured>, String> {
        if subject.name == NGINX.name && !has_peer("nginx", "-v") {
            return Ok(None);
        }
        let folder = tempdir().map_err(|error| error.to_string())?;
        let scene = Scene::new(&self.program, folder.path())?;
        let Some(mut running) = Running::start(subject, scene)? else { return Ok(None) };
        let client = running.client();
        let first = client.load(self.rate(subject), self.duration.mul_f64(FIRST_LOAD)).finish();
        if first.right == 0 {
            return Err(format!("its first load failed: {:?}", first.failure));
        }
        let mut measured = Measured {
            length_s: self.duration.as_secs_f64(),
            cache_bytes: subject.cache_bytes,
            ..Measured::default()
        };
        measured.idle.0 = idle(&mut running, |_| true);
        let begun = Instant::now();
        let over = AtomicBool::new(false);
        let generator = load::Generator::start(subject, running.scene(), self.rate(subject), self)?;
        let clients = if generator.is_some() { SHORT_CLIENTS } else { self.rate(subject) };
        let scene = running.scene().clone();
        let (outcomes, loaded) = thread::scope(|scope| {
            let clients = scope.spawn(|| load::short_clients(&client, clients, begun, &over));
            scope.spawn(|| load::noise(subject, &scene, self.seed, &over));
            while begun.elapsed() < self.duration {
                let mut sample = watch::held(&running.ids());
                sample.at_s = begun.elapsed().as_secs_f64();
                sample.generator_bytes =
                    generator.as_ref().map_or(0, |it| watch::held(&[it.id()]).memory_bytes);
                sample.machine = Machine::now(self.root);
                measured.samples.push(sample);
                sleep(Duration::from_secs_f64((measured.length_s / MOST_SAMPLES).max(LEAST_GAP_S)));
            }
            let loaded = generator.map(load::Generator::finish);
            over.store(true, Relaxed);
            (clients.join().expect("clients do not panic"), loaded)
        });
        match loaded {
            Some(loaded) => measured.add_load(loaded?),
            None => measured.add_bins(&outcomes),
        }
        for (_, _, outcome) in outcomes {
            match outcome {
                Outcome::Right => measured.answered += 1,
                Outcome::Wrong(why) => (measured.wrong, measured.failure) = (measured.wrong + 1, Some(why)),
                Outcome::Failed(why) => {
                    (measured.failed, measured.failure) = (measured.failed + 1, Some(why))
                }
            }
        }
        let before = measured.idle.0;
        let as_before = |now: &Sample| now.descriptors <= before.descriptors && now.threads <= before.threads;
        measured.idle.1 = idle(&mut running, as_before);
        Ok(Some(measured))
    }
}

/// What a system holds without a client, once its descriptors and threads stay the same and satisfy a condition.
fn idle(running: &mut Running, holds: impl Fn(&Sample) -> bool) -> Sample {
    let begun = Instant::now();
    let (mut last, mut since) = (watch::held(&running.ids()), begun);
    while begun.elapsed() < PATIENCE && (since.elapsed() < STEADY || !holds(&last)) {
        sleep(STEADY / 20);
        let now = watch::held(&running.ids());
        if (now.descriptors, now.threads) != (last.descriptors, last.threads) {
            since = Instant::now();
        }
        last = now;
    }
    let scene = running.scene();
    Sample {
        log_bytes: watch::size(&scene.path("log")),
        store_bytes: watch::size(&scene.path("disk")),
        ..last
    }
}
