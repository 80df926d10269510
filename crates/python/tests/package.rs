//! The tests of the package, in Python, with the interpreter of the system.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the programs and libraries that were built with this test.
fn built() -> PathBuf {
    let test = env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().to_owned()
}

/// The package as it would be installed: its Python files, and its compiled part.
fn install(into: &Path) {
    let package = into.join("kendall");
    fs::create_dir_all(&package).unwrap();
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/python/kendall")).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| ["py", "pyi", "typed"].iter().any(|known| extension == *known))
        {
            fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    fs::copy(built().join("deps/lib_kendall.so"), package.join("_kendall.abi3.so")).unwrap();
}

#[test]
fn the_tests_of_the_package_pass() {
    if !kendall_testbed::has_peer("python3", "--version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    install(folder.path());
    let mut tests = Command::new("python3");
    tests.args(["-m", "unittest", "discover", "--verbose", "--start-directory"]);
    tests.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python"));
    tests.env("PYTHONPATH", folder.path()).env("PYTHONDONTWRITEBYTECODE", "1").current_dir(folder.path());
    // The command is built where the whole workspace is.
    let command = built().join("kendall");
    if command.exists() {
        tests.env("KENDALL", command);
    } else {
        kendall_testbed::left_out("the command kendall is not built, so its runs are not tested from Python");
    }
    let output = tests.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
