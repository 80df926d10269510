//! Tables of measured points, as any tool can write them: CSV with a unit in each header.
//!
//! A header is a quantity and its unit, such as `rate_per_s`, `response_mean_ms` or `response_p99_us`; the order is
//! free, and a cell may be empty. Everything is converted to seconds here, so that no other module knows of units.
//! Columns that are no known quantity are kept as labels of their rows. Lines that begin with `#` are comments.

mod column;

use csv::{ReaderBuilder, StringRecord};
use serde::Serialize;

use column::{Column, Target};

pub use column::quantities;
pub(crate) use column::share;

/// Measured points.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// The points, in the order of the file.
    pub rows: Vec<Row>,
    /// The headers that are no known quantity; each row keeps their cells as labels.
    pub unknown: Vec<String>,
}

/// One measured point. What the table does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The line of the file, counted from 1.
    pub line: u64,
    /// Header and cell of the columns that are no known quantity.
    pub labels: Vec<(String, String)>,
    /// Requests offered per second by an open stream.
    pub rate_per_s: Option<f64>,
    /// How many users or threads a closed population has.
    pub users: Option<f64>,
    /// Mean time between an answer and the same user's next request.
    pub think_s: Option<f64>,
    /// Mean response time.
    pub response_mean_s: Option<f64>,
    /// Half the width of the 95 % interval of the mean response time.
    pub response_half_width_s: Option<f64>,
    /// Quantiles of the response time, as (p, seconds), ascending in p.
    pub response_quantiles_s: Vec<(f64, f64)>,
    /// Mean response time that the table's author computed from a model.
    pub response_model_s: Option<f64>,
    /// Mean waiting time.
    pub waiting_mean_s: Option<f64>,
    /// Completed requests per second.
    pub throughput_per_s: Option<f64>,
    /// Half the width of the 95 % interval of the throughput.
    pub throughput_half_width_per_s: Option<f64>,
    /// The share of the servers, or of the processor, that is busy.
    pub utilisation: Option<f64>,
    /// Processor time per second.
    pub cpu_cores: Option<f64>,
    /// Mean service time.
    pub service_mean_s: Option<f64>,
    /// Requests per second that one busy server completes.
    pub service_rate_per_s: Option<f64>,
    /// Squared coefficient of variation of the service time.
    pub service_scv: Option<f64>,
    /// How many servers the station has.
    pub servers: Option<f64>,
    /// The most requests that may be in the station, in service and waiting.
    pub capacity: Option<f64>,
    /// How many connections the listening socket holds before they are accepted.
    pub backlog: Option<f64>,
    /// Time that passes outside the station, such as the link's round trip.
    pub delay_s: Option<f64>,
    /// The share of the requests that was turned away or never answered.
    pub lost: Option<f64>,
    /// How many requests were measured.
    pub requests: Option<f64>,
    /// How long was measured.
    pub duration_s: Option<f64>,
}

/// Why a table cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum TableError {
    #[error("the table has no line of headers, such as rate_per_s,response_mean_s")]
    Empty,
    #[error("no column is a known quantity; known are {}", quantities())]
    NothingKnown,
    #[error(
        "line {line}: the column {column:?} has no unit that is known; write {quantity}{units}, such as \
         {quantity}{first}",
        first = units.split(", ").next().unwrap_or_default()
    )]
    Unit { line: u64, column: String, quantity: &'static str, units: String },
    #[error(
        "line {line}: the column {column:?} is no quantile; the percentage must be above 0 and below 100, as in response_p99.9_ms"
    )]
    Quantile { line: u64, column: String },
    #[error("line {line}: the columns {first:?} and {second:?} are the same quantity; leave one out")]
    Twice { line: u64, first: String, second: String },
    #[error(
        "line {line} has {cells} cells, but the headers are {headers}; an empty cell needs its comma, too"
    )]
    Cells { line: u64, cells: usize, headers: usize },
    #[error(
        "line {line}, column {column:?}: {text:?} is not a number; write it like 0.25 or 2.5e-1, or leave the cell empty"
    )]
    NotANumber { line: u64, column: String, text: String },
    #[error("line {line}, column {column:?}: {text} is not possible; it must be {must}")]
    Impossible { line: u64, column: String, text: String, must: &'static str },
    #[error("the table has headers, but no row of numbers")]
    NoRows,
    #[error("the table is not CSV: {0}")]
    NotCsv(String),
}

impl Table {
    /// Reads a table. Cells are parted by commas, or by semicolons or tabs where the headers have more of those.
    ///
    /// # Errors
    /// Fails on headers without a known quantity or unit, and on cells that are no possible number; each by line and
    /// column.
    pub fn read(text: &str) -> Result<Self, TableError> {
        let lines = text.trim_start_matches('\u{feff}').lines().zip(1u64..);
        let mut lines = lines.filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#'));
        let (headers, at) = lines.next().ok_or(TableError::Empty)?;
        let delimiter = delimiter(headers);
        let headers: Vec<String> =
            cells(headers, delimiter)?.iter().map(|cell| cell.trim().to_owned()).collect();
        let columns = columns(&headers, at)?;
        let mut table = Self::default();
        for (header, column) in headers.iter().zip(&columns) {
            if matches!(column, Column::Label(_)) {
                table.unknown.push(header.clone());
            }
        }
        for (line, number) in lines {
            table.rows.push(row(&headers, &columns, &cells(line, delimiter)?, number)?);
        }
        if table.rows.is_empty() { Err(TableError::NoRows) } else { Ok(table) }
    }

    /// What the reader should know of how the table was understood.
    pub fn warnings(&self) -> Vec<String> {
        let named = || self.unknown.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        match self.unknown.len() {
            0 => Vec::new(),
            1 => vec![format!("the column {} is no known quantity; it only names its rows", named())],
            _ => vec![format!("the columns {} are no known quantities; they only name their rows", named())],
        }
    }
}

impl Row {
    /// Where the row is, in words: "line 4", or "line 4 (length 5)" with labels.
    pub fn place(&self) -> String {
        let labels: Vec<String> = self
            .labels
            .iter()
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(name, cell)| format!("{name} {cell}"))
            .collect();
        match labels.as_slice() {
            [] => format!("line {}", self.line),
            labels => format!("line {} ({})", self.line, labels.join(", ")),
        }
    }

    /// The mean service time, as it stands there or as the inverse of the service rate.
    pub fn service_s(&self) -> Option<f64> {
        self.service_mean_s.or_else(|| Some(1.0 / self.service_rate_per_s?))
    }

    /// The rate of an open stream, as offered, or as completed where only that is told and nobody is lost.
    pub fn open_rate_per_s(&self) -> Option<f64> {
        let completed = || self.throughput_per_s.filter(|_| self.lost.is_none_or(|lost| lost == 0.0));
        if self.users.is_some() { None } else { self.rate_per_s.or_else(completed) }
    }

    /// The busy share of so many servers or cores, as told or from the processor time.
    pub fn busy(&self, servers: f64) -> Option<f64> {
        self.utilisation.or_else(|| Some(self.cpu_cores? / servers))
    }
}

/// The character that parts the headers most often.
fn delimiter(headers: &str) -> u8 {
    let count = |delimiter: &u8| headers.bytes().filter(|byte| byte == delimiter).count();
    // The last of equals wins, so the comma stands last.
    [b'\t', b';', b','].into_iter().max_by_key(count).expect("there are three")
}

/// The cells of one line. Lines are read one by one, so that faults are named by the line of the file whatever
/// comments stand before it.
fn cells(line: &str, delimiter: u8) -> Result<StringRecord, TableError> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .delimiter(delimiter)
        .flexible(true)
        .from_reader(line.as_bytes());
    let mut record = StringRecord::new();
    match reader.read_record(&mut record) {
        Ok(_) => Ok(record),
        Err(error) => Err(TableError::NotCsv(error.to_string())),
    }
}

fn columns(headers: &[String], line: u64) -> Result<Vec<Column>, TableError> {
    let mut columns: Vec<Column> = Vec::new();
    for header in headers {
        let column = Column::of(header, line)?;
        if let Column::Quantity { target, .. } = &column
            && let Some(same) = columns.iter().position(|known| known.is(target))
        {
            return Err(TableError::Twice { line, first: headers[same].clone(), second: header.clone() });
        }
        columns.push(column);
    }
    let known = columns.iter().any(|column| matches!(column, Column::Quantity { .. }));
    if known { Ok(columns) } else { Err(TableError::NothingKnown) }
}

fn row(headers: &[String], columns: &[Column], cells: &StringRecord, line: u64) -> Result<Row, TableError> {
    if cells.len() != columns.len() {
        return Err(TableError::Cells { line, cells: cells.len(), headers: columns.len() });
    }
    let mut row = Row { line, ..Row::default() };
    for ((header, column), cell) in headers.iter().zip(columns).zip(cells) {
        let cell = cell.trim();
        match column {
            Column::Label(name) => row.labels.push((name.clone(), cell.to_owned())),
            Column::Quantity { .. } if matches!(cell, "" | "-" | "–" | "NA") => (),
            Column::Quantity { target, unit, must } => {
                let place = |text: &str| (line, header.clone(), text.to_owned());
                let Some(value) = cell.parse().ok().filter(|value: &f64| value.is_finite()) else {
                    let (line, column, text) = place(cell);
                    return Err(TableError::NotANumber { line, column, text });
                };
                let value = unit.convert(value);
                if !must.holds(value) {
                    let (line, column, text) = place(cell);
                    return Err(TableError::Impossible { line, column, text, must: must.words() });
                }
                match target {
                    Target::Field(field) => *field(&mut row) = Some(value),
                    Target::Quantile(p) => row.response_quantiles_s.push((*p, value)),
                }
            }
        }
    }
    row.response_quantiles_s.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_converted_and_the_order_is_free() {
        let table = Table::read(
            "# made by hand\nresponse_p99_us, rate_per_s,Response mean (ms),utilisation_percent,length\n\
             \n2500,100,1.5,40,3\n# between\n,200,,80,5\n",
        )
        .unwrap();
        assert_eq!(table.unknown, ["length"]);
        let [first, second] = table.rows.as_slice() else { panic!("{table:?}") };
        assert_eq!((first.rate_per_s, first.utilisation), (Some(100.0), Some(0.4)));
        assert!((first.response_mean_s.unwrap() - 1.5e-3).abs() < 1e-18);
        assert_eq!(first.response_quantiles_s.len(), 1);
        assert!((first.response_quantiles_s[0].1 - 2.5e-3).abs() < 1e-18);
        assert_eq!((second.line, second.response_mean_s), (6, None));
        assert_eq!(second.place(), "line 6 (length 5)");
        assert!(table.warnings()[0].contains("\"length\""));
    }

    #[test]
    fn every_known_header_is_read_in_every_unit_it_names() {
        for name in quantities().split(", ") {
            let header = name.replace("pNN", "p95");
            let table =
                Table::read(&format!("{header}\n1\n")).unwrap_or_else(|error| panic!("{header}: {error}"));
            assert!(table.unknown.is_empty(), "{header}");
        }
        for (header, seconds) in [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9)] {
            let table = Table::read(&format!("response_p99.9_{header};users\n1;7\n")).unwrap();
            let (p, value) = table.rows[0].response_quantiles_s[0];
            assert!((p - 0.999).abs() < 1e-12 && (value / seconds - 1.0).abs() < 1e-12, "{header}");
            assert_eq!(table.rows[0].users, Some(7.0));
        }
        let table = Table::read("throughput_per_min\trps\n120\t2\n").unwrap();
        assert_eq!((table.rows[0].throughput_per_s, table.rows[0].rate_per_s), (Some(2.0), Some(2.0)));
        assert_eq!(Table::read("response_p999_s\n1\n").unwrap().rows[0].response_quantiles_s, [(0.999, 1.0)]);
    }

    #[test]
    fn faults_are_named_by_line_and_column() {
        let fault = |text: &str| Table::read(text).unwrap_err().to_string();
        let cases = [
            ("", "no line of headers"),
            ("# only a comment\n", "no line of headers"),
            ("colour,size\n1,2\n", "known are rate_per_s, users"),
            ("rate_per_s\n", "no row of numbers"),
            ("rate_per_s,response_mean\n1,2\n", "line 1: the column \"response_mean\" has no unit"),
            ("rate_per_s,response_p200_ms\n1,2\n", "line 1: the column \"response_p200_ms\" is no quantile"),
            ("rate_per_s,response_p101_s\n1,2\n", "is no quantile"),
            ("rate_per_s,response_p100_s\n1,2\n", "is no quantile"),
            ("rate_per_s,Response p0 (ms)\n1,2\n", "is no quantile; the percentage must be above 0"),
            ("rate_per_s,rate_per_min\n1,2\n", "\"rate_per_s\" and \"rate_per_min\" are the same quantity"),
            ("response_p50_s,response_p50_ms\n1,2\n", "are the same quantity"),
            ("rate_per_s,response_mean_s\n1,2\n3\n", "line 3 has 1 cells, but the headers are 2"),
            (
                "# c\nrate_per_s,response_mean_s\n\n1,fast\n",
                "line 4, column \"response_mean_s\": \"fast\" is not",
            ),
            ("rate_per_s\nNaN\n", "line 2, column \"rate_per_s\": \"NaN\" is not a number"),
            ("rate_per_s\ninf\n", "is not a number"),
            ("rate_per_s\n-3\n", "line 2, column \"rate_per_s\": -3 is not possible; it must be above zero"),
            ("servers\n2.5\n", "it must be a whole number, at least 1"),
            ("lost\n1.5\n", "it must be from 0 to 1"),
        ];
        for (text, words) in cases {
            assert!(fault(text).contains(words), "{text:?}: {}", fault(text));
        }
    }

    proptest! {
        #[test]
        fn no_text_brings_it_down(text in "[a-z_0-9,.;\"#\n -]{0,200}") {
            let _ = Table::read(&format!("rate_per_s,{text}"));
            let _ = Table::read(&text);
        }

        #[test]
        fn what_is_written_is_read_back(rates in prop::collection::vec(1e-9..1e12f64, 1..20)) {
            let text: String = rates.iter().map(|rate| format!("{rate:e},{rate}\n")).collect();
            let table = Table::read(&format!("rate_per_s,response_mean_s\n{text}")).unwrap();
            for (row, rate) in table.rows.iter().zip(&rates) {
                prop_assert_eq!(row.rate_per_s, Some(*rate));
                prop_assert_eq!(row.response_mean_s, Some(*rate));
            }
        }
    }
}
