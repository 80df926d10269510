//! The files of `deploy/` are valid, and agree with the page.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kendall_testbed::tempdir;
use saphyr::{LoadableYamlNode as _, Yaml};

fn files(folder: &str, extension: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect();
    assert!(!files.is_empty());
    files
}

/// The settings of a unit by section and name.
fn unit(text: &str) -> BTreeMap<(String, String), String> {
    let (mut section, mut settings) = (String::new(), BTreeMap::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => section = name.to_owned(),
            None => {
                let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("not a setting: {line}"));
                assert!(!section.is_empty() && name.chars().all(char::is_alphanumeric), "{line}");
                settings.insert((section.clone(), name.to_owned()), value.to_owned());
            }
        }
    }
    settings
}

#[test]
fn units_are_valid_and_have_no_rights() {
    let environment = include_str!("../../../../deploy/systemd/cluster.env");
    let known: Vec<&str> = environment.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    let folder = tempdir().unwrap();
    let units = files("systemd", "service");
    assert_eq!(units.len(), 3);
    for (path, text) in &units {
        let settings = unit(text);
        let setting = |section: &str, name: &str| settings[&(section.to_owned(), name.to_owned())].as_str();
        assert_eq!(setting("Service", "DynamicUser"), "yes");
        assert_eq!(setting("Service", "NoNewPrivileges"), "yes");
        assert_eq!(setting("Service", "ProtectSystem"), "strict");
        assert_eq!(setting("Install", "WantedBy"), "multi-user.target");
        let command = setting("Service", "ExecStart");
        assert!(command.starts_with("/usr/local/bin/kendall "), "{command}");
        for word in command.split(' ').filter_map(|word| word.strip_prefix('$')) {
            assert!(known.contains(&word.trim_matches(['{', '}'])), "{word} is not in cluster.env");
        }
        // systemd rejects a unit whose program does not exist.
        let installed = text.replace("/usr/local/bin/kendall", "/bin/true");
        fs::write(folder.path().join(path.file_name().unwrap()), installed).unwrap();
    }
    let written = units.iter().map(|(path, _)| folder.path().join(path.file_name().unwrap()));
    let Ok(verified) = Command::new("systemd-analyze").args(["verify", "--man=no"]).args(written).output()
    else {
        return;
    };
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
}

#[test]
fn manifests_are_valid_and_name_what_is_there() {
    let mut kinds = Vec::new();
    for (path, text) in files("kubernetes", "yaml") {
        for document in
            Yaml::load_from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        {
            let kind = document["kind"].as_str().expect("every object has a kind").to_owned();
            assert!(document["apiVersion"].as_str().is_some());
            let name = ["name", "generateName"]
                .map(|key| document["metadata"].as_mapping_get(key).and_then(Yaml::as_str));
            assert!(name.iter().any(Option::is_some), "{kind} has no name");
            if kind != "Service" {
                let pod = &document["spec"]["template"]["spec"];
                let image = pod["containers"][0]["image"].as_str().unwrap();
                assert!(["kendall", "docker.io/library/nats:2.10"].contains(&image), "{image}");
            }
            kinds.push(kind);
        }
    }
    kinds.sort();
    assert_eq!(kinds, ["Deployment", "Job", "Service", "Service", "StatefulSet", "StatefulSet"]);
}

#[test]
fn the_compose_file_is_valid() {
    let (_, text) = files("compose", "yaml").remove(0);
    let file = Yaml::load_from_str(&text).unwrap().remove(0);
    for service in ["nats", "serve", "worker"] {
        assert!(file["services"][service]["image"].as_str().is_some(), "{service}");
    }
    assert_eq!(file["services"]["worker"]["deploy"]["replicas"].as_integer(), Some(2));
    let context = file["services"]["serve"]["build"]["dockerfile"].as_str().unwrap();
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(context).exists());
}
