//! A campaign of a few cases, and a server that loses what it acknowledged.

use std::fs;
use std::process::Command;

use kendall_faults::case::{self, CaseResult};
use kendall_faults::faults::fault;
use kendall_faults::subjects::{Part, Scene, Subject, subject};
use kendall_testbed::hostile::Draw;

use crate::kendall;

#[test]
fn a_short_campaign_passes_and_does_not_repeat_its_cases() {
    let Some(kendall) = kendall() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (results, page) = (folder.path().join("results.jsonl"), folder.path().join("faults.md"));
    let campaign = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kendall-faults"));
        command.arg("--program").arg(&kendall).arg("--results").arg(&results).arg("--page").arg(&page);
        command.args(["--seed", "1", "--cases", "4", "--systems", "hold"]);
        command.args(["--faults", "server-killed client-stopped half-open random-bytes"]);
        let output = command.output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
        printed
    };
    let printed = campaign();
    assert_eq!(printed.lines().count(), 4, "{printed}");
    // Without namespaces, cases are left out.
    assert!(
        printed.lines().all(|line| line.contains("recovered in") || line.contains("left out")),
        "{printed}"
    );
    assert_eq!(campaign(), "", "all cases have results");
    assert!(fs::read_to_string(page).unwrap().starts_with("# Faults"));
}

#[test]
fn an_unknown_fault_is_named_with_those_there_are() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kendall-faults"));
    // Any program serves, since no case starts.
    command.args(["--program", env!("CARGO_BIN_EXE_kendall-faults"), "--faults", "disk-full"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("disk-full is not one of") && said.contains("full-disk"), "{said}");
}

/// Accounts in memory do not survive a kill of their server.
#[test]
fn lost_accounts_are_found() {
    let Some(kendall) = kendall() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("disk")).unwrap();
    let forgetful = Subject {
        parts: |scene| {
            let options = ["--store", "memory:", "--keys", "keys", "--limits", "off"];
            let command =
                scene.kendall([&["serve", "chat"], &options[..], &["--listen", &scene.address]].concat());
            vec![Part { role: "server", command, ready: "listening on" }]
        },
        ..*subject("chat").unwrap()
    };
    let scene = Scene::new(&kendall, folder.path()).unwrap();
    let mut draw = Draw::of(1, "campaign", 0);
    let result = case::run(Box::leak(forgetful.into()), fault("server-killed").unwrap(), scene, &mut draw);
    assert!(matches!(&result, CaseResult::Failed(why) if why.contains("cannot log in")), "{result:?}");
}
