//! SIGHUP: reading the data again while requests continue.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use signal_hook::consts::SIGHUP;
use signal_hook::iterator::{Handle, Signals};

use super::source::DataSource;

/// Listens for SIGHUP until it is dropped.
#[derive(Debug)]
pub(crate) struct Hangups(Option<(Handle, JoinHandle<()>)>);

/// Reads the data again on each SIGHUP, on its own thread. If reading fails, the rows stay as they were.
pub(crate) fn on_hangup(source: Arc<DataSource>) -> Hangups {
    let started = Signals::new([SIGHUP]).and_then(|mut signals| {
        let handle = signals.handle();
        let thread = thread::Builder::new().name("reload".into()).spawn(move || {
            for _ in signals.forever() {
                reload(&source);
            }
        })?;
        Ok((handle, thread))
    });
    if let Err(error) = &started {
        tracing::warn!(%error, "cannot listen for SIGHUP; the data is not read again while this server runs");
    }
    Hangups(started.ok())
}

fn reload(source: &DataSource) {
    if let Err(error) = source.reload() {
        tracing::error!(%error, "the data could not be read again; the server keeps the previous rows");
    }
}

impl Drop for Hangups {
    fn drop(&mut self) {
        if let Some((handle, thread)) = self.0.take() {
            handle.close();
            // A thread that panicked has reported it.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cache::Cache;
    use crate::opening::{OpenOptions, Saving};
    use crate::query::Query;
    use crate::semantics::Semantics;

    #[test]
    fn new_rows_make_answers_of_old_ones_forgotten_and_what_cannot_be_read_leaves_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.txt");
        fs::write(&path, "1@@@old\n").unwrap();
        let options = OpenOptions { saving: Saving::Off, ..OpenOptions::default() };
        let source = DataSource::open(&path, &options, Cache::new(1 << 20, 1 << 20)).unwrap();
        let query = Arc::new(Query::parse(";old", &Semantics::default()).unwrap());
        let old = source.current();
        let (search, _) = source.cache.search(&old, &query);
        search.run().unwrap();
        source.keep(&search);
        fs::remove_file(&path).unwrap();
        reload(&source);
        assert_eq!((source.current().contents().rows(), source.failed_reloads.get()), (1, 1));
        assert!(Arc::ptr_eq(&source.cache.answer(&old, &query).unwrap(), &search));
        fs::write(&path, "1@@@new\n2@@@newer\n").unwrap();
        reload(&source);
        assert_eq!((source.current().contents().rows(), source.reloads.get()), (2, 1));
        assert_eq!(source.cache.answer_bytes(), 0);
        // A search that only ends now is of rows that are no longer served.
        source.keep(&search);
        assert_eq!(source.cache.answer_bytes(), 0);
    }
}
