//! Valid input of every kind, made once for all cases of a kind: they damage copies of it.

use std::fs;
use std::path::{Path, PathBuf};

use kendall_testbed::{TempDir, tempdir};

use super::process::kendall;
use super::secrets::SECRET;
use super::server::Server;
use super::world::World;

/// What is made once.
pub(super) struct Fixtures {
    prepared: TempDir,
    world: World,
    /// The public key of `key`.
    pub(super) key: String,
}

const EXPERIMENT: &str = "name = \"x\"\nquestion = \"How long?\"\nrepeats = 1\nseed = 1\ndisturbed-over = \"100%\"\n\
     [system]\nname = \"hold\"\nmean = \"2ms\"\nworkers = 2\nroom = 50\n[load]\narrivals = \"poisson\"\nrate = [50, 100]\n\
     duration = \"200ms\"\nwarmup = \"0s\"\n[expect]\nmean = \"<1s\"\n[[model]]\nstation = \"M/M/2\"\n";

const NETWORK: &str = "[users]\ncount = 5\nthink = { law = \"exponential\", mean_s = 1.0 }\nenter = { cpu = 1.0 }\n\
     [[station]]\nname = \"cpu\"\nservers = 2\nservice = { law = \"exponential\", mean_s = 0.005 }\n\
     [[station]]\nname = \"disk\"\nservice = { law = \"exponential\", mean_s = 0.02 }\n\
     [routing]\ncpu = { disk = 0.5 }\ndisk = { cpu = 1.0 }\n";

const TABLE: &str = "rate_per_s,servers,response_mean_ms,response_half_width_ms,requests\n\
     10,2,24.8,0.1,1000\n20,2,25.1,0.1,2000\n40,2,27.7,0.2,4000\n60,2,33.3,0.4,6000\n";

const BATCH: &str = "model,inputs,quantity\nmmm,\"{\"\"lam\"\": 20, \"\"mu\"\": 4.2, \"\"m\"\": 6}\",R_p99\n\
     mg1,\"{\"\"lam\"\": 0.8, \"\"service\"\": {\"\"dist\"\": \"\"uniform\"\", \"\"a\"\": 0, \"\"b\"\": 2}}\",Wq_mean\nmm1,\"{\"\"lam\"\": 3, \"\"mu\"\": 4}\",R_mean\n";

const REQUESTS: &str = "[[request]]\nname = \"one\"\nweight = 3\npath = \"/one\"\n[[request]]\nname = \"two\"\nweight = 1\nmethod = \"POST\"\n\
     path = \"/two\"\nbody = '{\"item\": {random:1000}}'\nexpect-status = \"200-299\"\nheaders = { Accept = \"text/html\" }\n";

impl Fixtures {
    /// Files that are written by hand, a key and an encrypted file.
    pub(super) fn new() -> Self {
        let prepared = tempdir().unwrap();
        let files = [
            ("x.toml", EXPERIMENT),
            ("net.toml", NETWORK),
            ("table.csv", TABLE),
            ("batch.csv", BATCH),
            ("requests.toml", REQUESTS),
            (
                "requests.jsonl",
                "{\"path\":\"/one\",\"weight\":2}\n{\"path\":\"/two\",\"method\":\"POST\",\"body\":\"x\"}\n",
            ),
            ("numbers", "10.5\n11.25\n10.75\n11\n10.5\n"),
            ("instants", "0.1\n0.25\n0.5\n0.75\n1.5\n"),
            ("words.txt", "password\nsesame\nabc\n"),
            ("lines.txt", "0@@@the first line\n1@@@a second line\n0@@@the third\n"),
            ("notes", "twelve bytes"),
            ("password", "correct horse\n"),
        ];
        for (name, content) in files {
            fs::write(prepared.path().join(name), content).unwrap();
        }
        fs::write(prepared.path().join("headers"), format!("X-Api-Key: {SECRET}-of-a-file\n")).unwrap();
        fs::write(prepared.path().join("token"), format!("{SECRET}-of-the-page\n")).unwrap();
        let mut fixtures = Self { world: World::new(prepared.path()), prepared, key: String::new() };
        fixtures.key = fixtures.make(&["curve", "keygen", "key"]).trim().to_owned();
        fs::write(fixtures.path().join("authorized"), format!("{} ann\n", fixtures.key)).unwrap();
        fs::write(
            fixtures.path().join("hosts.toml"),
            format!(
                "[host]\nname = \"server.example\"\nkey = \"{}\"\naddress = \"127.0.0.1:1\"\n",
                fixtures.key
            ),
        )
        .unwrap();
        fixtures.make(&["recover", "encrypt", "notes", "--password", "abc", "--out", "notes.enc"]);
        fixtures
    }

    /// As [`new`](Self::new), with the folder `run` of an experiment and `record` of a load.
    pub(super) fn with_records() -> Self {
        let fixtures = Self::new();
        fixtures.make(&["run", "x.toml", "--results", "results"]);
        let experiment = fixtures.path().join("results/x");
        let run = fs::read_dir(&experiment).unwrap().next().unwrap().unwrap().path();
        fs::rename(run, fixtures.path().join("run")).unwrap();
        fs::remove_dir_all(fixtures.path().join("results")).unwrap();
        let server = fixtures.hold();
        let url = format!("hold://{}", server.address);
        fixtures.make(&["load", &url, "--rate", "100", "--requests", "20", "--record", "record", "--quiet"]);
        server.stop().unwrap();
        fixtures
    }

    /// A server for cases that need a sound one.
    pub(super) fn hold(&self) -> Server {
        Server::start(
            self.path(),
            &["serve", "hold", "--listen", "127.0.0.1:0", "--mean", "1ms", "--workers", "4"],
        )
    }

    /// The folder of all that was made.
    pub(super) fn path(&self) -> &Path {
        self.prepared.path()
    }

    /// A separate world for a case.
    pub(super) fn world(&self) -> World {
        World::new(self.path())
    }

    /// All files of a folder of the fixtures, named from there.
    pub(super) fn files(&self, folder: &str) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![PathBuf::from(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.path().join(&folder)).unwrap().map(Result::unwrap) {
                let name = folder.join(entry.file_name());
                if entry.path().is_dir() { folders.push(name) } else { files.push(name) }
            }
        }
        files.sort();
        files
    }

    fn make(&self, arguments: &[&str]) -> String {
        let output = kendall(&self.world).current_dir(self.path()).args(arguments).output().unwrap();
        // 3 where a busy machine leaves something undecided.
        assert!(
            matches!(output.status.code(), Some(0 | 3)),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }
}
