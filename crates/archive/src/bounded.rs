//! Reads Parquet files that others may have written, in memory in proportion to their length.
//!
//! The library reserves memory by what a page, a dictionary or the schema claims to hold, gigabytes for a file of a few kilobytes,
//! and panics at some damage. So what a file claims is checked first. The format and its numbers:
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::panic::catch_unwind;
use std::path::Path;

use kendall_record::RecordError;
use parquet::basic::Compression;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use crate::thrift::{Fields, Reader, Value};

/// Snappy, the only compression, takes at least three bytes for 64.
const MOST_EXPANSION: i64 = 22;
/// PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED and RLE_DICTIONARY, which the library decodes without further reservations.
const ENCODINGS: [i64; 5] = [0, 2, 3, 5, 8];
/// The magic number and the length of the footer before it.
const TAIL: u64 = 8;

/// What a file claims to hold, and its length in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) rows: u64,
    cells: u64,
    length: u64,
}

impl Size {
    /// Refuses more than `cells_per_byte`, except few cells, and more than `most_cells`: equal values take next to no bytes.
    pub(crate) fn within(self, cells_per_byte: u64, most_cells: u64) -> Result<()> {
        let possible = self.length.saturating_mul(cells_per_byte).clamp(1 << 16, most_cells);
        if self.cells > possible {
            return Err(refused(format!("it claims to have {} rows, too many for its length", self.rows)));
        }
        Ok(())
    }
}

/// What `rows` makes of a file, once its size is found possible. `what` the file should be is for errors.
pub(crate) fn read<T>(
    path: &Path,
    what: &'static str,
    possible: fn(Size) -> Result<()>,
    rows: fn(&SerializedFileReader<File>) -> Result<T>,
) -> std::result::Result<T, RecordError> {
    let file = File::open(path).map_err(RecordError::read(path))?;
    // The state of the library is not used after a panic.
    let damage = match catch_unwind(|| rows(&open(file, possible)?)) {
        Ok(Ok(rows)) => return Ok(rows),
        Ok(Err(ParquetError::General(why))) => why,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it is damaged".to_owned(),
    };
    Err(RecordError::Format { path: path.into(), what, why: damage })
}

fn open(file: File, possible: fn(Size) -> Result<()>) -> Result<SerializedFileReader<File>> {
    let length = file.metadata()?.len();
    check_schema(&file, length)?;
    let reader = SerializedFileReader::new(file.try_clone()?)?;
    let groups = reader.metadata().row_groups();
    let mut size = Size { rows: 0, cells: 0, length };
    for group in groups {
        let rows =
            u64::try_from(group.num_rows()).map_err(|_| refused("it has a negative number of rows"))?;
        size.rows = size.rows.saturating_add(rows);
        size.cells = size.cells.saturating_add(rows.saturating_mul(group.num_columns() as u64));
    }
    possible(size)?;
    let mut left = length;
    for column in groups.iter().flat_map(|group| group.columns()) {
        let (start, length) = column.byte_range();
        // Columns have no bytes in common, so checking them takes no longer than reading the file.
        left = left.checked_sub(length).ok_or_else(|| refused("its columns are longer than the file"))?;
        // The library refuses other compressions.
        if matches!(column.compression(), Compression::SNAPPY | Compression::UNCOMPRESSED) {
            check_pages(&bytes(&file, start, length)?)?;
        }
    }
    Ok(reader)
}

/// The schema is a list of elements, of which some claim to contain the next ones.
fn check_schema(file: &File, length: u64) -> Result<()> {
    let short = || refused("its footer is longer than the file");
    let tail = bytes(file, length.checked_sub(TAIL).ok_or_else(short)?, TAIL)?;
    let footer = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    let start = length.checked_sub(TAIL + footer).ok_or_else(short)?;
    let bytes = bytes(file, start, footer)?;
    let damaged = || refused("its schema is damaged");
    let footer = Reader(&bytes).fields().ok_or_else(damaged)?;
    let Some(Value::List(elements)) = footer.get(2) else { return Err(damaged()) };
    for element in elements {
        let Value::Fields(element) = element else { return Err(damaged()) };
        let children = element.whole(5).unwrap_or(0);
        if !usize::try_from(children).is_ok_and(|children| children < elements.len()) {
            return Err(damaged());
        }
    }
    Ok(())
}

/// The headers of all pages of a column.
fn check_pages(mut column: &[u8]) -> Result<()> {
    while !column.is_empty() {
        let mut reader = Reader(column);
        let header = reader.fields().filter(has_kinds_of_page);
        let header = header.ok_or_else(|| refused("the header of a page is damaged"))?;
        let data = checked_data(&header)?;
        column = reader.0.get(data..).ok_or_else(|| refused("a page is longer than its column"))?;
    }
    Ok(())
}

/// The length of a page's data, where its claims can be true.
fn checked_data(header: &Fields) -> Result<usize> {
    let number =
        |fields: &Fields, id| fields.whole(id).ok_or_else(|| refused("the header of a page lacks a number"));
    let (size, compressed) = (number(header, 2)?, number(header, 3)?);
    if !(0..=compressed.saturating_mul(MOST_EXPANSION)).contains(&size) {
        return Err(refused(format!("a page claims to have {size} bytes, compressed into {compressed}")));
    }
    for (id, encoding) in [(5, 2), (7, 2), (8, 4)] {
        let Some(Value::Fields(page)) = header.get(id) else { continue };
        if !ENCODINGS.contains(&number(page, encoding)?) {
            return Err(refused(
                "it has an encoding that kendall does not read; write it with plain or dictionary encoding",
            ));
        }
        // A value of a dictionary takes a byte or more.
        if id == 7 && !(0..=size).contains(&number(page, 1)?) {
            return Err(refused("a dictionary claims to have more values than bytes"));
        }
    }
    Ok(usize::try_from(compressed)?)
}

/// Whether each field has the kind that it should have. The library reads it as of that kind, so would read other values otherwise.
fn has_kinds_of_page(header: &Fields) -> bool {
    header.0.iter().all(|(id, value)| match (id, value) {
        (1..=4, Value::Whole(_)) => true,
        (5..=8, Value::Fields(page)) => page.0.iter().all(|(field, value)| match (id, field) {
            (5, 1..=4) | (7, 1..=2) | (8, 1..=6) => matches!(value, Value::Whole(_)),
            (7, 3) | (8, 7) => matches!(value, Value::Bool),
            _ => matches!(value, Value::Fields(_)),
        }),
        _ => false,
    })
}

fn bytes(file: &File, start: u64, length: u64) -> Result<Vec<u8>> {
    let inside =
        start.checked_add(length).is_some_and(|end| file.metadata().is_ok_and(|file| end <= file.len()));
    if !inside {
        return Err(refused("a part of it lies beyond its end"));
    }
    let mut bytes = vec![0; usize::try_from(length)?];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

fn refused(why: impl Into<String>) -> ParquetError {
    ParquetError::General(why.into())
}

/// The values of a column, and for an optional column whether each row has one.
pub(crate) fn column<T: DataType>(group: &dyn RowGroupReader, at: usize) -> Result<(Vec<T::T>, Vec<i16>)> {
    let rows = usize::try_from(group.metadata().num_rows())?;
    let (mut values, mut present) = (Vec::new(), Vec::new());
    let mut column = get_typed_column_reader::<T>(group.get_column_reader(at)?);
    let (read, ..) = column.read_records(rows, Some(&mut present), None, &mut values)?;
    if read == rows {
        Ok((values, present))
    } else {
        Err(ParquetError::EOF("a column is cut off".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::data_type::Int64Type;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    /// A field of a number: its step from the one before, and the number, below 64.
    fn field(step: u8, number: u8) -> Vec<u8> {
        vec![step << 4 | 5, number << 1]
    }

    /// A page of a dictionary, and its data.
    fn page(size: Vec<u8>, compressed: u8, values: Vec<u8>, encoding: u8, data: usize) -> Vec<u8> {
        let dictionary = [vec![0x4c], values, field(1, encoding), vec![0x12, 0]].concat();
        let sizes = [field(1, 2), size, field(1, compressed)].concat();
        [sizes, dictionary, vec![0], vec![7; data]].concat()
    }

    #[test]
    fn a_page_is_refused_for_each_claim_that_cannot_be_true() {
        let size = || field(1, 50);
        let values = || field(1, 6);
        let pages = [page(size(), 9, values(), 0, 9), page(size(), 3, values(), 2, 3)].concat();
        check_pages(&pages).unwrap();
        let more_than_int32 = vec![0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f];
        let as_text = vec![0x18, 1, b'x'];
        for (wrong, why) in [
            (page(more_than_int32.clone(), 9, values(), 0, 9), "2147483647 bytes, compressed into 9"),
            (page(size(), 2, values(), 0, 2), "50 bytes, compressed into 2"),
            (page(vec![0x15, 99], 9, values(), 0, 9), "-50 bytes"),
            (page(size(), 10, values(), 0, 9), "a page is longer than its column"),
            (page(size(), 9, more_than_int32, 0, 9), "a dictionary claims to have more values than bytes"),
            (page(size(), 9, values(), 6, 9), "write it with plain or dictionary encoding"),
            (page(as_text, 9, values(), 0, 9), "the header of a page is damaged"),
            (page(size(), 9, values(), 0, 9)[..9].to_vec(), "the header of a page is damaged"),
        ] {
            let error = check_pages(&wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{error}, not {why}");
        }
    }

    #[test]
    fn equal_values_take_memory_in_proportion_to_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.parquet");
        let read = |cells_per_byte: fn(Size) -> Result<()>| {
            super::read(&path, "a table", cells_per_byte, |file| {
                Ok(column::<Int64Type>(&*file.get_row_group(0)?, 0)?.0)
            })
        };
        let write = |values: &[i64]| {
            let schema = Arc::new(parse_message_type("message table { REQUIRED INT64 value; }").unwrap());
            let mut file =
                SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
            let mut group = file.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<Int64Type>().write_batch(values, None, None).unwrap();
            column.close().unwrap();
            group.close().unwrap();
            file.close().unwrap();
        };
        let different: Vec<i64> = (0..100_000).collect();
        write(&different);
        assert_eq!(read(|size| size.within(4, u64::MAX)).unwrap(), different);
        let error = read(|size| size.within(4, 99_999)).unwrap_err().to_string();
        assert!(error.contains("100000 rows, too many"), "{error}");
        write(&vec![5; 100_000]);
        let error = read(|size| size.within(4, u64::MAX)).unwrap_err().to_string();
        assert!(
            error.contains(
                "table.parquet is not a table: it claims to have 100000 rows, too many for its length"
            ),
            "{error}"
        );
        write(&vec![5; 1000]);
        assert_eq!(read(|size| size.within(4, u64::MAX)).unwrap(), vec![5; 1000]);
    }
}
