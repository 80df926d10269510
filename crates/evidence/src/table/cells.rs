//! Cells from text: CSV with commas, semicolons or tabs, or JSON: a list of flat objects, or an object a line.

use csv::{ReaderBuilder, StringRecord};
use serde_json::{Map, Value};

/// The headers and the rows below them, each with its line in the file; of a list in JSON, its place in the list.
pub(crate) struct Cells {
    pub(crate) headers: Vec<String>,
    /// The line of the headers.
    pub(crate) at: u64,
    pub(crate) rows: Vec<(u64, Vec<String>)>,
}

/// The reason why a text holds no cells.
#[derive(Debug)]
pub(crate) enum NoCells {
    /// The text has no line.
    Empty,
    NotCsv(String),
    NotJson(String),
}

impl Cells {
    /// Reads the cells of a text; lines that begin with `#` are comments.
    pub(crate) fn read(text: &str) -> Result<Self, NoCells> {
        let text = text.trim_start_matches('\u{feff}').trim_start_matches(['\n', '\r']);
        match text.trim_start().chars().next() {
            Some('[' | '{') => of_json(text.trim_start()),
            _ => of_csv(text),
        }
    }
}

fn of_csv(text: &str) -> Result<Cells, NoCells> {
    let lines = text.lines().zip(1u64..);
    let mut lines = lines.filter(|(line, _)| !line.trim().is_empty() && !line.starts_with('#'));
    let (headers, at) = lines.next().ok_or(NoCells::Empty)?;
    let delimiter = delimiter(headers);
    let cells = |line: &str| Ok(record(line, delimiter)?.iter().map(|cell| cell.trim().to_owned()).collect());
    let rows = lines.map(|(line, number)| Ok((number, cells(line)?))).collect::<Result<_, NoCells>>()?;
    Ok(Cells { headers: cells(headers)?, at, rows })
}

/// The character that parts the headers most often.
fn delimiter(headers: &str) -> u8 {
    let count = |delimiter: &u8| headers.bytes().filter(|byte| byte == delimiter).count();
    // The last of equals wins, so the comma stands last.
    [b'\t', b';', b','].into_iter().max_by_key(count).expect("there are three")
}

/// The cells of one line. Lines are read one by one, so that faults are named by the line of the file whatever
/// comments stand before it.
fn record(line: &str, delimiter: u8) -> Result<StringRecord, NoCells> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .delimiter(delimiter)
        .flexible(true)
        .from_reader(line.as_bytes());
    let mut record = StringRecord::new();
    reader.read_record(&mut record).map_err(|error| NoCells::NotCsv(error.to_string()))?;
    Ok(record)
}

fn of_json(text: &str) -> Result<Cells, NoCells> {
    let not_json = |why: serde_json::Error| NoCells::NotJson(why.to_string());
    let values = match serde_json::from_str(text) {
        Ok(Value::Array(values)) => values,
        Ok(value) => vec![value],
        // An object for each line.
        Err(_) => {
            let each = serde_json::Deserializer::from_str(text).into_iter::<Value>();
            each.collect::<Result<_, _>>().map_err(not_json)?
        }
    };
    let objects: Vec<&Map<String, Value>> = values.iter().filter_map(Value::as_object).collect();
    if objects.is_empty() {
        return numbers(&values);
    }
    if objects.len() < values.len() {
        return Err(NoCells::NotJson("some rows are objects and some are not".into()));
    }
    let mut headers: Vec<String> = Vec::new();
    for name in objects.iter().flat_map(|object| object.keys()) {
        if !headers.contains(name) {
            headers.push(name.clone());
        }
    }
    let row = |object: &Map<String, Value>| -> Result<Vec<String>, NoCells> {
        headers.iter().map(|name| cell(name, object.get(name))).collect()
    };
    let rows = objects.iter().zip(1..).map(|(object, number)| Ok((number, row(object)?)));
    Ok(Cells { rows: rows.collect::<Result<_, NoCells>>()?, headers, at: 1 })
}

/// A list of numbers is a column without a header.
fn numbers(values: &[Value]) -> Result<Cells, NoCells> {
    let mut rows =
        values.iter().zip(1..).map(|(value, number)| Ok((number, vec![cell("list", Some(value))?])));
    let (at, headers) = rows.next().ok_or(NoCells::Empty)??;
    Ok(Cells { headers, at, rows: rows.collect::<Result<_, NoCells>>()? })
}

fn cell(name: &str, value: Option<&Value>) -> Result<String, NoCells> {
    match value {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.trim().to_owned()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        Some(Value::Array(_) | Value::Object(_)) => {
            Err(NoCells::NotJson(format!("the value of {name:?} is a list or an object, not a number")))
        }
    }
}
