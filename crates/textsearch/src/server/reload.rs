//! SIGHUP: the data is read again while requests go on.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use signal_hook::consts::SIGHUP;
use signal_hook::iterator::{Handle, Signals};

use super::source::DataSource;

/// Hears SIGHUP. Dropped, it does not any more.
#[derive(Debug)]
pub(crate) struct Hangups(Option<(Handle, JoinHandle<()>)>);

/// Reads the data again on each SIGHUP, on its own thread. What cannot be read leaves the rows as they were.
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
        tracing::error!(%error, "the data was not read again; its rows are those of before");
    }
}

impl Drop for Hangups {
    fn drop(&mut self) {
        if let Some((handle, thread)) = self.0.take() {
            handle.close();
            // If it panicked it has said so.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::opening::{OpenOptions, Saving};
    use crate::query::Query;
    use crate::semantics::Semantics;

    #[test]
    fn new_rows_make_answers_of_old_ones_forgotten_and_what_cannot_be_read_leaves_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.txt");
        fs::write(&path, "1@@@old\n").unwrap();
        let options = OpenOptions { saving: Saving::Off, ..OpenOptions::default() };
        let source = DataSource::open(&path, &options, 1 << 20).unwrap();
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
        // One that ends only now is of rows that nobody is served any more.
        source.keep(&search);
        assert_eq!(source.cache.answer_bytes(), 0);
    }
}
