//! Translates addresses to names of functions, inlined ones included.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use addr2line::Loader;

use super::Stack;
use super::perf_map::PerfMap;
use super::stack::{Frame, Space};

/// Stacks with names.
pub(super) struct Folded {
    /// Equal stacks added up, in the order of their texts.
    pub(super) folded: Vec<(String, u64)>,
    /// The names that processes wrote for code that they generated.
    pub(super) own_names: BTreeSet<String>,
}

/// Names the frames of stacks.
pub(super) fn folded(
    stacks: HashMap<Stack, u64>,
    spaces: &HashMap<u32, Space>,
    threads: &HashMap<u32, String>,
) -> Folded {
    let mut names = Names::default();
    let mut maps: HashMap<u32, PerfMap> = HashMap::new();
    let mut own_names = BTreeSet::new();
    let mut folded: BTreeMap<String, u64> = BTreeMap::new();
    for (Stack { pid, tid, frames }, count) in stacks {
        let mut line = threads.get(&tid).map_or("thread", |name| kind(name)).replace([';', '\n'], ":");
        for frame in frames.iter().rev() {
            let place = match frame {
                Frame::Kernel => None,
                Frame::Address(address) => Some(spaces.get(&pid).and_then(|space| space.place(*address))),
            };
            let own = |maps: &mut HashMap<u32, PerfMap>, address: u64| {
                maps.entry(pid).or_insert_with(|| PerfMap::of(pid)).name(address).map(str::to_owned)
            };
            let named: &[String] = match (place, frame) {
                (None, _) | (_, Frame::Kernel) => &[KERNEL.to_owned()],
                (Some(Some((path, at))), _) => names.of(path, at),
                (Some(None), Frame::Address(address)) => match own(&mut maps, *address) {
                    Some(name) => {
                        own_names.insert(name.clone());
                        &[name]
                    }
                    None => &[UNKNOWN.to_owned()],
                },
            };
            named.iter().for_each(|name| line.extend([";", name]));
        }
        *folded.entry(line).or_default() += count;
    }
    Folded { folded: folded.into_iter().collect(), own_names }
}

const KERNEL: &str = "[kernel]";
/// Code outside of any file: generated at run time, or a wrong guess of the unwinder above assembly without unwind tables.
const UNKNOWN: &str = "[unknown]";

/// The name of a thread without its number, so that workers are added up: "worker-3" becomes "worker".
fn kind(name: &str) -> &str {
    let kind =
        name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['-', '_', '#', ' ', ':', '/']);
    if kind.is_empty() { name } else { kind }
}

/// The names found so far.
#[derive(Default)]
struct Names {
    loaders: HashMap<PathBuf, Option<Loader>>,
    known: HashMap<(PathBuf, u64), Vec<String>>,
}

impl Names {
    /// The functions at an address of a file, outermost first: one, and those inlined in it.
    fn of(&mut self, path: &Path, at: u64) -> &[String] {
        let loader = self.loaders.entry(path.to_owned()).or_insert_with(|| Loader::new(path).ok()).as_ref();
        self.known.entry((path.to_owned(), at)).or_insert_with(|| {
            let mut names = loader.map_or_else(Vec::new, |loader| functions(loader, at));
            if names.is_empty() {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                names.push(format!("[{file}]"));
            }
            names.reverse();
            names
        })
    }
}

/// The functions at an address, innermost first; empty where there are neither line tables nor symbols.
fn functions(loader: &Loader, at: u64) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok(mut frames) = loader.find_frames(at) {
        while let Ok(Some(frame)) = frames.next() {
            let name =
                frame.function.as_ref().and_then(|function| Some(function.demangle().ok()?.into_owned()));
            names.extend(name);
        }
    }
    // Line tables alone name a function without its modules; its symbol contains them.
    if let Some(symbol) = loader.find_symbol(at) {
        names.pop();
        names.push(addr2line::demangle_auto(Cow::from(symbol), None).into_owned());
    }
    names.iter().map(|name| plain(name)).collect()
}

/// Makes a name valid in a folded stack.
fn plain(name: &str) -> String {
    name.replace(';', ":").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_one_kind_of_thread() {
        assert_eq!(kind("worker-3"), "worker");
        assert_eq!(kind("tokio-rt-worker"), "tokio-rt-worker");
        assert_eq!(kind("4711"), "4711");
    }
}
