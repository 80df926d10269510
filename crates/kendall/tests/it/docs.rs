//! The commands of the documentation: each is run, and ends as it should; what it prints and draws must be what stands there, unless
//! the page says that it varies. `KENDALL_DOCS=write cargo test --package kendall --test it docs` writes the pages anew.
//! `crates/book/src/page.rs` has the marks by which a page says what to do with its commands.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex};
use std::thread;

use kendall_archive::series::Layout;
use kendall_book::{Page, Terminal, fields, folder, read, refresh, root, with_part};
use kendall_testbed::unless_disturbed;
use tempfile::TempDir;

/// Why a page says `<!-- not run: … -->`.
const NOT_RUN: [(&str, &str); 10] = [
    ("card", "it needs a graphics card"),
    ("compiles", "it compiles what these tests have compiled"),
    ("databases", "it needs four servers of databases; crates/accounts tests them"),
    (
        "keys",
        "it has keys that a reader makes; curve.rs, curve_copy.rs and curve_shell.rs run the same with theirs",
    ),
    ("machines", "it needs several machines; crates/cluster and crates/agents test them as processes"),
    ("minutes", "it takes minutes"),
    ("peer", "it needs a program that Debian does not have, or that tests do not need otherwise"),
    ("placeholder", "it has a name that a reader replaces"),
    ("root", "it changes the network of the machine; crates/tunnel tests it in namespaces"),
    ("terminal", "it shows something to a person; chat.rs and web.rs run the same"),
];
/// The run that pages name.
const RUN: &str = "results/quickstart/2026-11-21T22-30-25Z";
/// Where commands write the pictures of a page.
const PICTURES: &str = "docs/queueing";
/// Pages that run at a time: most of their time is waiting for a measurement.
const AT_ONCE: usize = 4;

/// A folder for the commands of a page, with a place for pictures and a recorded run.
fn folder_of_a_page() -> TempDir {
    static RECORDED: LazyLock<TempDir> = LazyLock::new(|| {
        let folder = folder();
        // A rate that is not a share needs no calibration.
        let quick = "sed 's/^rate = .*/rate = 200/' experiments/quickstart.toml > quickstart.toml";
        let run = format!("```sh\n{quick}\nkendall run quickstart.toml\nmv results/quickstart/* {RUN}\n```");
        let run = Page::read(&run).unwrap();
        run.with(&terminal(&folder).run(&run)).unwrap();
        folder
    });
    let folder = folder();
    fs::create_dir_all(folder.path().join(PICTURES)).unwrap();
    let copied =
        Command::new("cp").arg("-r").arg(RECORDED.path().join("results")).arg(folder.path()).status();
    assert!(copied.unwrap().success());
    folder
}

fn terminal(folder: &TempDir) -> Terminal<'_> {
    Terminal { folder: folder.path(), program: Path::new(env!("CARGO_BIN_EXE_kendall")) }
}

fn run(name: &str) -> Result<(), String> {
    let text = read(name);
    let page = Page::read(&text).map_err(|why| format!("{name}: {why}"))?;
    for reason in page.reasons() {
        assert!(
            NOT_RUN.iter().any(|(known, _)| *known == reason),
            "{name}: {reason:?} is not a reason in NOT_RUN"
        );
    }
    if page.steps().next().is_none() {
        return Ok(());
    }
    let folder = folder_of_a_page();
    let fresh = page.with(&terminal(&folder).run(&page)).map_err(|why| format!("{name}: {why}"))?;
    refresh(name, &fresh)?;
    for picture in fs::read_dir(folder.path().join(PICTURES)).unwrap().map(|entry| entry.unwrap().path()) {
        let place = format!("{PICTURES}/{}", picture.file_name().unwrap().to_str().unwrap());
        refresh(&place, &fs::read_to_string(picture).unwrap())?;
    }
    Ok(())
}

#[test]
fn every_command_of_the_documentation_runs() {
    if !Terminal::is_possible() {
        return kendall_testbed::left_out("a network namespace cannot be made");
    }
    let mut pages = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/decisions"] {
        let entries = fs::read_dir(root().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        pages.extend(entries.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    let pages = Mutex::new(pages);
    let next = || pages.lock().unwrap().pop();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(page) = next() {
                    unless_disturbed(|| run(&page));
                }
            });
        }
    });
}

/// The rows of a table of columns.
fn columns(layout: &Layout) -> String {
    let labels = layout.labels.iter().map(|name| format!("| `{name}` | text |\n"));
    let quantities =
        layout.quantities.iter().map(|column| format!("| `{}` | {} |\n", column.name, column.meaning));
    format!(
        "{}\n\n| column | meaning |\n| --- | --- |\n{}",
        layout.about,
        labels.chain(quantities).collect::<String>()
    )
}

#[test]
fn the_reference_of_records_is_that_of_the_code() {
    let schema = |name: &str| fields(&read(&format!("docs/schema/{name}.schema.json")));
    let parts = [
        ("resources.parquet", columns(&kendall_probe::layout())),
        ("link.parquet", columns(&kendall_link::layout())),
        ("answer.json", schema("answer")),
        ("manifest.json", schema("manifest")),
    ];
    let page = "docs/metrics.md";
    let fresh = parts.iter().fold(read(page), |text, (name, fresh)| with_part(&text, name, fresh));
    refresh(page, &fresh).unwrap();
}
