//! `requests.parquet`: a row for each request, readable by pandas, Polars and DuckDB.
//!
//! Instants are 64-bit integers, in nanoseconds since the start of the trial; one that never came is null.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use kendall_files::Output;
use kendall_record::RecordError;
use kendall_record::{Outcome, RequestRow};

use crate::bounded;

/// The columns; [`write_group`] and [`read_group`] use them in this order.
const SCHEMA: &str = "message requests {
    required int64 index (INTEGER(64,false));
    required int32 class (INTEGER(32,false));
    required int64 scheduled;
    optional int64 sent;
    optional int64 first_byte;
    optional int64 completed;
    optional int64 queued;
    optional int64 started;
    optional int64 finished;
    required binary outcome (STRING);
    required int64 bytes_out (INTEGER(64,false));
    required int64 bytes_in (INTEGER(64,false));
    required int32 port (INTEGER(16,false));
    optional int64 service;
    optional int64 fixed;
}";
/// The last columns, which tables of earlier versions lack.
const FIXED: &str = "    optional int64 fixed;\n";
/// The additional first columns of a table of several trials.
const OF_TRIAL: &str = "
    required binary trial (STRING);
    required boolean warmup;";
const UNIT: &str = "nanoseconds since the start of the trial: scheduled, sent, first_byte, completed, queued, \
                    started, finished; nanoseconds: service, fixed";
const GROUP_ROWS: usize = 1 << 16;

pub(crate) fn write(file: File, rows: &[RequestRow]) -> io::Result<()> {
    write_rows(file, rows).map_err(io::Error::other)
}

pub(crate) fn read(path: &Path) -> std::result::Result<Vec<RequestRow>, RecordError> {
    // Indices and instants differ, so a row of 15 cells takes more than four bytes.
    bounded::read(path, "a table of requests", |size| size.within(4, u64::MAX), read_rows)
}

fn write_rows(file: File, rows: &[RequestRow]) -> Result<()> {
    let mut writer = Writer::new(file)?;
    rows.iter().try_for_each(|row| writer.add(row.clone()))?;
    writer.close()
}

/// Writes a table row by row, with one group of rows in memory.
pub(crate) struct Writer {
    out: SerializedFileWriter<File>,
    rows: Vec<RequestRow>,
}

/// The table of all rows of several trials, with the trial of each row and whether the row belongs to the warm-up.
pub struct MergedTable {
    writer: Writer,
    output: Output,
    path: PathBuf,
}

impl MergedTable {
    /// Starts a table. [`Self::finish`] replaces a file of this name.
    ///
    /// # Errors
    /// Fails where it cannot be written.
    pub fn create(path: &Path) -> std::result::Result<Self, RecordError> {
        let output = Output::open(path).map_err(RecordError::write(path))?;
        let file = output.handle().map_err(RecordError::write(path))?;
        let schema = SCHEMA.replacen('{', &format!("{{{OF_TRIAL}"), 1);
        let writer = Writer::with_schema(file, &schema).map_err(|error| unwritable(path, error))?;
        Ok(Self { writer, output, path: path.into() })
    }

    /// Adds the rows of a trial; those due before `warmup_ns` are its warm-up.
    ///
    /// # Errors
    /// Fails where the file cannot be written.
    pub fn add(
        &mut self,
        trial: &str,
        warmup_ns: i64,
        rows: &[RequestRow],
    ) -> std::result::Result<(), RecordError> {
        let write = |rows: &[RequestRow], out: &mut SerializedFileWriter<File>| {
            let mut group = out.next_row_group()?;
            let name: ByteArray = trial.into();
            column::<ByteArrayType>(&mut group, &vec![name; rows.len()], None)?;
            let warmup: Vec<bool> = rows.iter().map(|row| row.scheduled < warmup_ns).collect();
            column::<BoolType>(&mut group, &warmup, None)?;
            write_group(&mut group, rows)?;
            group.close().map(drop)
        };
        let written = rows.chunks(GROUP_ROWS).try_for_each(|rows| write(rows, &mut self.writer.out));
        written.map_err(|error| unwritable(&self.path, error))
    }

    /// Completes the file.
    ///
    /// # Errors
    /// Fails where it cannot be written.
    pub fn finish(self) -> std::result::Result<(), RecordError> {
        self.writer.close().map_err(|error| unwritable(&self.path, error))?;
        self.output.finish().map_err(RecordError::write(&self.path))
    }
}

fn unwritable(path: &Path, error: ParquetError) -> RecordError {
    RecordError::write(path)(io::Error::other(error))
}

impl Writer {
    pub(crate) fn new(file: File) -> Result<Self> {
        Self::with_schema(file, SCHEMA)
    }

    fn with_schema(file: File, schema: &str) -> Result<Self> {
        let unit = KeyValue::new("unit".to_owned(), UNIT.to_owned());
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(vec![unit]))
            .build();
        let schema = Arc::new(parse_message_type(schema)?);
        let out = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
        Ok(Self { out, rows: Vec::new() })
    }

    pub(crate) fn add(&mut self, row: RequestRow) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<()> {
        let mut group = self.out.next_row_group()?;
        write_group(&mut group, &self.rows)?;
        self.rows.clear();
        group.close().map(drop)
    }

    pub(crate) fn close(mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.out.close().map(drop)
    }
}

type Group<'a> = SerializedRowGroupWriter<'a, File>;

fn write_group(group: &mut Group<'_>, rows: &[RequestRow]) -> Result<()> {
    required::<Int64Type>(group, rows, |row| row.index as i64)?;
    required::<Int32Type>(group, rows, |row| row.class as i32)?;
    required::<Int64Type>(group, rows, |row| row.scheduled)?;
    optional(group, rows, |row| row.sent)?;
    optional(group, rows, |row| row.first_byte)?;
    optional(group, rows, |row| row.completed)?;
    optional(group, rows, |row| row.queued)?;
    optional(group, rows, |row| row.started)?;
    optional(group, rows, |row| row.finished)?;
    required::<ByteArrayType>(group, rows, |row| row.outcome.name().into())?;
    required::<Int64Type>(group, rows, |row| row.bytes_out as i64)?;
    required::<Int64Type>(group, rows, |row| row.bytes_in as i64)?;
    required::<Int32Type>(group, rows, |row| i32::from(row.port))?;
    optional(group, rows, |row| row.service)?;
    optional(group, rows, |row| row.fixed)
}

fn required<T: DataType>(
    group: &mut Group<'_>,
    rows: &[RequestRow],
    of: fn(&RequestRow) -> T::T,
) -> Result<()> {
    let values: Vec<T::T> = rows.iter().map(of).collect();
    column::<T>(group, &values, None)
}

fn optional(group: &mut Group<'_>, rows: &[RequestRow], of: fn(&RequestRow) -> Option<i64>) -> Result<()> {
    let values: Vec<i64> = rows.iter().filter_map(of).collect();
    let present: Vec<i16> = rows.iter().map(|row| i16::from(of(row).is_some())).collect();
    column::<Int64Type>(group, &values, Some(&present))
}

fn column<T: DataType>(group: &mut Group<'_>, values: &[T::T], present: Option<&[i16]>) -> Result<()> {
    let mut column = group.next_column()?.expect("the schema has a column for each call");
    column.typed::<T>().write_batch(values, present, None)?;
    column.close()
}

fn read_rows(reader: &SerializedFileReader<File>) -> Result<Vec<RequestRow>> {
    let schema = reader.metadata().file_metadata().schema();
    let (expected, earlier) = (parse_message_type(SCHEMA)?, parse_message_type(&SCHEMA.replace(FIXED, ""))?);
    if schema != &expected && schema != &earlier {
        return Err(ParquetError::General("it has other columns".to_owned()));
    }
    let mut rows = Vec::new();
    for index in 0..reader.num_row_groups() {
        rows.append(&mut read_group(&*reader.get_row_group(index)?)?);
    }
    Ok(rows)
}

fn read_group(group: &dyn RowGroupReader) -> Result<Vec<RequestRow>> {
    let index = read_required::<Int64Type>(group, 0)?;
    let class = read_required::<Int32Type>(group, 1)?;
    let scheduled = read_required::<Int64Type>(group, 2)?;
    let [sent, first_byte, completed] = [3, 4, 5].map(|at| read_optional(group, at));
    let [queued, started, finished] = [6, 7, 8].map(|at| read_optional(group, at));
    let (sent, first_byte, completed) = (sent?, first_byte?, completed?);
    let (queued, started, finished) = (queued?, started?, finished?);
    let outcomes = read_required::<ByteArrayType>(group, 9)?;
    let bytes_out = read_required::<Int64Type>(group, 10)?;
    let bytes_in = read_required::<Int64Type>(group, 11)?;
    let port = read_required::<Int32Type>(group, 12)?;
    let service = read_optional(group, 13)?;
    let fixed = if group.num_columns() > 14 { read_optional(group, 14)? } else { vec![None; index.len()] };
    let row = |i: usize| {
        Ok(RequestRow {
            index: index[i] as u64,
            class: class[i] as u32,
            port: port[i] as u16,
            scheduled: scheduled[i],
            sent: sent[i],
            first_byte: first_byte[i],
            completed: completed[i],
            queued: queued[i],
            started: started[i],
            finished: finished[i],
            service: service[i],
            fixed: fixed[i],
            outcome: outcome(&outcomes[i])?,
            bytes_out: bytes_out[i] as u64,
            bytes_in: bytes_in[i] as u64,
        })
    };
    (0..index.len()).map(row).collect()
}

fn outcome(name: &ByteArray) -> Result<Outcome> {
    let known = Outcome::ALL.into_iter().find(|outcome| outcome.name().as_bytes() == name.data());
    known.ok_or_else(|| {
        ParquetError::General(format!("{:?} is not a valid outcome", name.as_utf8().unwrap_or("?")))
    })
}

fn read_required<T: DataType>(group: &dyn RowGroupReader, at: usize) -> Result<Vec<T::T>> {
    bounded::column::<T>(group, at).map(|(values, _)| values)
}

fn read_optional(group: &dyn RowGroupReader, at: usize) -> Result<Vec<Option<i64>>> {
    let (values, present) = bounded::column::<Int64Type>(group, at)?;
    let mut values = values.into_iter();
    Ok(present.into_iter().map(|present| if present == 1 { values.next() } else { None }).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::journal::tests::{any_instant, any_row};

    #[test]
    fn a_table_of_an_earlier_version_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.parquet");
        fs::write(&path, include_bytes!("testdata/without-fixed.parquet")).unwrap();
        let rows = read(&path).unwrap();
        assert_eq!(rows.len(), 100);
        assert!(rows.iter().all(|row| row.service.is_some() && row.fixed.is_none()));
    }

    #[test]
    fn a_table_of_several_trials_has_their_rows_behind_two_more_columns() {
        let rows =
            vec(any_row(0..1i64 << 40), 40).new_tree(&mut TestRunner::deterministic()).unwrap().current();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("merged");
        let mut table = MergedTable::create(&path).unwrap();
        table.add("001-rate=20%", 1 << 39, &rows).unwrap();
        table.add("002", 0, &rows[..3]).unwrap();
        table.add("003", 0, &[]).unwrap();
        table.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let names = |schema: &parquet::schema::types::Type| -> Vec<String> {
            schema.get_fields().iter().map(|field| field.name().to_owned()).collect()
        };
        let own = names(&parse_message_type(SCHEMA).unwrap());
        let merged = names(reader.metadata().file_metadata().schema());
        assert_eq!(merged[..2], ["trial", "warmup"].map(str::to_owned));
        assert_eq!(merged[2..], own);
        let (mut trials, mut warmups, mut scheduled) = (Vec::new(), Vec::new(), Vec::new());
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group).unwrap();
            trials.extend(read_required::<ByteArrayType>(&*group, 0).unwrap());
            warmups.extend(read_required::<BoolType>(&*group, 1).unwrap());
            scheduled.extend(read_required::<Int64Type>(&*group, 4).unwrap());
        }
        let expected: Vec<(&[u8], bool, i64)> = rows
            .iter()
            .map(|row| (&b"001-rate=20%"[..], row.scheduled < 1 << 39, row.scheduled))
            .chain(rows[..3].iter().map(|row| (&b"002"[..], row.scheduled < 0, row.scheduled)))
            .collect();
        let found = trials
            .iter()
            .zip(warmups)
            .zip(scheduled)
            .map(|((trial, warmup), due)| (trial.data(), warmup, due));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_table_is_read_back_as_written(rows in vec(any_row(any_instant()), 0..50)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("table");
            write(File::create(&path).unwrap(), &rows).unwrap();
            prop_assert_eq!(read(&path).unwrap(), rows);
        }

        #[test]
        fn a_cut_table_is_an_error_that_names_the_file(
            rows in vec(any_row(any_instant()), 0..50),
            cut in any::<Index>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("table");
            write(File::create(&path).unwrap(), &rows).unwrap();
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..cut.index(bytes.len())]).unwrap();
            let message = read(&path).unwrap_err().to_string();
            prop_assert!(message.contains("table is not a table of requests"), "{}", message);
        }
    }

    #[test]
    fn no_damage_of_one_byte_makes_the_reader_panic() {
        let rows = vec(any_row(any_instant()), 50);
        let rows = rows.new_tree(&mut TestRunner::deterministic()).unwrap().current();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        write(File::create(&path).unwrap(), &rows).unwrap();
        let bytes = fs::read(&path).unwrap();
        let mut refused = 0;
        for (at, mask) in (0..bytes.len()).zip([0x01, 0x80, 0xff].into_iter().cycle()) {
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            fs::write(&path, &damaged).unwrap();
            // A table has no checksum over its values: damage there changes values, or is detected.
            refused += usize::from(read(&path).is_err());
        }
        // The lengths, offsets and types of the file's structure are more than a tenth of so small a file.
        assert!(refused > bytes.len() / 10, "{refused} of {}", bytes.len());
    }
}
