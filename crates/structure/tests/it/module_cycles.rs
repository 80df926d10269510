//! No knots inside crates: where two modules use each other, a reader can understand neither alone.
//!
//! A *module* is a source file that the `mod` items of a crate reach; a module in braces belongs to its file. A module *uses*
//! another if its code, tests and comments apart, names an item that the other file defines. A re-export is followed to the
//! file that defines the item, and is itself no use. A *knot* is one of two things:
//!
//! 1. Siblings in a circle: of two modules of one parent, each with all that is below it, each uses the other, directly or
//!    through further siblings.
//! 2. A call back: a module calls a function that a module above it defines, which in turn uses the lower one. The types and
//!    constants of a module above are not a knot: they are the vocabulary that the lower modules share.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::fs;
use std::path::Path;
use std::process::Command;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde_json::{Value, json};

/// A module's path from its crate's root, the root itself empty.
type ModulePath = Vec<String>;

/// What one file says of other modules.
#[derive(Default)]
struct File {
    /// The names that its `use` items make, each with the path it stands for, as written.
    imports: Vec<(String, Vec<String>)>,
    /// The paths that its code names, as written; a path may be one name.
    named: HashSet<Vec<String>>,
    /// The paths of which it imports everything.
    globs: Vec<Vec<String>>,
    /// The names that it defines.
    defined: HashSet<String>,
    /// The modules that it declares, tests apart.
    children: Vec<String>,
}

/// The words before a name that is defined.
const DEFINERS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union"];

/// Whether an attribute's tokens are `cfg(…test…)`.
fn is_for_tests(attribute: &TokenStream) -> bool {
    let text = attribute.to_string().replace(' ', "");
    text.starts_with("cfg(test") || text.starts_with("cfg(all(test")
}

/// An item's tokens without those that only tests see.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_attribute = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '#');
        match tokens.peek() {
            Some(TokenTree::Group(group)) if is_attribute && group.delimiter() == Delimiter::Bracket => {
                let is_for_tests = is_for_tests(&group.stream());
                tokens.next();
                if is_for_tests {
                    skip_item(&mut tokens);
                }
            }
            _ => kept.push(token),
        }
    }
    kept
}

/// Drops tokens up to the end of an item: a semicolon, or braces unless they are those of a `use`.
fn skip_item(tokens: &mut impl Iterator<Item = TokenTree>) {
    let mut is_use = false;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => is_use |= ident == "use",
            TokenTree::Punct(punct) if punct.as_char() == ';' => return,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !is_use => return,
            _ => {}
        }
    }
}

impl File {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let tokens = text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut file = Self::default();
        file.scan(tokens);
        file
    }

    fn scan(&mut self, tokens: TokenStream) {
        let tokens = without_tests(tokens);
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.scan(group.stream()),
                TokenTree::Ident(ident) if ident == "use" => {
                    let length = tokens[at..].iter().position(is_semicolon).unwrap_or(1);
                    self.import(&[], &tokens[at + 1..at + length]);
                    at += length;
                }
                TokenTree::Ident(ident) if ident == "mod" && tokens.get(at + 2).is_some_and(is_semicolon) => {
                    self.children.push(tokens[at + 1].to_string());
                    at += 2;
                }
                // A visibility, such as pub(crate), is no use of a module.
                TokenTree::Ident(ident) if ident == "pub" => {
                    at += usize::from(matches!(tokens.get(at + 1), Some(TokenTree::Group(_))));
                }
                TokenTree::Ident(_) => {
                    if at > 0 && DEFINERS.contains(&tokens[at - 1].to_string().as_str()) {
                        self.defined.insert(tokens[at].to_string());
                    }
                    let is_member = at > 0 && is_punct(&tokens[at - 1], '.');
                    let (path, length) = path_at(&tokens[at..]);
                    if !is_member {
                        self.named.insert(path);
                    }
                    at += length - 1;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }

    /// Reads a tree of imports behind a prefix.
    fn import(&mut self, prefix: &[String], tree: &[TokenTree]) {
        for branch in tree.split(|token| is_punct(token, ',')).filter(|branch| !branch.is_empty()) {
            let mut path = prefix.to_vec();
            let mut alias = None;
            for (index, token) in branch.iter().enumerate() {
                match token {
                    TokenTree::Group(group) => {
                        self.import(&path, &group.stream().into_iter().collect::<Vec<_>>());
                        path.clear();
                    }
                    TokenTree::Ident(ident) if ident == "as" => {
                        alias = Some(branch[index + 1].to_string());
                        break;
                    }
                    TokenTree::Ident(ident) if ident == "self" && !path.is_empty() => {}
                    TokenTree::Ident(ident) => path.push(ident.to_string()),
                    TokenTree::Punct(punct) if punct.as_char() == '*' => {
                        self.globs.push(std::mem::take(&mut path));
                    }
                    TokenTree::Punct(_) | TokenTree::Literal(_) => {}
                }
            }
            if let Some(last) = path.last() {
                self.imports.push((alias.unwrap_or_else(|| last.clone()), path.clone()));
            }
        }
    }
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

fn is_semicolon(token: &TokenTree) -> bool {
    is_punct(token, ';')
}

/// The path at the head of some tokens, and the number of tokens it takes.
fn path_at(tokens: &[TokenTree]) -> (Vec<String>, usize) {
    let mut path = vec![tokens[0].to_string()];
    let mut length = 1;
    while let [colon, other, TokenTree::Ident(name), ..] = &tokens[length..]
        && is_punct(colon, ':')
        && is_punct(other, ':')
    {
        path.push(name.to_string());
        length += 3;
    }
    (path, length)
}

/// The modules of one crate.
struct Modules(BTreeMap<ModulePath, File>);

impl Modules {
    /// Reads a crate from its root file.
    fn read(root: &Path) -> Self {
        let mut modules = BTreeMap::new();
        let folder = root.parent().unwrap();
        let mut waiting = vec![(ModulePath::new(), root.to_owned(), folder.to_owned())];
        while let Some((path, source, folder)) = waiting.pop() {
            let mut file = File::read(&source);
            let source_of = |child: &String| {
                let beside = folder.join(format!("{child}.rs"));
                [beside, folder.join(child).join("mod.rs")].into_iter().find(|source| source.exists())
            };
            // One with a path attribute is in neither place; it is of another crate.
            file.children.retain(|child| source_of(child).is_some());
            for child in &file.children {
                let child_path = [path.as_slice(), std::slice::from_ref(child)].concat();
                waiting.extend(source_of(child).map(|source| (child_path, source, folder.join(child))));
            }
            modules.insert(path, file);
        }
        Self(modules)
    }

    /// The module whose file defines what a path names, seen from a module; `None` if it is of another crate or of the
    /// language.
    fn definer(&self, from: &ModulePath, path: &[String], depth: u8) -> Option<ModulePath> {
        let mut at = from.clone();
        let mut rest = path;
        while let [first, others @ ..] = rest {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()?),
                _ => break,
            }
            rest = others;
        }
        let is_anchored = rest.len() < path.len();
        for (index, name) in rest.iter().enumerate() {
            let file = &self.0[&at];
            if file.children.contains(name) {
                at.push(name.clone());
                continue;
            }
            let imported =
                file.imports.iter().find(|(alias, path)| alias == name && path.as_slice() != [name.clone()]);
            if let Some((_, target)) = imported
                && depth < 9
            {
                let whole = [target.as_slice(), &rest[index + 1..]].concat();
                return self.definer(&at, &whole, depth + 1);
            }
            let is_local = is_anchored || index > 0 || file.defined.contains(name);
            return if is_local { Some(at) } else { self.by_glob(&at, &rest[index..], depth) };
        }
        Some(at)
    }

    /// As [`Self::definer`], of a path whose first name comes with everything of another module.
    fn by_glob(&self, from: &ModulePath, path: &[String], depth: u8) -> Option<ModulePath> {
        let has = |module: &ModulePath| {
            let File { defined, imports, children, .. } = &self.0[module];
            defined.contains(&path[0])
                || children.contains(&path[0])
                || imports.iter().any(|(name, _)| *name == path[0])
        };
        let sources = self.0[from].globs.iter().filter_map(|glob| self.definer(from, glob, depth + 1));
        let source = sources.into_iter().find(|source| depth < 9 && source != from && has(source))?;
        let whole = [&["crate".to_owned()], source.as_slice(), path].concat();
        self.definer(from, &whole, depth + 1)
    }

    /// The other modules that each module uses.
    fn uses(&self) -> Uses {
        let of = |(path, file): (&ModulePath, &File)| {
            let used = file.named.iter().filter_map(|name| self.definer(path, name, 0));
            (path.clone(), used.filter(|used| used != path).collect())
        };
        self.0.iter().map(of).collect()
    }

    /// The knots of the crate, each in a line.
    fn knots(&self) -> BTreeSet<String> {
        let uses = self.uses();
        let mut knots = BTreeSet::new();
        for parent in self.0.keys() {
            let children = siblings(&uses, parent);
            for start in children.keys() {
                if let Some(mut way) = shortest_cycle(&children, start) {
                    let first = (0..way.len()).min_by_key(|&at| &way[at]).expect("a cycle has members");
                    way.rotate_left(first);
                    let names: Vec<_> = way.iter().map(|module| module.join("::")).collect();
                    knots.insert(names.join(" → "));
                }
            }
            let used: BTreeSet<_> = uses[parent].iter().filter_map(|module| child(parent, module)).collect();
            for (module, file) in &self.0 {
                if !child(parent, module).is_some_and(|child| used.contains(&child)) {
                    continue;
                }
                let is_call = |name: &&Vec<String>| {
                    self.definer(module, name, 0).as_ref() == Some(parent)
                        && name.iter().all(|name| name.starts_with(|first: char| first.is_lowercase()))
                };
                for name in file.named.iter().filter(is_call) {
                    let function = name.last().expect("a path has a name");
                    knots.insert(format!(
                        "{} calls {}",
                        module.join("::"),
                        [parent.as_slice(), std::slice::from_ref(function)].concat().join("::")
                    ));
                }
            }
        }
        knots
    }
}

/// The modules that each of some modules uses.
type Uses = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

/// The child of a module that another is, or is below.
fn child(parent: &[String], module: &[String]) -> Option<ModulePath> {
    (module.len() > parent.len() && module.starts_with(parent)).then(|| module[..=parent.len()].to_vec())
}

/// Which children of a module use which, each with all that is below it.
fn siblings(uses: &Uses, parent: &[String]) -> Uses {
    let mut siblings = Uses::new();
    for (module, used) in uses {
        let Some(user) = child(parent, module) else { continue };
        let others = used.iter().filter_map(|module| child(parent, module)).filter(|other| *other != user);
        siblings.entry(user.clone()).or_default().extend(others);
    }
    siblings
}

/// The shortest cycle through a module, if it is in one.
fn shortest_cycle(uses: &Uses, start: &ModulePath) -> Option<Vec<ModulePath>> {
    let mut reached = BTreeSet::new();
    let mut ways = VecDeque::from([vec![start.clone()]]);
    while let Some(way) = ways.pop_front() {
        for next in &uses[&way[way.len() - 1]] {
            if next == start {
                return Some(way);
            }
            if reached.insert(next.clone()) {
                ways.push_back([way.as_slice(), std::slice::from_ref(next)].concat());
            }
        }
    }
    None
}

#[test]
fn no_crate_has_a_knot_of_modules() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut knots = BTreeSet::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let is_product =
            |target: &&Value| target["kind"] == json!(["lib"]) || target["kind"] == json!(["bin"]);
        for target in package["targets"].as_array().unwrap().iter().filter(is_product) {
            let modules = Modules::read(Path::new(target["src_path"].as_str().unwrap()));
            knots.extend(modules.knots().into_iter().map(|knot| format!("{name}: {knot}")));
        }
    }
    assert!(knots.is_empty(), "untie these modules: {knots:#?}");
}

#[test]
fn a_knot_is_found_and_a_re_export_is_none() {
    let knots = |files: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), text).unwrap();
        }
        Modules::read(&folder.path().join("lib.rs")).knots().into_iter().collect::<Vec<_>>()
    };
    let root = ("lib.rs", "mod one; mod two; pub use one::{One, Other as Else}; pub(crate) use two::Two;");
    let one = ("one.rs", "use crate::Two; pub struct One(Two); pub struct Other;");
    let free = (
        "two.rs",
        "//! crate::One\n#[cfg(test)] mod tests { use crate::One; fn f(_: One) {} } pub struct Two(&'static str = \"crate::One\");",
    );
    assert!(knots(&[root, one, free]).is_empty());
    let tied = ("two.rs", "pub struct Two; fn f(_: super::Else) {}");
    assert_eq!(knots(&[root, one, tied]), ["one → two"]);
    let parent = ("lib.rs", "mod low; pub struct Known; pub fn go() { low::run() } pub fn back() {}");
    let types = ("low.rs", "pub(super) fn run() { let _ = super::Known; }");
    assert!(knots(&[parent, types]).is_empty());
    assert_eq!(knots(&[parent, ("low.rs", "use super::*; fn f() { back() }")]), ["low calls back"]);
}
