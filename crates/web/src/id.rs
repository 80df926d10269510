//! The identity of a run: `EXPERIMENT/INSTANT`, the names of its folder and of the one above it.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Stands for the results folder itself, for a run directly in it.
pub(crate) const HERE: &str = "-";
/// The characters that need no encoding in a part of a URL.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'=').remove(b',');

/// The identity of a run. It is only a name: such a folder need not exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunId {
    experiment: String,
    stamp: String,
}

impl RunId {
    /// Combines the two names; `None` where one of them could lead to another folder.
    pub(crate) fn new(experiment: &str, stamp: &str) -> Option<Self> {
        (is_name(experiment) && is_name(stamp))
            .then(|| Self { experiment: experiment.into(), stamp: stamp.into() })
    }

    /// Parses `EXPERIMENT/INSTANT`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (experiment, stamp) = text.split_once('/')?;
        Self::new(experiment, stamp)
    }

    /// The name of its folder, usually the instant at which it started.
    pub(crate) fn stamp(&self) -> &str {
        &self.stamp
    }

    /// The run's part of a URL.
    pub(crate) fn address(&self) -> String {
        format!("{}/{}", encoded(&self.experiment), encoded(&self.stamp))
    }

    /// The run as a value in a query.
    pub(crate) fn query(&self) -> String {
        encoded(&self.to_string())
    }

    /// The run's folder under the results, if it is a run: a folder with a manifest, and no link leads out of the results.
    /// `results` is a canonical path.
    pub(crate) fn folder(&self, results: &Path) -> Option<PathBuf> {
        let above = if self.experiment == HERE { results.to_owned() } else { results.join(&self.experiment) };
        let folder = above.join(&self.stamp).canonicalize().ok()?;
        let inside = folder.starts_with(results) && folder != results;
        (inside && folder.join("manifest.json").is_file()).then_some(folder)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.experiment, self.stamp)
    }
}

/// A name as a part of a URL.
pub(crate) fn encoded(name: &str) -> String {
    utf8_percent_encode(name, PLAIN).to_string()
}

/// Whether the name is a single component of a path.
fn is_name(text: &str) -> bool {
    let mut parts = Path::new(text).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(name)), None) if name == text)
        && !text.contains('\0')
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        for bad in ["", ".", "..", "a/b", "/", "/etc", "a/", "a\0b", "../x", "./a"] {
            assert_eq!(RunId::new(bad, "x"), None, "{bad:?}");
            assert_eq!(RunId::new("x", bad), None, "{bad:?}");
        }
        assert_eq!(RunId::parse("a/../b"), None);
        let id = RunId::parse("grüße an/2026 11%").unwrap();
        assert_eq!(id.address(), "gr%C3%BC%C3%9Fe%20an/2026%2011%25");
    }

    #[test]
    fn a_run_is_a_folder_inside_with_a_manifest() {
        let outside = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().canonicalize().unwrap();
        for run in [results.join("e/r"), results.join("alone"), outside.path().join("r")] {
            fs::create_dir_all(&run).unwrap();
            fs::write(run.join("manifest.json"), "{}").unwrap();
        }
        fs::create_dir(results.join("e/none")).unwrap();
        symlink(outside.path().join("r"), results.join("e/out")).unwrap();
        symlink(outside.path(), results.join("far")).unwrap();
        symlink(results.join("e/r"), results.join("e/again")).unwrap();
        let found = |text: &str| RunId::parse(text).unwrap().folder(&results);
        assert_eq!(found("e/r"), Some(results.join("e/r")));
        assert_eq!(found("-/alone"), Some(results.join("alone")));
        assert_eq!(found("e/again"), Some(results.join("e/r")));
        for none in ["e/none", "e/out", "far/r", "e/missing", "-/e"] {
            assert_eq!(found(none), None, "{none}");
        }
    }
}
