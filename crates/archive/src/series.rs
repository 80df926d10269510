//! Tables of samples over time, such as `resources.parquet`: a row is one instant of one subject, named by a few labels, with a
//! number for each quantity that could be read.
//!
//! The format is wide, which suits pandas, Polars and DuckDB best: `time_ns`, then a text column for each label, then a column of
//! 64-bit floats for each quantity, null where it could not be read. The columns' names contain the units, and the file's
//! description explains them.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, PrimitiveTypeBuilder, Type};

use kendall_files::Replacement;
use kendall_record::RecordError;

use crate::bounded;

/// The first column: nanoseconds since the start of the trial.
const TIME: &str = "time_ns";
/// The key under which the file describes its rows and quantities.
const ABOUT: &str = "about";
/// The number of rows that are buffered in memory.
const GROUP_ROWS: usize = 1 << 16;
/// A page of 20,000 equal values, the most that is written, takes more than 40 bytes.
const CELLS_PER_BYTE: u64 = 512;
/// The cells of a table that is read, which take 4 GiB of memory.
const MOST_CELLS: u64 = 1 << 28;
/// The longest label that is read, in bytes: the file has equal labels once, but each row is looked up.
const LONGEST_LABEL: usize = 4096;

/// The layout of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The description of a row: "one sample of one thread".
    pub about: String,
    /// The text columns, which identify the subject of a sample.
    pub labels: Vec<String>,
    /// The columns of numbers.
    pub quantities: Vec<Quantity>,
}

/// A column of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// The quantity's name, which ends in its unit: `cpu_s`, `queue_bytes`, `drops`.
    pub name: String,
    /// The quantity's description.
    pub meaning: String,
}

impl Layout {
    /// The layout of a table with this description of its rows, without columns.
    pub fn new(about: &str) -> Self {
        Self { about: about.into(), labels: Vec::new(), quantities: Vec::new() }
    }

    /// Adds a label.
    #[must_use]
    pub fn label(mut self, name: &str) -> Self {
        self.labels.push(name.into());
        self
    }

    /// Adds a quantity; its name ends in its unit.
    #[must_use]
    pub fn quantity(mut self, name: &str, meaning: &str) -> Self {
        self.quantities.push(Quantity { name: name.into(), meaning: meaning.into() });
        self
    }

    fn schema(&self) -> ParquetResult<Type> {
        let mut fields = vec![column_of(TIME, Physical::INT64, Repetition::REQUIRED).build()?];
        for name in &self.labels {
            let text = column_of(name, Physical::BYTE_ARRAY, Repetition::REQUIRED);
            let text = text.with_logical_type(Some(LogicalType::String));
            fields.push(text.with_converted_type(ConvertedType::UTF8).build()?);
        }
        for quantity in &self.quantities {
            fields.push(column_of(&quantity.name, Physical::DOUBLE, Repetition::OPTIONAL).build()?);
        }
        Type::group_type_builder("series").with_fields(fields.into_iter().map(Arc::new).collect()).build()
    }

    /// The description in the file: that of a row, then a line for each quantity.
    fn words(&self) -> String {
        let mut words = self.about.clone();
        for Quantity { name, meaning } in &self.quantities {
            words += &format!("\n{name}: {meaning}");
        }
        words
    }
}

fn column_of(name: &str, physical: Physical, repetition: Repetition) -> PrimitiveTypeBuilder<'_> {
    Type::primitive_type_builder(name, physical).with_repetition(repetition)
}

/// Writes a table of samples to a temporary file, which replaces the table once it is complete.
pub struct SeriesWriter {
    path: PathBuf,
    replacement: Replacement,
    writer: SerializedFileWriter<File>,
    rows: Series,
    /// The number of row groups in the file.
    groups: usize,
}

impl SeriesWriter {
    /// Starts a table; finishing it replaces an existing one.
    ///
    /// # Errors
    /// Fails where the file cannot be written.
    pub fn create(path: &Path, layout: Layout) -> Result<Self, RecordError> {
        let replacement = Replacement::of(path).map_err(RecordError::write(path))?;
        let file = replacement.handle().map_err(RecordError::write(path))?;
        let about = KeyValue::new(ABOUT.to_owned(), layout.words());
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_column_dictionary_enabled(ColumnPath::from(TIME), false)
            .set_column_encoding(ColumnPath::from(TIME), Encoding::DELTA_BINARY_PACKED)
            .set_key_value_metadata(Some(vec![about]));
        let writer = layout
            .schema()
            .and_then(|schema| {
                SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
            })
            .map_err(failed(path))?;
        Ok(Self { path: path.into(), replacement, writer, rows: Series::new(layout), groups: 0 })
    }

    /// Adds a row: a text for each label, and a number for each quantity that could be read. Rows come in the order of their
    /// instants. A number that is not finite counts as not read.
    ///
    /// # Errors
    /// Fails where the file cannot be written.
    ///
    /// # Panics
    /// Panics where the number of labels or values differs from the layout.
    pub fn append(
        &mut self,
        time_ns: i64,
        labels: &[&str],
        values: &[Option<f64>],
    ) -> Result<(), RecordError> {
        self.rows.push(time_ns, labels, values);
        if self.rows.len() < GROUP_ROWS { Ok(()) } else { self.write_group() }
    }

    /// Completes the table and moves it to its final name. `origin_ns` is the instant that its rows become relative to, on the
    /// scale of the times of the rows: the start of a trial is often known only at its end.
    ///
    /// # Errors
    /// Fails where the file cannot be written.
    pub fn finish(mut self, origin_ns: i64) -> Result<(), RecordError> {
        let shifted = self.groups > 0 && origin_ns != 0;
        if !shifted {
            self.rows.shift(origin_ns);
        }
        self.write_group()?;
        self.writer.close().map_err(failed(&self.path))?;
        self.replacement.commit().map_err(RecordError::write(&self.path))?;
        if shifted { shift_file(&self.path, origin_ns) } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<(), RecordError> {
        if self.rows.len() == 0 {
            return Ok(());
        }
        write_group(&mut self.writer, &self.rows).map_err(failed(&self.path))?;
        self.rows.clear();
        self.groups += 1;
        Ok(())
    }
}

impl std::fmt::Debug for SeriesWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeriesWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A table of samples in memory, by columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The series' columns.
    pub layout: Layout,
    /// The instant of each row, in nanoseconds since the start of the trial.
    pub time_ns: Vec<i64>,
    /// The distinct texts; labels are indices into this list.
    texts: Vec<Arc<str>>,
    places: HashMap<Arc<str>, u32>,
    labels: Vec<Vec<u32>>,
    values: Vec<Vec<Option<f64>>>,
}

impl Series {
    fn new(layout: Layout) -> Self {
        let (labels, values) =
            (vec![Vec::new(); layout.labels.len()], vec![Vec::new(); layout.quantities.len()]);
        Self { layout, time_ns: Vec::new(), texts: Vec::new(), places: HashMap::new(), labels, values }
    }

    /// Reads a table.
    ///
    /// # Errors
    /// Fails where the file cannot be read or is not such a table.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        bounded::read(path, "a table of samples", |size| size.within(CELLS_PER_BYTE, MOST_CELLS), read_table)
    }

    /// The number of rows.
    #[expect(clippy::len_without_is_empty, reason = "a table without rows is nothing special")]
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// The text of a label for each row; empty where there is no such label.
    pub fn label(&self, name: &str) -> impl Iterator<Item = &str> {
        let at = self.layout.labels.iter().position(|label| label == name);
        let places = at.map_or(&[][..], |at| &self.labels[at]);
        places.iter().map(|place| &*self.texts[*place as usize])
    }

    /// The values of a quantity for each row; empty where there is no such quantity.
    pub fn values(&self, name: &str) -> &[Option<f64>] {
        let at = self.layout.quantities.iter().position(|quantity| quantity.name == name);
        at.map_or(&[], |at| &self.values[at])
    }

    fn push(&mut self, time_ns: i64, labels: &[&str], values: &[Option<f64>]) {
        assert_eq!(
            (labels.len(), values.len()),
            (self.labels.len(), self.values.len()),
            "as the layout has them"
        );
        self.time_ns.push(time_ns);
        for (at, text) in labels.iter().enumerate() {
            let place = self.place(text);
            self.labels[at].push(place);
        }
        for (column, value) in self.values.iter_mut().zip(values) {
            column.push(value.filter(|value| value.is_finite()));
        }
    }

    fn shift(&mut self, origin_ns: i64) {
        self.time_ns.iter_mut().for_each(|time_ns| *time_ns = time_ns.saturating_sub(origin_ns));
    }

    /// The index of a text in the list, to which a new text is added.
    fn place(&mut self, text: &str) -> u32 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let (place, text) = (self.texts.len() as u32, Arc::<str>::from(text));
        self.texts.push(text.clone());
        self.places.insert(text, place);
        place
    }

    fn clear(&mut self) {
        self.time_ns.clear();
        self.texts.clear();
        self.places.clear();
        self.labels.iter_mut().for_each(Vec::clear);
        self.values.iter_mut().for_each(Vec::clear);
    }
}

/// Rewrites a table, group by group, with its times relative to another instant.
fn shift_file(path: &Path, origin_ns: i64) -> Result<(), RecordError> {
    let file = File::open(path).map_err(RecordError::read(path))?;
    let reader = SerializedFileReader::new(file).map_err(failed(path))?;
    let mut rows = Series::new(read_layout(&reader).map_err(failed(path))?);
    let mut writer = SeriesWriter::create(path, rows.layout.clone())?;
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index).map_err(failed(path))?;
        read_group(&*group, &mut rows).map_err(failed(path))?;
        rows.shift(origin_ns);
        write_group(&mut writer.writer, &rows).map_err(failed(path))?;
        rows.clear();
    }
    writer.finish(0)
}

fn failed(path: &Path) -> impl FnOnce(ParquetError) -> RecordError + '_ {
    |error| RecordError::write(path)(io::Error::other(error))
}

fn write_group(writer: &mut SerializedFileWriter<File>, rows: &Series) -> ParquetResult<()> {
    let mut group = writer.next_row_group()?;
    column::<Int64Type>(&mut group, &rows.time_ns, None)?;
    let texts: Vec<ByteArray> = rows.texts.iter().map(|text| ByteArray::from(&**text)).collect();
    for places in &rows.labels {
        let texts: Vec<ByteArray> = places.iter().map(|place| texts[*place as usize].clone()).collect();
        column::<ByteArrayType>(&mut group, &texts, None)?;
    }
    for values in &rows.values {
        let present: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        let values: Vec<f64> = values.iter().flatten().copied().collect();
        column::<DoubleType>(&mut group, &values, Some(&present))?;
    }
    group.close().map(drop)
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    present: Option<&[i16]>,
) -> ParquetResult<()> {
    let mut column = group.next_column()?.expect("the schema has a column for each call");
    column.typed::<T>().write_batch(values, present, None)?;
    column.close()
}

fn read_table(reader: &SerializedFileReader<File>) -> ParquetResult<Series> {
    let mut series = Series::new(read_layout(reader)?);
    for index in 0..reader.num_row_groups() {
        read_group(&*reader.get_row_group(index)?, &mut series)?;
    }
    Ok(series)
}

fn read_layout(reader: &SerializedFileReader<File>) -> ParquetResult<Layout> {
    let metadata = reader.metadata().file_metadata();
    let pairs = metadata.key_value_metadata().into_iter().flatten();
    let words = pairs.filter(|pair| pair.key == ABOUT).find_map(|pair| pair.value.as_deref()).unwrap_or("");
    let (about, meanings) = words.split_once('\n').unwrap_or((words, ""));
    let meaning = |name: &str| {
        let lines = meanings.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| *key == name).map_or("", |(_, meaning)| meaning)
    };
    let mut layout = Layout::new(about);
    for field in metadata.schema().get_fields().iter().skip(1) {
        layout = match field.is_primitive().then(|| field.get_physical_type()) {
            Some(Physical::BYTE_ARRAY) => layout.label(field.name()),
            Some(Physical::DOUBLE) => layout.quantity(field.name(), meaning(field.name())),
            _ => return Err(ParquetError::General(format!("{} is neither text nor number", field.name()))),
        };
    }
    // Columns in another order, of other types, or without a time.
    let same = layout.schema()?.get_fields() == metadata.schema().get_fields();
    if same { Ok(layout) } else { Err(ParquetError::General("it has other columns".to_owned())) }
}

fn read_group(group: &dyn RowGroupReader, series: &mut Series) -> ParquetResult<()> {
    let (times, _) = bounded::column::<Int64Type>(group, 0)?;
    series.time_ns.extend(times);
    let labels = series.labels.len();
    for at in 0..labels {
        let (texts, _) = bounded::column::<ByteArrayType>(group, 1 + at)?;
        for text in texts {
            if text.len() > LONGEST_LABEL {
                return Err(ParquetError::General(format!(
                    "a label has {} bytes, more than {LONGEST_LABEL}",
                    text.len()
                )));
            }
            let place = series.place(text.as_utf8()?);
            series.labels[at].push(place);
        }
    }
    for at in 0..series.values.len() {
        let (values, present) = bounded::column::<DoubleType>(group, 1 + labels + at)?;
        let mut values = values.into_iter();
        let present = present.into_iter();
        series.values[at].extend(present.map(|present| if present == 1 { values.next() } else { None }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    fn layout() -> Layout {
        let layout = Layout::new("one sample of one thread").label("process").label("thread");
        layout.quantity("cpu_s", "CPU time since the start, in seconds").quantity("drops", "packets lost")
    }

    type Row = (i64, String, String, [Option<f64>; 2]);

    fn any_row() -> impl Strategy<Value = Row> {
        let number = || option::of(any::<f64>().prop_filter("finite", |number| number.is_finite()));
        (any::<i64>(), "[a-c]{0,2}", ".{0,8}", [number(), number()])
    }

    fn write(path: &Path, rows: &[Row]) {
        let mut writer = SeriesWriter::create(path, layout()).unwrap();
        for (time_ns, process, thread, values) in rows {
            writer.append(*time_ns, &[process, thread], values).unwrap();
        }
        assert!(!path.exists(), "a table is in its place only when it is whole");
        writer.finish(0).unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_table_is_read_back_as_written(rows in vec(any_row(), 0..50)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("series.parquet");
            write(&path, &rows);
            let read = Series::read(&path).unwrap();
            prop_assert_eq!(&read.layout, &layout());
            prop_assert!(read.time_ns.iter().eq(rows.iter().map(|row| &row.0)));
            prop_assert!(read.label("process").eq(rows.iter().map(|row| row.1.as_str())));
            prop_assert!(read.label("thread").eq(rows.iter().map(|row| row.2.as_str())));
            for (at, name) in ["cpu_s", "drops"].into_iter().enumerate() {
                prop_assert!(read.values(name).iter().eq(rows.iter().map(|row| &row.3[at])));
            }
            prop_assert!(read.label("drops").count() == 0 && read.values("thread").is_empty());
        }

        #[test]
        fn a_cut_table_is_an_error_that_names_the_file(rows in vec(any_row(), 0..50), cut in any::<Index>()) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("series.parquet");
            write(&path, &rows);
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..cut.index(bytes.len())]).unwrap();
            let message = Series::read(&path).unwrap_err().to_string();
            prop_assert!(message.contains("series.parquet is not a table of samples"), "{}", message);
        }
    }

    #[test]
    fn more_rows_than_a_group_holds_are_in_order_and_what_is_no_number_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("series.parquet");
        let mut writer = SeriesWriter::create(&path, layout()).unwrap();
        let count = GROUP_ROWS as i64 + 5;
        for time_ns in 0..count {
            let thread = format!("worker {}", time_ns % 7);
            writer.append(time_ns, &["server", &thread], &[Some(time_ns as f64), Some(f64::NAN)]).unwrap();
        }
        writer.finish(1000).unwrap();
        let read = Series::read(&path).unwrap();
        assert!(read.time_ns.iter().copied().eq(-1000..count - 1000));
        assert!(read.values("cpu_s").iter().zip(0..).all(|(value, at)| *value == Some(f64::from(at))));
        assert!(!folder.path().join("series.parquet.tmp").exists());
        assert!(read.values("drops").iter().all(Option::is_none));
        assert_eq!(
            read.label("thread").nth(GROUP_ROWS + 1),
            Some(&*format!("worker {}", (GROUP_ROWS + 1) % 7))
        );
    }

    #[test]
    fn a_table_of_another_kind_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("requests.parquet");
        crate::table::write(File::create(&path).unwrap(), &[]).unwrap();
        let message = Series::read(&path).unwrap_err().to_string();
        assert!(message.contains("is not a table of samples"), "{message}");
    }

    #[test]
    fn a_label_longer_than_any_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("series.parquet");
        for (length, is_read) in [(LONGEST_LABEL, true), (LONGEST_LABEL + 1, false)] {
            let mut writer = SeriesWriter::create(&path, layout()).unwrap();
            writer.append(5, &["server", &"x".repeat(length)], &[None, None]).unwrap();
            writer.finish(0).unwrap();
            assert_eq!(Series::read(&path).is_ok(), is_read, "{length}");
        }
    }
}
