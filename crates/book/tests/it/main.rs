//! The book is built without a network, has each page once, and its links lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kendall_book::{read, root};

/// The pages at the root that the book has, too.
const OF_ROOT: [&str; 4] = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
/// The page that `tools/book.py` makes of the notebook.
const NOTEBOOK: &str = "python-tutorial.md";

/// The files below a folder with this ending, by their paths from there.
fn files(folder: &Path, ending: &str) -> BTreeSet<String> {
    fn add(root: &Path, folder: &Path, ending: &str, found: &mut BTreeSet<String>) {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                add(root, &path, ending, found);
            } else if path.to_str().unwrap().ends_with(ending) {
                found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = BTreeSet::new();
    add(folder, folder, ending, &mut found);
    found
}

#[test]
fn the_contents_have_each_page_once() {
    let text = read("mkdocs.yml");
    let (_, contents) = text.split_once("\nnav:\n").unwrap();
    let listed: Vec<&str> = contents
        .lines()
        .filter_map(|line| line.split(' ').next_back())
        .filter(|word| word.ends_with(".md"))
        .collect();
    let mut pages = files(&root().join("docs"), ".md");
    pages.extend(OF_ROOT.iter().chain([&NOTEBOOK]).map(|&name| name.to_owned()));
    assert_eq!(
        listed.len(),
        listed.iter().collect::<BTreeSet<_>>().len(),
        "a page is listed twice: {listed:?}"
    );
    assert_eq!(listed.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), pages);
}

/// The values of an attribute in HTML.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    html.split(&format!("{attribute}=\"")).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part.as_os_str().to_str() {
            Some("..") => drop(parts.pop()),
            Some(".") => {}
            _ => parts.push(part),
        }
    }
    parts
}

#[test]
fn the_book_is_whole_and_needs_no_network() {
    if !kendall_testbed::has_peer("mkdocs", "--version") {
        return;
    }
    let folder = kendall_testbed::tempdir().unwrap();
    let book = folder.path().join("book");
    let built = Command::new("mkdocs")
        .args(["build", "--strict", "--quiet", "--site-dir"])
        .arg(&book)
        .current_dir(root())
        .output();
    let built = built.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // Its links are those of a server's root.
    let pages = files(&book, ".html").into_iter().filter(|name| name != "404.html");
    let pages: BTreeMap<PathBuf, String> = pages
        .map(|name| book.join(name))
        .map(|path| (path.clone(), fs::read_to_string(&path).unwrap()))
        .collect();
    let mut wrong = BTreeSet::new();
    for (path, html) in &pages {
        let page = path.strip_prefix(&book).unwrap().display();
        let loaded = html.split('<').filter(|tag| tag.starts_with("link ") || tag.contains("src="));
        wrong.extend(
            loaded
                .filter(|tag| tag.contains("://") || tag.contains("\"//"))
                .map(|tag| format!("{page} loads {tag}")),
        );
        for link in values(html, "href").into_iter().chain(values(html, "src")) {
            if link.contains(':') {
                continue;
            }
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { path.clone() } else { plain(&path.parent().unwrap().join(file)) };
            let has_place = || pages.get(&target).is_none_or(|html| values(html, "id").contains(&place));
            if !target.exists() || !(place.is_empty() || has_place()) {
                wrong.insert(format!("{page} links to {link}"));
            }
        }
    }
    assert!(pages.len() > 50 && wrong.is_empty(), "{} pages: {wrong:#?}", pages.len());
}
