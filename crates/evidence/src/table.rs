//! Tables of measured points, as any tool can write them: CSV or JSON (and Parquet, which `kendall_archive::points` makes JSON) with a unit in each header, or the outputs of load generators.
//!
//! A header is a quantity and its unit, such as `rate_per_s`, `response_mean_ms` or `response_p99_us`, or what people call it, such as `rps`
//! or `p99_us`; the order is free, and a cell may be empty. Everything is converted to seconds here, so that no other module knows of units.
//! Columns that are not a known quantity are kept as labels of their rows. Lines that begin with `#` are comments.

mod cells;
mod column;
mod name;
mod output;

use serde::Serialize;

use column::{Column, Target};

pub(crate) use cells::{Cells, NoCells};
pub use column::quantities;
pub(crate) use column::{RATE, SHARE, TIME, share, split};
pub(crate) use name::{ALSO, canonical};

/// Measured points.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// The points, in the order of the file.
    pub rows: Vec<Row>,
    /// The headers that are not a known quantity; each row keeps their cells as labels.
    pub unknown: Vec<String>,
    /// The other headers that the table knows, each with the quantity that it stands for.
    #[serde(skip)]
    pub known: Vec<(String, String)>,
    /// The assumptions about the outputs of load generators, as sentences.
    #[serde(skip)]
    pub assumed: Vec<String>,
}

/// One measured point. Values that the table lacks are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The file, where there are several or it is not a table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the file, counted from 1; 0 of the output of a load generator, which is not a row.
    pub line: u64,
    /// Header and cell of the columns that are not a known quantity.
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
    /// The share of the requests that was rejected or never answered.
    pub lost: Option<f64>,
    /// How many requests were measured.
    pub requests: Option<f64>,
    /// The duration of the measurement.
    pub duration_s: Option<f64>,
}

/// The reason why a table cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum TableError {
    #[error("the table has no line of headers; begin it with one, such as rate_per_s,response_mean_s")]
    Empty,
    #[error(
        "no column is a known quantity: there {} {found}. Known columns are {}. The names {ALSO} are understood too, and so are the \
        outputs of {}",
        if found.contains(", ") { "are" } else { "is" }, quantities(), kendall_outputs::tools()
    )]
    NothingKnown { found: String },
    #[error(
        "line {line}: the column {column:?} has no known unit; write {}",
        units.split(", ").map(|unit| format!("{quantity}{unit}")).collect::<Vec<_>>().join(", ")
    )]
    Unit { line: u64, column: String, quantity: String, units: String },
    #[error(
        "line {line}: the column {column:?} is not a quantile; the percentage must be above 0 and below 100, as in response_p99.9_ms"
    )]
    Quantile { line: u64, column: String },
    #[error("line {line}: the columns {first:?} and {second:?} are the same quantity; leave one out")]
    Twice { line: u64, first: String, second: String },
    #[error(
        "line {line} has {cells} cells, but there are {headers} headers; an empty cell needs its comma, too"
    )]
    Cells { line: u64, cells: usize, headers: usize },
    #[error(
        "line {line}, column {column:?}: {text:?} is not a number; write it like 0.25 or 2.5e-1, or leave the cell empty"
    )]
    NotANumber { line: u64, column: String, text: String },
    #[error("line {line}, column {column:?}: {text} is not possible; it must be {must}")]
    Impossible { line: u64, column: String, text: String, must: &'static str },
    #[error("the table has headers, but no row of numbers; add at least one")]
    NoRows,
    #[error("the table is not CSV: {0}")]
    NotCsv(String),
    #[error(
        "the input is JSON, but neither a list of objects with a number for each name, such as [{{\"rate\": 100, \"mean_ms\": 5}}], nor an output \
         of {}: {why}",
        kendall_outputs::tools()
    )]
    NotJson { why: String },
    #[error(transparent)]
    Output(#[from] kendall_outputs::OutputError),
}

impl Table {
    /// Reads a table, or the output of a load generator. Cells are parted by commas, or by semicolons or tabs where the headers have more
    /// of those.
    ///
    /// # Errors
    /// Fails on headers without a known quantity or unit, and on cells that are not a possible number; each by line and
    /// column.
    pub fn read(text: &str) -> Result<Self, TableError> {
        if let Some(outputs) = kendall_outputs::read(text)? {
            return Ok(output::table(&outputs));
        }
        let Cells { headers, at, rows } = Cells::read(text).map_err(|why| match why {
            NoCells::Empty => TableError::Empty,
            NoCells::NotCsv(why) => TableError::NotCsv(why),
            NoCells::NotJson(why) => TableError::NotJson { why },
        })?;
        let columns = columns(&headers, at)?;
        let mut table = Self::default();
        for (header, column) in headers.iter().zip(&columns) {
            match column {
                Column::Label(_) => table.unknown.push(header.clone()),
                Column::Quantity { name, .. } => table.known.push((header.clone(), name.clone())),
            }
        }
        for (line, cells) in &rows {
            table.rows.push(row(&headers, &columns, cells, *line)?);
        }
        if table.rows.is_empty() { Err(TableError::NoRows) } else { Ok(table) }
    }

    /// Adds the rows of another file. Rows of both name their files from then on.
    pub fn add(&mut self, mut other: Self) {
        let new = |name: &String| !self.unknown.contains(name);
        let unknown: Vec<String> = other.unknown.into_iter().filter(new).collect();
        self.unknown.extend(unknown);
        self.known.append(&mut other.known);
        self.assumed.append(&mut other.assumed);
        self.rows.append(&mut other.rows);
    }

    /// Returns the table with rows that name their file.
    pub fn of_file(mut self, name: &str) -> Self {
        self.rows.iter_mut().for_each(|row| row.file = Some(name.to_owned()));
        self
    }

    /// The warnings on how the table was understood.
    pub fn warnings(&self) -> Vec<String> {
        let named = quoted(&self.unknown);
        let unknown = match self.unknown.len() {
            0 => None,
            1 => Some(format!("the column {named} is not a known quantity; it only labels the rows")),
            _ => Some(format!("the columns {named} are not known quantities; they only label the rows")),
        };
        let mut assumed = self.assumed.clone();
        assumed.dedup();
        unknown.into_iter().chain(assumed).collect()
    }

    /// The columns and the quantities that they were taken for, as a sentence for a table with too few known columns.
    pub fn understood(&self) -> String {
        let known = self.known.iter().map(|(header, quantity)| format!("{header:?} ({quantity})"));
        let unknown = self.unknown.iter().map(|header| format!("{header:?} (not a known quantity)"));
        let columns = known.chain(unknown).collect::<Vec<_>>().join(", ");
        format!(
            "its columns are {columns}; the load is rate, throughput or users, and the fitted value is mean_ms or throughput; the \
             names {ALSO} are understood too"
        )
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

impl Row {
    /// Where the row is, in words: "line 4", or "line 4 (length 5)" with labels; "b.csv, line 4" of one of several files.
    pub fn place(&self) -> String {
        let labels: Vec<String> = self
            .labels
            .iter()
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(name, cell)| format!("{name} {cell}"))
            .collect();
        let line = (self.line > 0).then(|| format!("line {}", self.line));
        let place: Vec<String> = self.file.iter().cloned().chain(line).collect();
        let place = place.join(", ");
        match labels.as_slice() {
            [] => place,
            labels if place.is_empty() => labels.join(", "),
            labels => format!("{place} ({})", labels.join(", ")),
        }
    }

    /// The mean service time, as given or as the inverse of the service rate.
    pub fn service_s(&self) -> Option<f64> {
        self.service_mean_s.or_else(|| Some(1.0 / self.service_rate_per_s?))
    }

    /// The rate of an open stream, as offered, or as completed if only that is given and no request is lost.
    pub fn open_rate_per_s(&self) -> Option<f64> {
        let completed = || self.throughput_per_s.filter(|_| self.lost.is_none_or(|lost| lost == 0.0));
        if self.users.is_some() { None } else { self.rate_per_s.or_else(completed) }
    }

    /// The busy share of `servers` or cores, as given or from the processor time.
    pub fn busy(&self, servers: f64) -> Option<f64> {
        self.utilisation.or_else(|| Some(self.cpu_cores? / servers))
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
    if known { Ok(columns) } else { Err(TableError::NothingKnown { found: quoted(headers) }) }
}

fn row(headers: &[String], columns: &[Column], cells: &[String], line: u64) -> Result<Row, TableError> {
    if cells.len() != columns.len() {
        return Err(TableError::Cells { line, cells: cells.len(), headers: columns.len() });
    }
    let mut row = Row { line, ..Row::default() };
    for ((header, column), cell) in headers.iter().zip(columns).zip(cells) {
        let cell = cell.trim();
        match column {
            Column::Label(name) => row.labels.push((name.clone(), cell.to_owned())),
            Column::Quantity { .. } if matches!(cell, "" | "-" | "–" | "NA") => (),
            Column::Quantity { target, unit, must, .. } => {
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
    fn common_names_json_and_outputs_are_the_same_table() {
        let table = Table::read("rps,avg (ms),99th percentile (us),errors %\n100,5,9000,1\n").unwrap();
        let json = "[{\"rate\": 100, \"mean_s\": 0.005, \"p99_ms\": 9, \"error_rate\": 0.01}]";
        let lines = "{\"qps\": 100, \"latency_ms\": 5, \"p99_ms\": 9, \"lost\": 0.01}\n";
        for text in [json, lines] {
            let same = Table::read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((same.rows[0].rate_per_s, same.rows[0].lost), (Some(100.0), Some(0.01)));
            assert!(
                (same.rows[0].response_mean_s.unwrap() - table.rows[0].response_mean_s.unwrap()).abs()
                    < 1e-12
            );
            assert_eq!(same.rows[0].response_quantiles_s[0].0, table.rows[0].response_quantiles_s[0].0);
        }
        assert!(
            table
                .understood()
                .starts_with("its columns are \"rps\" (rate_per_s), \"avg (ms)\" (response_mean_ms)")
        );
        let wrk = "Running 10s test @ http://localhost/\n  2 threads and 8 connections\n  Thread Stats   Avg\n    Latency     4.00ms\n  \
                   20000 requests in 10.00s, 16.00MB read\nRequests/sec:   2000.00\n";
        let mut all = Table::default();
        all.add(table.of_file("a.csv"));
        all.add(Table::read(wrk).unwrap().of_file("wrk.txt"));
        let row = &all.rows[1];
        assert_eq!((row.users, row.think_s, row.response_mean_s), (Some(8.0), Some(0.0), Some(0.004)));
        assert_eq!([all.rows[0].place(), row.place()], ["a.csv, line 2", "wrk.txt (from wrk)"]);
    }

    #[test]
    fn faults_are_named_by_line_and_column() {
        let fault = |text: &str| Table::read(text).unwrap_err().to_string();
        let cases = [
            ("", "no line of headers"),
            ("# only a comment\n", "no line of headers"),
            ("colour,size\n1,2\n", "Known columns are rate_per_s, users"),
            ("rate_per_s\n", "no row of numbers"),
            ("colour,size\n1,2\n", "there are \"colour\", \"size\". Known columns are"),
            ("colour,size\n1,2\n", "rate, rps, qps, throughput, mean_ms"),
            ("rate_per_s,response_mean\n1,2\n", "line 1: the column \"response_mean\" has no known unit"),
            ("rate,p99\n1,2\n", "the column \"p99\" has no known unit; write p99_s, p99_ms, p99_us, p99_ns"),
            ("rate,avg\n1,2\n", "write mean_s, mean_ms, mean_us"),
            ("rate,errors\n1,7\n", "a number of requests is not a share"),
            ("{\"rate\": {}}", "the value of \"rate\" is a list or an object"),
            ("[{\"rate\": 1}", "neither a list of objects"),
            ("{\"metrics\": {\"http_reqs\": {\"count\": 5}}}", "of k6, but it has no number"),
            (
                "rate_per_s,response_p200_ms\n1,2\n",
                "line 1: the column \"response_p200_ms\" is not a quantile",
            ),
            ("rate_per_s,response_p101_s\n1,2\n", "is not a quantile"),
            ("rate_per_s,response_p100_s\n1,2\n", "is not a quantile"),
            ("rate_per_s,Response p0 (ms)\n1,2\n", "is not a quantile; the percentage must be above 0"),
            ("rate_per_s,rate_per_min\n1,2\n", "\"rate_per_s\" and \"rate_per_min\" are the same quantity"),
            ("response_p50_s,response_p50_ms\n1,2\n", "are the same quantity"),
            ("rate_per_s,response_mean_s\n1,2\n3\n", "line 3 has 1 cells, but there are 2 headers"),
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
