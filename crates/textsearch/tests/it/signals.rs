//! SIGHUP and SIGTERM.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::served::Client;
use kendall_testbed::{alone, wait_until};
use kendall_textsearch::protocol::Dialect;
use kendall_textsearch::{OpenOptions, Saving, TextSearchOptions, serve};
use rustix::process::{Signal, getpid, kill_process};

#[test]
fn a_hangup_brings_the_new_rows_and_drops_no_request_and_a_bad_file_keeps_the_old_ones() {
    // Signals are for the whole process.
    if !alone("signals::a_hangup_brings_the_new_rows_and_drops_no_request_and_a_bad_file_keeps_the_old_ones")
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.txt");
    // The file is replaced, and not overwritten.
    let replace = |rows: String| {
        fs::write(folder.path().join("new"), rows).unwrap();
        fs::rename(folder.path().join("new"), &data).unwrap();
    };
    let rows = |word: &str| format!("1@@@{word}\n").repeat(50_000);
    replace(rows("old"));
    let usual = TextSearchOptions::new("127.0.0.1:0".parse().unwrap(), data.clone());
    let options =
        TextSearchOptions { open: OpenOptions { saving: Saving::Off, ..OpenOptions::default() }, ..usual };
    let (ready, address) = mpsc::channel();
    let serving = thread::spawn(move || {
        serve(&options, move |address| ready.send(address).unwrap()).map_err(|error| error.to_string())
    });
    let address = address.recv().unwrap();
    let client = || Client::new(address, Dialect::Lines);
    let signal = |signal| kill_process(getpid(), signal).unwrap();
    assert_eq!(client().ask(";old").len(), 50_000);

    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut client = client();
                while !stop.load(Ordering::Relaxed) {
                    // All rows of one file or all of the other.
                    let rows = client.ask(";(old|new)");
                    assert_eq!(rows.len(), 50_000);
                    assert!(rows.iter().all(|row| *row == rows[0]));
                }
            });
        }
        replace(rows("new"));
        signal(Signal::HUP);
        wait_until("it is so", || client().ask(";new").len() == 50_000);
        assert_eq!(client().ask(";old").len(), 0);
        fs::remove_file(&data).unwrap();
        signal(Signal::HUP);
        // It is unknown when the signal was handled; the next one is after it.
        assert_eq!(client().ask(";new").len(), 50_000);
        replace(rows("newer"));
        signal(Signal::HUP);
        wait_until("it is so", || client().ask(";newer").len() == 50_000);
        stop.store(true, Ordering::Relaxed);
    });
    let mut last = client();
    last.send(";nothing");
    last.answer();
    signal(Signal::TERM);
    serving.join().unwrap().unwrap();
}
