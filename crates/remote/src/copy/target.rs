//! The target of a copy: the folder that no path leaves, and the path in it of each source.
//!
//! As with `cp`: into a folder that exists; otherwise the target is the new name of the only source. A target that ends in a
//! slash, or that several sources or the content of a folder go to, is a folder and is created if need be.

use std::io;
use std::path::Path;

use rustix::fs::{self, AtFlags, FileType, Mode};
use rustix::io::Errno;

use crate::copy::folder::Folder;
use crate::copy::partial::is_partial;
use crate::copy::protocol::SourcePath;
use crate::copy::stat::kind;
use crate::error::RemoteError;
use crate::path::{BadPath, TreePath, shown};

/// The target of a copy.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) folder: Folder,
    /// The path of each source; empty where its content goes into the folder.
    roots: Vec<TreePath>,
}

/// What is at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Present {
    Folder,
    Other,
    Nothing,
}

/// How sources go to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrangement {
    /// Into the folder that the target is.
    Into,
    /// Into the folder that is created there.
    IntoNew,
    /// The only source gets the target's name.
    As,
}

impl Target {
    /// A target that a user of this machine names; links on the way to it are followed.
    ///
    /// `names` are the last names of the sources, each empty where the content of a folder is copied.
    pub(crate) fn local(path: &Path, names: &[Vec<u8>]) -> Result<Self, RemoteError> {
        let failed = |action| RemoteError::file(action, path);
        let present = match path.metadata() {
            Ok(metadata) if metadata.is_dir() => Present::Folder,
            Ok(_) => Present::Other,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Present::Nothing,
            Err(error) => return Err(failed("read")(error)),
        };
        let bytes = path.as_os_str().as_encoded_bytes();
        match arrange(present, bytes, names)? {
            Arrangement::Into => Self::into(Folder::open(path).map_err(failed("open"))?, names),
            Arrangement::IntoNew => {
                std::fs::create_dir(path).map_err(failed("create the folder"))?;
                Self::into(Folder::open(path).map_err(failed("open"))?, names)
            }
            Arrangement::As => {
                let name = path.file_name().ok_or_else(|| BadPath(shown(bytes).into_owned()))?;
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let folder =
                    Folder::open(parent.unwrap_or_else(|| Path::new("."))).map_err(failed("create"))?;
                Self::named(folder, name.as_encoded_bytes())
            }
        }
    }

    /// A target in a served folder.
    pub(crate) fn served(served: &Folder, path: &[u8], names: &[Vec<u8>]) -> Result<Self, RemoteError> {
        let normal = TreePath::normalised(path)?;
        if normal.names().any(is_partial) {
            return Err(reserved().into());
        }
        let text = std::path::PathBuf::from(normal.to_string());
        let failed = |action| RemoteError::file(action, &text);
        let Some((parent, name)) = normal.split_last() else {
            return Self::into(served.inner(&normal).map_err(failed("open"))?, names);
        };
        let parent = served.inner(&parent).map_err(failed("create"))?;
        let present = match fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if kind(&stat) == FileType::Directory => Present::Folder,
            Ok(_) => Present::Other,
            Err(Errno::NOENT) => Present::Nothing,
            Err(error) => return Err(failed("read")(error.into())),
        };
        let inner = TreePath::new(name)?;
        match arrange(present, path, names)? {
            Arrangement::Into => Self::into(parent.inner(&inner).map_err(failed("open"))?, names),
            Arrangement::IntoNew => {
                fs::mkdirat(&parent, name, Mode::from(0o755))
                    .map_err(|error| failed("create the folder")(error.into()))?;
                Self::into(parent.inner(&inner).map_err(failed("open"))?, names)
            }
            Arrangement::As => Self::named(parent, name),
        }
    }

    fn into(folder: Folder, names: &[Vec<u8>]) -> Result<Self, RemoteError> {
        let roots = names.iter().map(|name| root(name)).collect::<Result<_, _>>()?;
        Ok(Self { folder, roots })
    }

    fn named(folder: Folder, name: &[u8]) -> Result<Self, RemoteError> {
        Ok(Self { folder, roots: vec![root(name)?] })
    }

    /// The path in the folder of something that is sent.
    pub(crate) fn path(&self, place: &SourcePath) -> Result<TreePath, BadPath> {
        let refused = || BadPath(place.path.to_string());
        let path = self.roots.get(usize::from(place.root)).ok_or_else(refused)?.join(&place.path)?;
        if path.is_empty() {
            return Err(refused());
        }
        if path.names().any(is_partial) {
            return Err(reserved());
        }
        Ok(path)
    }
}

/// The path of a source: a single name, or empty.
fn root(name: &[u8]) -> Result<TreePath, BadPath> {
    let root = TreePath::new(name)?;
    if root.names().count() > 1 {
        return Err(BadPath(shown(name).into_owned()));
    }
    Ok(root)
}

/// The refusal of names that only partial files have.
fn reserved() -> BadPath {
    BadPath(".kendall-partial.… is the name of partial files".into())
}

fn arrange(present: Present, path: &[u8], names: &[Vec<u8>]) -> Result<Arrangement, RemoteError> {
    let shown = shown(path);
    let needs_folder =
        names.len() != 1 || names[0].is_empty() || path.ends_with(b"/") || path.ends_with(b"/.");
    match present {
        Present::Folder => Ok(Arrangement::Into),
        Present::Nothing if needs_folder => Ok(Arrangement::IntoNew),
        Present::Other if needs_folder => Err(RemoteError::Operands(format!(
            "the target {shown} is not a folder: name a folder or a new name"
        ))),
        Present::Nothing | Present::Other => Ok(Arrangement::As),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_go_where_cp_would_put_them() {
        let (one, two, content) = (vec![b"a".to_vec()], vec![b"a".to_vec(), b"b".to_vec()], vec![vec![]]);
        let arranged = |present, path: &str, names: &[Vec<u8>]| arrange(present, path.as_bytes(), names).ok();
        for names in [&one, &two, &content] {
            assert_eq!(arranged(Present::Folder, "t", names), Some(Arrangement::Into));
        }
        assert_eq!(arranged(Present::Nothing, "t", &one), Some(Arrangement::As));
        assert_eq!(arranged(Present::Other, "t", &one), Some(Arrangement::As));
        assert_eq!(arranged(Present::Nothing, "t/", &one), Some(Arrangement::IntoNew));
        assert_eq!(arranged(Present::Nothing, "t", &two), Some(Arrangement::IntoNew));
        assert_eq!(arranged(Present::Nothing, "t", &content), Some(Arrangement::IntoNew));
        assert_eq!(arranged(Present::Other, "t", &two), None);
    }
}
