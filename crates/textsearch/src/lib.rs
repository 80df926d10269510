//! Text search: regular expressions over a database of typed sentences, at the speed of the memory.
//!
//! A file of lines `type@@@sentence` is read into a [`Database`]. A [`Query`] is `types;pattern`, with the pattern in Java's syntax.
//! A [`Search`] of one in the other runs in parts, on one thread or several, and [`Rows`] returns its answer meanwhile:
//!
//! ```
//! use std::io::Write;
//! use std::sync::Arc;
//!
//! use kendall_textsearch::{Database, Form, OpenOptions, Query, Rows, Semantics};
//!
//! let mut file = tempfile::NamedTempFile::new()?;
//! writeln!(file, "1@@@what this man said \n2@@@of another man \n1@@@nothing ")?;
//! # let folder = tempfile::tempdir()?;
//! let database = Arc::new(Database::open(file.path(), &OpenOptions::default())?);
//! # std::fs::remove_file(file.path().with_added_extension("index")).ok();
//! let query = Arc::new(Query::parse("1,2;(this|another) man", &Semantics::default())?);
//! let search = Arc::new(database.search(&query));
//! search.run().expect("nothing backtracks");
//! let mut answer = Vec::new();
//! Rows::new(search, Form::Row).read(&mut answer, usize::MAX);
//! assert_eq!(answer, b"1@@@what this man said \n2@@@of another man \n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The time of a search is linear in the text, whatever the pattern; a pattern that is not possible in this way is rejected, or
//! allowed within a limit of steps.

mod automaton;
mod cache;
mod caches;
mod client;
mod data;
mod database;
mod error;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod generate;
mod index;
mod lines;
mod opening;
mod options;
mod pattern;
mod plan;
pub mod protocol;
mod query;
mod row;
mod rows;
mod scan;
mod search;
mod semantics;
mod server;
mod subcommands;
mod synthetic;
mod work;
pub mod workload;

pub use cache::{Cache, Origin};
pub use client::Client;
pub use data::load::Oddities;
pub use database::{Contents, Database};
pub use error::{PatternError, SearchError};
pub use generate::{Generate, Generated, PLANTED, Size, TIMED, common_words, generate};
pub use kendall_service::Config;
pub use opening::{IndexSource, Layout, OpenOptions, Saving};
pub use options::TextSearchOptions;
pub use plan::{Plan, SearchMethod};
pub use query::{Canonical, Query};
pub use row::ROW;
pub use rows::{Form, Reading, Rows};
pub use search::{Progress, Search};
pub use semantics::{Alphabet, Backtracking, Matching, Semantics};
pub use server::{ServeError, TextSearch, bind, serve};
pub use synthetic::synthetic;
