//! `kendall solve --batch`: rows `model,inputs,quantity` in, the same rows with their values out.
//!
//! One row is in memory at a time. What has been answered is written before more input is waited for, so that a program
//! at the other end of two pipes can ask one row after the other.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::{Context, bail};
use csv::{ByteRecord, QuoteStyle, ReaderBuilder, Writer, WriterBuilder};
use kendall_theory::batch::{self, Inputs};

/// Answers the rows of a file, or of standard input where its name is `-`.
///
/// # Errors
/// Fails where the file cannot be read or lacks a column, and where the answers cannot be written. A row without an answer is not an
/// error: its column `reason` says why.
pub(crate) fn answer(path: &Path) -> anyhow::Result<ExitCode> {
    let input: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => Box::new(File::open(path).with_context(|| format!("cannot read {}", path.display()))?),
    };
    match answer_rows(input, io::stdout().lock()) {
        Ok(Count { without: 0, .. }) => Ok(ExitCode::SUCCESS),
        Ok(Count { rows, without }) => {
            kendall_stdio::note(&format!(
                "kendall: {without} of {rows} rows of {} have no value; the column reason says why",
                path.display()
            ));
            Ok(ExitCode::FAILURE)
        }
        Err(error) if kendall_stdio::is_closed_pipe(&error) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error.context(path.display().to_string())),
    }
}

/// The numbers of rows and of rows without a value.
#[derive(Debug, Default, PartialEq)]
struct Count {
    rows: u64,
    without: u64,
}

fn answer_rows(input: impl Read, output: impl Write) -> anyhow::Result<Count> {
    let mut input = BufReader::new(input);
    let delimiter = delimiter(input.fill_buf().context("cannot read")?);
    // Between tabs nothing is quoted; elsewhere, what must be.
    let tabs = delimiter == b'\t';
    let quotes = if tabs { QuoteStyle::Never } else { QuoteStyle::Necessary };
    let writer = WriterBuilder::new().delimiter(delimiter).quote_style(quotes).from_writer(output);
    let writer = Rc::new(RefCell::new(writer));
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .quoting(!tabs)
        .flexible(true)
        .from_reader(Unhurried { input, output: Rc::clone(&writer) });
    let layout = Layout::of(reader.byte_headers()?)?;
    let write = |fields: &[&[u8]]| writer.borrow_mut().write_record(fields).map_err(io::Error::from);
    write(&layout.header(reader.byte_headers()?))?;
    let mut count = Count::default();
    let mut row = ByteRecord::new();
    while reader.read_byte_record(&mut row)? {
        let (value, reason) = match layout.value(&row) {
            Ok(value) => (format!("{value:?}"), String::new()),
            Err(reason) => (String::new(), reason),
        };
        count.rows += 1;
        count.without += u64::from(value.is_empty());
        write(&layout.row(&row, value.as_bytes(), reason.as_bytes()))?;
    }
    writer.borrow_mut().flush()?;
    Ok(count)
}

/// What separates the names of the columns.
fn delimiter(head: &[u8]) -> u8 {
    head.iter().copied().take_while(|&byte| byte != b'\n').find(|byte| b",;\t".contains(byte)).unwrap_or(b',')
}

/// Input before whose every read the output is flushed.
struct Unhurried<R, W: Write> {
    input: R,
    output: Rc<RefCell<Writer<W>>>,
}

impl<R: Read, W: Write> Read for Unhurried<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.output.borrow_mut().flush()?;
        self.input.read(buffer)
    }
}

/// Where the columns stand. Those that are not there are added at the end; all others stay as they are.
struct Layout {
    model: usize,
    inputs: usize,
    quantity: usize,
    value: usize,
    reason: usize,
    /// The column for the given values.
    expected: Option<usize>,
    /// How many columns are given.
    given: usize,
    /// The names of those that are added.
    added: Vec<&'static str>,
}

impl Layout {
    fn of(header: &ByteRecord) -> anyhow::Result<Self> {
        let place = |name: &str| header.iter().position(|field| field.trim_ascii() == name.as_bytes());
        let need = |name: &str| match place(name) {
            Some(place) => Ok(place),
            None => bail!("has no column {name:?}; the first line must name model, inputs and quantity"),
        };
        let mut added = Vec::new();
        let mut add = |name| {
            added.push(name);
            header.len() + added.len() - 1
        };
        let (given_value, given_expected) = (place("value"), place("expected"));
        Ok(Self {
            model: need("model")?,
            inputs: need("inputs")?,
            quantity: need("quantity")?,
            value: given_value.unwrap_or_else(|| add("value")),
            reason: place("reason").unwrap_or_else(|| add("reason")),
            expected: (given_value.is_some() && given_expected.is_none()).then(|| add("expected")),
            given: header.len(),
            added,
        })
    }

    fn header<'a>(&self, header: &'a ByteRecord) -> Vec<&'a [u8]> {
        header.iter().chain(self.added.iter().map(|name| name.as_bytes())).collect()
    }

    /// The fields of a row that is answered so.
    fn row<'a>(&self, row: &'a ByteRecord, value: &'a [u8], reason: &'a [u8]) -> Vec<&'a [u8]> {
        let mut fields: Vec<&[u8]> = row.iter().take(self.given).collect();
        fields.resize(self.given + self.added.len(), b"");
        if let Some(expected) = self.expected {
            fields[expected] = fields[self.value];
        }
        fields[self.value] = value;
        fields[self.reason] = reason;
        fields
    }

    /// The value that a row asks for, or why it has none.
    fn value(&self, row: &ByteRecord) -> Result<f64, String> {
        if row.len() > self.given {
            return Err(format!(
                "the row has {} fields, the header {}; quote inputs that contain commas, and double each quote in them",
                row.len(),
                self.given
            ));
        }
        let text = |place| {
            let field = row.get(place).unwrap_or_default();
            std::str::from_utf8(field).map(str::trim).map_err(|_| "the row is not in UTF-8".to_owned())
        };
        let (model, inputs, quantity) = (text(self.model)?, text(self.inputs)?, text(self.quantity)?);
        let value = Inputs::read(inputs).and_then(|inputs| batch::value(model, &inputs, quantity));
        value.map_err(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(rows: &str) -> (String, Count) {
        let mut output = Vec::new();
        let count = answer_rows(rows.as_bytes(), &mut output).unwrap();
        (String::from_utf8(output).unwrap(), count)
    }

    #[test]
    fn a_row_is_written_back_with_its_value_in_full() {
        let (text, count) =
            answered("model,inputs,quantity\nerlang_c,\"{\"\"m\"\": 2, \"\"a\"\": 1}\",P_wait\n");
        let inputs = Inputs::read(r#"{"m": 2, "a": 1}"#).unwrap();
        let value = batch::value("erlang_c", &inputs, "P_wait").unwrap();
        let (header, row) = text.split_once('\n').unwrap();
        assert_eq!((header, count), ("model,inputs,quantity,value,reason", Count { rows: 1, without: 0 }));
        let written = row.strip_prefix("erlang_c,\"{\"\"m\"\": 2, \"\"a\"\": 1}\",P_wait,").unwrap();
        assert_eq!(written.strip_suffix(",\n").unwrap().parse(), Ok(value), "{written} is not {value:e}");
    }

    #[test]
    fn a_row_without_an_answer_says_why_and_stops_no_other() {
        let rows = "model\tinputs\tquantity\n\
                    mm1\t{\"lam\": 2, \"mu\": 1}\tR_mean\n\
                    mm7\t{}\tR_mean\n\
                    mm1\t{\"lam\": 1,\tR_mean\n\
                    mm1\n\
                    mm1\t{\"lam\": 1, \"mu\": 2}\tR_mean\tone\ttoo many\n\
                    mm1\t{\"lam\": 1, \"mu\": 2}\tR_mean\n";
        let (text, count) = answered(rows);
        let reasons: Vec<&str> =
            text.lines().skip(1).map(|line| line.split('\t').nth(4).unwrap_or_default()).collect();
        assert_eq!(count, Count { rows: 6, without: 5 });
        let parts = ["unstable", "mm7", "JSON", "JSON", "5 fields, the header 3", ""];
        for (reason, part) in reasons.iter().zip(parts) {
            assert!(reason.contains(part), "{reason:?} should say {part:?}");
        }
        assert!(text.ends_with("\tR_mean\t1.0\t\n"), "{text}");
    }

    #[test]
    fn a_given_value_is_kept_beside_the_computed_one() {
        let (text, _) =
            answered("value;model;quantity;inputs;source\n7;mm1;L;{\"lam\": 1, \"mu\": 2};a book\n");
        let expected = "value;model;quantity;inputs;source;reason;expected\n\
                        1.0;mm1;L;\"{\"\"lam\"\": 1, \"\"mu\"\": 2}\";a book;;7\n";
        assert_eq!(text, expected);
        assert_eq!(answered(&text).0, text, "answering again changes nothing");
    }

    #[test]
    fn a_table_without_the_columns_is_refused() {
        for (table, missing) in [("", "model"), ("model,quantity\n", "inputs"), ("mm1,{},L\n", "model")] {
            let why = answer_rows(table.as_bytes(), io::sink()).unwrap_err().to_string();
            assert!(why.contains(&format!("no column {missing:?}")), "{why}");
        }
    }

    #[test]
    fn answers_are_out_before_more_rows_are_waited_for() {
        /// Hands out one row a read, and sees how much has been written until then.
        struct Dialogue<'a> {
            rows: std::slice::Iter<'a, &'a str>,
            written: Rc<RefCell<Vec<u8>>>,
            seen: Vec<usize>,
        }
        impl Read for &mut Dialogue<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.seen.push(self.written.borrow().iter().filter(|&&byte| byte == b'\n').count());
                self.rows.next().map_or(Ok(0), |row| row.as_bytes().read(buffer))
            }
        }
        struct Sink(Rc<RefCell<Vec<u8>>>);
        impl Write for Sink {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.borrow_mut().write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let rows = [
            "model\tinputs\tquantity\n",
            "erlang_b\t{\"a\": 1}\tP_block\n",
            "erlang_b\t{\"a\": 2}\tP_block\n",
        ];
        let written = Rc::new(RefCell::new(Vec::new()));
        let mut dialogue = Dialogue { rows: rows.iter(), written: Rc::clone(&written), seen: Vec::new() };
        answer_rows(&mut dialogue, Sink(Rc::clone(&written))).unwrap();
        assert_eq!(dialogue.seen[..4], [0, 1, 2, 3]);
    }
}
