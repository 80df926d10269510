//! The record of one trial: a journal while it runs, then a table and histograms.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::folder::write_whole;
use crate::journal::{self, Journal};
use crate::{hlog, table};
use kendall_record::RecordError;
use kendall_record::RequestRow;
use kendall_record::clock::now_ns;
use kendall_record::stamps::{Stamp, join};

const JOURNAL: &str = "requests.journal";
const TABLE: &str = "requests.parquet";
const HISTOGRAMS: &str = "latency.hlog";

/// Writes the record of a trial. While the trial runs, its rows are in a journal: if the process is killed, [`read_trial`] can
/// read all rows except those of the last tenth of a second, at most.
#[derive(Debug)]
pub struct TrialWriter {
    folder: PathBuf,
    journal: Journal,
}

impl TrialWriter {
    /// Starts the record of a trial in a new folder; replaces an older record there.
    ///
    /// # Errors
    /// Fails where the folder cannot be written.
    pub fn create(folder: &Path) -> Result<Self, RecordError> {
        fs::create_dir_all(folder).map_err(RecordError::write(folder))?;
        for old in [TABLE, HISTOGRAMS] {
            remove(&folder.join(old))?;
        }
        Ok(Self { folder: folder.into(), journal: Journal::create(&folder.join(JOURNAL))? })
    }

    /// Adds a row. It is on disk at the latest with the first row that arrives a tenth of a second later.
    ///
    /// # Errors
    /// Fails where the journal cannot be written.
    pub fn append(&mut self, row: &RequestRow) -> Result<(), RecordError> {
        self.journal.append(row)
    }

    /// Completes the record: replaces the journal by a table and histograms of the rows, with the server's stamps, in the order
    /// of their numbers. The rows become relative to `start_ns`, an instant of [`now_ns`]. Returns the rows.
    ///
    /// # Errors
    /// Fails where a file cannot be written; the journal then remains.
    pub fn finish(mut self, stamps: &[Stamp], start_ns: i64) -> Result<Vec<RequestRow>, RecordError> {
        self.journal.flush()?;
        let journal = self.folder.join(JOURNAL);
        let mut rows = journal::read(&journal)?;
        join(&mut rows, stamps, start_ns);
        rows.sort_by_key(|row| row.index);
        let age = Duration::from_nanos((now_ns() - start_ns).max(0) as u64);
        let (histograms, table) = (self.folder.join(HISTOGRAMS), self.folder.join(TABLE));
        write_whole(&histograms, |file| {
            hlog::write(file, &rows, age).map_err(RecordError::write(&histograms))
        })?;
        write_whole(&table, |file| table::write(file, &rows).map_err(RecordError::write(&table)))?;
        remove(&journal)?;
        Ok(rows)
    }

    /// Completes the record of a trial without stamps, of any length, in bounded memory. Returns the number of rows. A row that
    /// ended after more than 262,144 requests with larger numbers follows them in the table.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_without_stamps(mut self, start_ns: i64) -> Result<u64, RecordError> {
        self.journal.flush()?;
        let journal = self.folder.join(JOURNAL);
        let age = Duration::from_nanos((now_ns() - start_ns).max(0) as u64);
        let (path, table) = (self.folder.join(HISTOGRAMS), self.folder.join(TABLE));
        let mut histograms = hlog::Histograms::new();
        let count =
            write_whole(&table, |file| write_in_bounded_memory(&journal, file, &table, &mut histograms))?;
        write_whole(&path, |file| histograms.write(file, age).map_err(RecordError::write(&path)))?;
        remove(&journal)?;
        Ok(count)
    }
}

/// The number of rows of a long trial that are held for sorting.
const HELD_AT_MOST: usize = 1 << 18;

/// Writes the rows of a journal as a table and as histograms, holding at most [`HELD_AT_MOST`] of them. Rows are sorted by
/// number, except a request that ended after more later ones than that.
fn write_in_bounded_memory(
    journal: &Path,
    file: fs::File,
    table: &Path,
    histograms: &mut hlog::Histograms,
) -> Result<u64, RecordError> {
    let failed = |error| RecordError::write(table)(io::Error::other(error));
    let mut writer = table::Writer::new(file).map_err(failed)?;
    let mut held: BTreeMap<(u64, u64), RequestRow> = BTreeMap::new();
    let (mut count, mut next) = (0, 0);
    let mut add = |row: RequestRow| {
        histograms.add(&row);
        writer.add(row).map_err(failed)
    };
    for row in journal::Rows::open(journal)? {
        let row = row?;
        // The second part of the key separates rows with the same number, which only damaged journals contain.
        held.insert((row.index, count), row);
        count += 1;
        while let Some(first) = held.first_entry()
            && (first.key().0 <= next || held.len() > HELD_AT_MOST)
        {
            let ((index, _), row) = held.pop_first().expect("there is a first");
            next = next.max(index.saturating_add(1));
            add(row)?;
        }
    }
    held.into_values().try_for_each(&mut add)?;
    writer.close().map_err(failed)?;
    Ok(count)
}

/// Reads the rows of a trial in the order of their numbers: from its table, or from the journal of an interrupted trial.
///
/// # Errors
/// Fails where neither exists or where it cannot be read.
pub fn read_trial(folder: &Path) -> Result<Vec<RequestRow>, RecordError> {
    let (table, journal) = (folder.join(TABLE), folder.join(JOURNAL));
    let mut rows =
        if table.exists() || !journal.exists() { table::read(&table)? } else { journal::read(&journal)? };
    rows.sort_by_key(|row| row.index);
    Ok(rows)
}

fn remove(path: &Path) -> Result<(), RecordError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(RecordError::write(path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::thread;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::journal::tests::any_row;
    use kendall_record::Outcome;

    /// Row `index`, with every field derived from the number.
    fn row(index: u64) -> RequestRow {
        let at = index as i64 * 1000;
        RequestRow {
            class: index as u32 % 3,
            bytes_out: index,
            bytes_in: 8,
            ..RequestRow::due(index, at).sent_at(at + 10, 7).ended(Outcome::Answered, at + 500)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        // Instants of up to 36 years either way, so that their differences fit as well.
        #[test]
        fn no_row_is_lost_or_changed(rows in vec(any_row(-(1i64 << 60)..1 << 60), 0..50)) {
            let folder = tempfile::tempdir().unwrap();
            let mut writer = TrialWriter::create(folder.path()).unwrap();
            for row in &rows {
                writer.append(row).unwrap();
            }
            let finished = writer.finish(&[], 0).unwrap();
            prop_assert_eq!(finished.len(), rows.len());
            prop_assert!(finished.iter().all(|row| rows.contains(row)));
            prop_assert_eq!(read_trial(folder.path()).unwrap(), finished);
        }

        /// Rows in any order of their ends, some with the same number.
        #[test]
        fn in_bounded_memory_none_is_lost_or_changed_either(rows in vec(any_row(-(1i64 << 60)..1 << 60), 0..50)) {
            let folder = tempfile::tempdir().unwrap();
            let mut writer = TrialWriter::create(folder.path()).unwrap();
            for row in &rows {
                writer.append(row).unwrap();
            }
            prop_assert_eq!(writer.finish_without_stamps(0).unwrap(), rows.len() as u64);
            let found = read_trial(folder.path()).unwrap();
            prop_assert_eq!(found.len(), rows.len());
            prop_assert!(found.iter().all(|row| rows.contains(row)));
            prop_assert!(found.is_sorted_by_key(|row| row.index));
        }
    }

    #[test]
    fn a_finished_trial_has_its_stamps_in_several_groups_of_rows_and_no_journal() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = TrialWriter::create(folder.path()).unwrap();
        let count = 100_000;
        for index in (0..count).rev() {
            writer.append(&row(index)).unwrap();
        }
        let start = 1 << 40;
        let stamp = |i: i64| Stamp {
            port: 7,
            queued: start + i * 1000 + 20,
            started: start + i * 1000 + 30,
            finished: start + i * 1000 + 400,
            service: 370,
            fixed: Some(70),
        };
        let stamps: Vec<Stamp> = (0..count as i64).map(stamp).collect();
        writer.finish(&stamps, start).unwrap();
        let rows = read_trial(folder.path()).unwrap();
        assert!(rows.iter().map(|row| row.index).eq(0..count));
        assert!(rows.iter().all(|row| (row.service, row.fixed) == (Some(370), Some(70)) && row.queueing_ns() == Some(10)));
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [HISTOGRAMS, TABLE]);
    }

    #[test]
    fn a_folder_without_a_record_and_a_damaged_one_are_errors_that_name_the_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read_trial(folder.path()).unwrap_err().to_string().contains(TABLE));
        fs::write(folder.path().join(TABLE), "PAR1 and nothing else").unwrap();
        assert!(read_trial(folder.path()).unwrap_err().to_string().contains("is not a table of requests"));
    }

    /// Set in the child process that [`what_a_killed_process_wrote_can_be_read`] starts of this same test.
    const CHILD: &str = "KENDALL_RECORD_TEST_FOLDER";

    #[test]
    fn what_a_killed_process_wrote_can_be_read() {
        if let Some(folder) = std::env::var_os(CHILD) {
            write_until_killed(Path::new(&folder));
        }
        let folder = tempfile::tempdir().unwrap();
        let name = "trial::tests::what_a_killed_process_wrote_can_be_read";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(CHILD, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Each line is the number of rows that were added more than two flushes before.
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let written =
            lines.filter_map(|line| line.strip_prefix("added ")?.parse::<u64>().ok()).nth(2).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let rows = read_trial(folder.path()).unwrap();
        assert!(written > 0 && rows.len() as u64 >= written, "{} of {written}", rows.len());
        assert!(rows.iter().zip(0..).all(|(found, index)| *found == row(index)));
    }

    fn write_until_killed(folder: &Path) -> ! {
        let mut writer = TrialWriter::create(folder).unwrap();
        let mut index = 0;
        println!();
        loop {
            let before = index;
            let until = now_ns() + 250_000_000;
            // One row after that time flushes the earlier ones, if no other row has.
            let mut over = false;
            while !over {
                over = now_ns() >= until;
                writer.append(&row(index)).unwrap();
                index += 1;
                thread::sleep(Duration::from_micros(100));
            }
            println!("added {before}");
        }
    }
}
