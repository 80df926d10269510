//! Reads Parquet tables of other tools, such as those of `DataFrame.to_parquet` of pandas, as JSON: an object for each row.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::panic::catch_unwind;
use std::path::Path;

use kendall_record::RecordError;
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value};

/// A table with more rows holds requests rather than points.
const MOST_ROWS: i64 = 100_000;

/// The rows of a file as a JSON list of objects; `None` where the file is not Parquet.
///
/// # Errors
/// Fails where the file cannot be read, is damaged, has an unsupported compression, or has too many rows.
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
    file.rewind().map_err(RecordError::read(path))?;
    let damaged =
        |why| RecordError::Format { path: path.into(), what: "a table of points that can be read", why };
    // The library panics at some damage. Its state is not used after that.
    match catch_unwind(|| rows(file)) {
        Ok(Ok(rows)) => Ok(Some(Value::Array(rows).to_string())),
        Ok(Err(error)) => {
            let hint = if error.to_string().contains("feature") {
                "; write it with compression=\"snappy\" or none"
            } else {
                ""
            };
            Err(damaged(format!("{error}{hint}")))
        }
        Err(_) => Err(damaged("it is damaged".to_owned())),
    }
}

fn rows(file: File) -> ParquetResult<Vec<Value>> {
    let reader = SerializedFileReader::new(file)?;
    let count = reader.metadata().file_metadata().num_rows();
    if count > MOST_ROWS {
        let why = format!("it has {count} rows, and a row is a load, not a request");
        return Err(parquet::errors::ParquetError::General(why));
    }
    let object = |row: ParquetResult<parquet::record::Row>| {
        let row = row?;
        let cells = row.get_column_iter().map(|(name, field)| (name.clone(), value(field)));
        Ok(Value::Object(cells.collect::<Map<String, Value>>()))
    };
    reader.get_row_iter(None)?.map(object).collect()
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

    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    fn write(path: &Path) {
        let schema = "message points { REQUIRED INT64 rate; OPTIONAL DOUBLE mean_ms; REQUIRED BYTE_ARRAY name (STRING); }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut writer =
            SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&[10, 20], None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&[5.5], Some(&[1, 0]), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<ByteArrayType>()
            .write_batch(&[ByteArray::from("a"), ByteArray::from("b")], None, None)
            .unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
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
