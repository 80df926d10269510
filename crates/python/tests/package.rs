//! The tests of the package, in Python, with the interpreter of the system. The package is installed from a wheel like that of
//! `tools/wheel`, with what cargo built for these tests inside.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kendall_testbed::{has_peer, left_out};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The folder of the programs and libraries that were built with this test.
fn built() -> PathBuf {
    let test = env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().to_owned()
}

/// Runs a program that must succeed.
#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A built program or library without its debug information.
fn strip(built: &Path, into: &Path) {
    run(Command::new("strip").arg("-o").arg(into).arg(built));
}

/// The wheel in a folder: all that pyproject.toml names, with the command if it is built.
fn wheel(folder: &Path) -> PathBuf {
    let project: toml::Table =
        fs::read_to_string(format!("{CRATE}/pyproject.toml")).unwrap().parse().unwrap();
    let (package, about) = (folder.join("kendall"), folder.join(format!("kendall-{VERSION}.dist-info")));
    fs::create_dir_all(package.join("bin")).unwrap();
    fs::create_dir(&about).unwrap();
    let source = project["tool"]["maturin"]["python-source"].as_str().unwrap();
    for entry in fs::read_dir(format!("{CRATE}/{source}/kendall")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    let module = project["tool"]["maturin"]["module-name"].as_str().unwrap().replace('.', "/");
    strip(&built().join("deps/lib_kendall.so"), &folder.join(format!("{module}.abi3.so")));
    // The command is built where the whole workspace is.
    let command = built().join("kendall");
    if command.exists() {
        let packed = &project["tool"]["maturin"]["include"][0]["path"].as_str().unwrap()[source.len() + 1..];
        let unpacked = folder.join(packed.strip_suffix(".xz").unwrap());
        strip(&command, &unpacked);
        run(Command::new("xz").args(["-0", "--threads=0"]).arg(unpacked));
    } else {
        left_out("the command kendall is not built, so its runs are not tested from Python");
    }
    let scripts = &project["project"]["scripts"];
    let tag = format!("cp310-abi3-linux_{}", env::consts::ARCH);
    let texts = [
        ("METADATA", format!("Metadata-Version: 2.1\nName: kendall\nVersion: {VERSION}\n")),
        ("WHEEL", format!("Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")),
        (
            "entry_points.txt",
            format!("[console_scripts]\nkendall = {}\n", scripts["kendall"].as_str().unwrap()),
        ),
        // The installer lists what it installs.
        ("RECORD", String::new()),
    ];
    for (name, text) in texts {
        fs::write(about.join(name), text).unwrap();
    }
    let wheel = folder.join(format!("kendall-{VERSION}-{tag}.whl"));
    run(Command::new("python3").args(["-m", "zipfile", "-c"]).args([&wheel, &package, &about]));
    wheel
}

#[test]
fn the_tests_of_the_package_pass() {
    if !has_peer("python3", "--version") || !has_peer("xz", "--version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let environment = folder.path().join("environment");
    // The tests use what the interpreter of the system has: Polars, SciPy.
    let made =
        Command::new("python3").args(["-m", "venv", "--system-site-packages"]).arg(&environment).output();
    if !made.unwrap().status.success() {
        return left_out("python3 makes no virtual environment (python3-venv), so the package is not tested");
    }
    let install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--force-reinstall"];
    let python = environment.join("bin/python");
    run(Command::new(&python).args(install).arg(wheel(folder.path())));
    let mut tests = Command::new(&python);
    tests.args(["-m", "unittest", "discover", "--verbose", "--start-directory"]);
    tests.arg(format!("{CRATE}/tests/python"));
    tests.env("PYTHONDONTWRITEBYTECODE", "1").env("XDG_CACHE_HOME", folder.path().join("cache"));
    run(tests.env_remove("KENDALL").env_remove("PYTHONPATH").current_dir(&environment));
}
