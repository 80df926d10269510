//! The watched processes: those that were named, and their descendants.

use std::collections::HashSet;

use crate::proc::Process;
use crate::row::Role;

/// The most processes that are watched, of a server with more.
pub(crate) const MOST_PROCESSES: usize = 64;

/// A process to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The target's role.
    pub role: Role,
    /// The process number.
    pub pid: u32,
    /// Whether the target's child processes are watched, too.
    pub children: Children,
}

/// Whether the child processes of a process are watched, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// The process is watched, and so are its children.
    Watched,
    /// The children are not watched: they have a separate role, or none.
    Left,
}

/// Starts to watch the descendants of the targets whose children are watched, at any depth. Returns whether some are left out
/// because they are too many.
pub(crate) fn add_descendants(processes: &mut Vec<Process>, targets: &[Target]) -> bool {
    let are_watched =
        |role| targets.iter().any(|target| target.role == role && target.children == Children::Watched);
    let mut known: HashSet<u32> = processes.iter().map(|process| process.pid).collect();
    let mut at = 0;
    // A process that is added here has its turn, too.
    while let Some(parent) = processes.get(at) {
        at += 1;
        if !are_watched(parent.role) {
            continue;
        }
        let (role, children) = (parent.role, parent.children());
        for pid in children.into_iter().filter(|pid| known.insert(*pid)) {
            if processes.len() >= MOST_PROCESSES {
                return true;
            }
            // The process may have ended in between.
            processes.extend(Process::new(role, pid).ok());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn descendants_at_any_depth_are_found_at_once() {
        // Each shell runs another command after its child, so that it stays beside it. All end with their input.
        let nested = "sh -c 'sh -c \"echo ready; read line; :\"; :'; :";
        let mut root = Command::new("sh")
            .args(["-c", nested])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        BufReader::new(root.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        let found = |children| {
            let target = Target { role: Role::Server, pid: root.id(), children };
            let mut processes = vec![Process::new(Role::Server, root.id()).unwrap()];
            assert!(!add_descendants(&mut processes, &[target]));
            processes.len()
        };
        assert_eq!((found(Children::Watched), found(Children::Left)), (3, 1));
        drop(root.stdin.take());
        root.wait().unwrap();
    }
}
