//! Reads Parquet tables of other tools, such as those of `DataFrame.to_parquet` of pandas, as JSON: an object for each row.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use kendall_record::RecordError;
use parquet::basic::Repetition;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;
use serde_json::{Map, Value};

use crate::bounded::{self, Size};

/// A table with more rows holds requests rather than points.
const MOST_ROWS: u64 = 100_000;
/// The most bytes of the rows as JSON.
const MOST_TEXT: usize = 32 << 20;

/// The rows of a file as a JSON list of objects; `None` where the file is not Parquet.
///
/// # Errors
/// Fails where the file cannot be read, is damaged, has an unsupported compression, has lists in its rows, or has too many rows.
pub fn points(path: &Path) -> Result<Option<String>, RecordError> {
    // A pipe or a device cannot hold such a table, and reading its beginning would consume it.
    if !path.is_file() {
        return Ok(None);
    }
    let mut file = File::open(path).map_err(RecordError::read(path))?;
    let mut magic = [0; 4];
    if file.read_exact(&mut magic).is_err() || magic != *b"PAR1" {
        return Ok(None);
    }
    match bounded::read(path, "a table of points that can be read", few_enough, rows) {
        Err(RecordError::Format { path, what, why }) if why.contains("feature") => {
            let why = format!("{why}; write it with compression=\"snappy\" or none");
            Err(RecordError::Format { path, what, why })
        }
        rows => rows.map(Some),
    }
}

fn few_enough(size: Size) -> ParquetResult<()> {
    if size.rows > MOST_ROWS {
        return Err(general(format!("it has {} rows, and a row is a load, not a request", size.rows)));
    }
    Ok(())
}

fn general(why: String) -> ParquetError {
    ParquetError::General(why)
}

fn rows(reader: &SerializedFileReader<File>) -> ParquetResult<String> {
    let columns = reader.metadata().file_metadata().schema().get_fields();
    let is_list = |column: &&Arc<Type>| {
        !column.is_primitive() || column.get_basic_info().repetition() == Repetition::REPEATED
    };
    if let Some(column) = columns.iter().find(is_list) {
        return Err(general(format!("{} has several values in a row", column.name())));
    }
    let mut text = "[".to_owned();
    for row in reader.get_row_iter(None)? {
        let row = row?;
        let cells = row.get_column_iter().map(|(name, field)| (name.clone(), value(field)));
        if text.len() > 1 {
            text.push(',');
        }
        text += &Value::Object(cells.collect::<Map<String, Value>>()).to_string();
        // Equal texts are once in the file, and here once for each row.
        if text.len() > MOST_TEXT {
            return Err(general(format!("its rows take more than {MOST_TEXT} bytes")));
        }
    }
    text.push(']');
    Ok(text)
}

/// A cell; a value that is not a number keeps its text.
fn value(field: &Field) -> Value {
    match *field {
        Field::Null => Value::Null,
        Field::Bool(value) => value.into(),
        Field::Byte(value) => value.into(),
        Field::Short(value) => value.into(),
        Field::Int(value) => value.into(),
        Field::Long(value) => value.into(),
        Field::UByte(value) => value.into(),
        Field::UShort(value) => value.into(),
        Field::UInt(value) => value.into(),
        Field::ULong(value) => value.into(),
        // By its digits: 0.1 is not 0.10000000149.
        Field::Float(value) => value.to_string().parse::<f64>().map_or(Value::Null, Value::from),
        // A data frame has NaN for a missing value.
        Field::Double(value) => Value::from(value),
        Field::Str(ref text) => text.as_str().into(),
        ref other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::Arc;

    use parquet::data_type::{ByteArrayType, DataType, DoubleType, Int64Type};
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::parser::parse_message_type;

    fn write(path: &Path) {
        let schema = "message points { REQUIRED INT64 rate; OPTIONAL DOUBLE mean_ms; REQUIRED BYTE_ARRAY name (STRING); }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut writer =
            SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        column::<Int64Type>(&mut group, &[10, 20], None);
        column::<DoubleType>(&mut group, &[5.5], Some(&[1, 0]));
        column::<ByteArrayType>(&mut group, &["a".into(), "b".into()], None);
        group.close().unwrap();
        writer.close().unwrap();
    }

    fn column<T: DataType>(
        group: &mut SerializedRowGroupWriter<'_, File>,
        values: &[T::T],
        present: Option<&[i16]>,
    ) {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(values, present, None).unwrap();
        column.close().unwrap();
    }

    /// The error of a table with one column of texts.
    fn refused(schema: &str, rows: usize, text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("points.parquet");
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut writer =
            SerializedFileWriter::new(File::create(&file).unwrap(), schema, Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let repeated = text.is_empty().then(|| vec![0; rows]);
        let mut column = group.next_column().unwrap().unwrap();
        let (texts, present) = (vec![text.into(); rows], vec![1; rows]);
        column.typed::<ByteArrayType>().write_batch(&texts, Some(&present), repeated.as_deref()).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        points(&file).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_table_of_loads_is_refused_before_it_takes_memory() {
        let text = "message points { OPTIONAL BYTE_ARRAY name (STRING); }";
        let error = refused(text, 100_001, "x");
        assert!(error.contains("it has 100001 rows, and a row is a load"), "{error}");
        // 40 MB, in a file of 1 kB.
        let error = refused(text, 40_000, &"x".repeat(1000));
        assert!(error.contains("its rows take more than 33554432 bytes"), "{error}");
        let error = refused("message points { REPEATED BYTE_ARRAY name (STRING); }", 3, "");
        assert!(error.contains("name has several values in a row"), "{error}");
    }

    #[test]
    fn rows_are_objects_and_other_files_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("points.parquet");
        write(&file);
        let read: Value = serde_json::from_str(&points(&file).unwrap().unwrap()).unwrap();
        let expected = serde_json::json!([
            { "rate": 10, "mean_ms": 5.5, "name": "a" },
            { "rate": 20, "mean_ms": null, "name": "b" }
        ]);
        assert_eq!(read, expected);
        let whole = fs::read(&file).unwrap();
        for length in [5, whole.len() / 2, whole.len() - 1] {
            fs::write(&file, &whole[..length]).unwrap();
            assert!(points(&file).is_err(), "{length} bytes");
        }
        fs::write(&file, "rate,mean_ms\n").unwrap();
        assert!(points(&file).unwrap().is_none() && points(folder.path()).unwrap().is_none());
    }
}
