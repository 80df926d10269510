//! SIGHUP: reading the data again while requests continue.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use signal_hook::consts::SIGHUP;
use signal_hook::iterator::{Handle, Signals};

use super::source::DataSource;

/// Listens for SIGHUP until it is dropped; that waits for a reload that is running.
#[derive(Debug)]
pub(crate) struct Hangups(Option<(Handle, JoinHandle<()>)>);

/// Reads the data again on each SIGHUP, on its own thread. If reading fails, the rows stay as they were.
pub(crate) fn on_hangup(source: &Arc<DataSource>) -> Hangups {
    let source = Arc::clone(source);
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
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::num::NonZeroUsize;

    use kendall_service::{Config, Server};
    use kendall_testbed::{LIMIT, Running, reset, wait_until};

    use super::*;
    use crate::cache::Cache;
    use crate::opening::{Layout, OpenOptions, Saving};
    use crate::options::TextSearchOptions;
    use crate::query::Query;
    use crate::semantics::{Backtracking, Semantics};
    use crate::server::TextSearch;

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

    #[test]
    fn a_reload_ends_with_the_server_and_leaves_the_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.txt");
        fs::write(&path, "1@@@old\n").unwrap();
        let source = DataSource::open(&path, &OpenOptions::default(), Cache::new(0, 0)).unwrap();
        fs::write(&path, "1@@@new\n2@@@newer\n").unwrap();
        let index = || fs::read(path.with_added_extension("index")).unwrap();
        let before = index();
        source.end();
        reload(&source);
        assert_eq!((source.current().contents().rows(), index()), (1, before));
        assert_eq!((source.reloads.get(), source.failed_reloads.get()), (0, 0));
    }

    #[test]
    fn a_later_request_gets_the_new_rows_while_an_equal_one_searches_the_old_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.txt");
        // On these rows it takes minutes, on the new one it takes no time.
        let request = r";^(a+)+\1?$";
        fs::write(&path, format!("1@@@{}b\n", "a".repeat(18)).repeat(140_000)).unwrap();
        let workers = NonZeroUsize::new(2).unwrap();
        let usual = TextSearchOptions::new("127.0.0.1:0".parse().unwrap(), path.clone());
        let options = TextSearchOptions {
            service: Config { workers, ..usual.service.clone() },
            open: OpenOptions { layout: Layout::Flat, ..OpenOptions::default() },
            semantics: Semantics {
                backtracking: Backtracking::Within { steps: 100_000_000 },
                ..Semantics::default()
            },
            threads: workers,
            deadline: 10 * LIMIT,
            ..usual
        };
        let system = TextSearch::new(&options).unwrap();
        let source = Arc::clone(&system.source);
        let server = Server::bind(options.service, system).unwrap();
        let (metrics, stop) = (server.handle(), server.handle());
        let running = Running::new(
            server.local_addr(),
            move || metrics.metrics_text(),
            move || stop.shut_down(),
            || server.run(),
        );
        let send = || {
            let mut client = TcpStream::connect(running.address).unwrap();
            client.set_read_timeout(Some(LIMIT)).unwrap();
            client.write_all(format!("{request}\n").as_bytes()).unwrap();
            client
        };
        let first = send();
        wait_until("the search runs", || running.levels() == (0, 1));
        fs::write(&path, "1@@@aaa\n").unwrap();
        reload(&source);
        let mut answer = [0; 9];
        send().read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"1@@@aaa\n\n");
        reset(first);
    }
}
