//! Instants of arrival from files: a list of seconds, an access log of nginx or Apache, or a column of a table.
//!
//! A list is read unchanged. The stamps of logs and tables are calendar times, and need not be in order, since a log is written
//! as answers end: they are sorted and counted from the first. Where all of them are whole seconds, the requests of a second are
//! spread evenly or at random within it.

use std::io::{BufRead, BufReader};
use std::path::Path;

use jiff::Timestamp;
use jiff::fmt::strtime;
use kendall_station::Arrivals;
use kendall_stats::random::{Purpose, stream, unit};

/// The most requests of a trace, which take 8 bytes of memory each.
const MOST: usize = 100_000_000;
/// The form of an instant in access logs, between square brackets: 21/Nov/2026:16:30:00 +0000.
const LOGGED: &str = "%d/%b/%Y:%H:%M:%S %z";

/// How to spread the requests of a second where a log has whole seconds only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ties {
    /// At equal distances.
    Even,
    /// At instants drawn uniformly: the same ones in every trial.
    Random,
}

/// How to read a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    /// The column of a table (CSV with a line of names, or JSON lines) that holds the instants.
    pub(crate) column: Option<&'a str>,
    pub(crate) ties: Ties,
    /// The multiple of the original speed.
    pub(crate) speed: f64,
}

/// The longest trace of bare numbers.
const MOST_BYTES: u64 = 1 << 30;

/// Reads the trace in a file.
///
/// # Errors
/// Returns the reason as a sentence, and the line.
pub(crate) fn read(path: &Path, how: Reading<'_>) -> Result<Arrivals, String> {
    let instants_s = instants_s(path, how).map_err(|why| format!("{}: {why}", path.display()))?;
    Ok(Arrivals::Trace { instants_s: instants_s.into_iter().map(|at_s| at_s / how.speed).collect() })
}

fn instants_s(path: &Path, how: Reading<'_>) -> Result<Vec<f64>, String> {
    let open =
        || kendall_files::open(path).map(BufReader::new).map_err(|error| format!("cannot read it: {error}"));
    let first = first_line(open()?)?;
    let stamps = match how.column {
        Some(column) if first.starts_with('{') => json(open()?, column)?,
        Some(column) => csv(open()?, column)?,
        None if logged(&first).is_some() => lines(open()?, |line| {
            logged(line).ok_or_else(|| format!("{line:?} holds no instant like [21/Nov/2026:16:30:00 +0000]"))
        })?,
        None => {
            let text = kendall_files::read_text(path, MOST_BYTES)
                .map_err(|error| format!("cannot read it: {error}"))?;
            let Arrivals::Trace { instants_s } = Arrivals::trace(&text).map_err(|error| error.to_string())?
            else {
                unreachable!("a trace is read")
            };
            return Ok(instants_s.to_vec());
        }
    };
    Ok(laid_out(stamps, how.ties))
}

/// The first line that is neither blank nor a comment; empty if all are.
fn first_line(file: impl BufRead) -> Result<String, String> {
    for line in file.lines() {
        let line = line.map_err(|error| format!("cannot read it: {error}"))?;
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            return Ok(line.to_owned());
        }
    }
    Err("the trace holds no instant".into())
}

/// One stamp a line.
fn lines(
    file: impl BufRead,
    stamp: impl Fn(&str) -> Result<Timestamp, String>,
) -> Result<Vec<Timestamp>, String> {
    let mut stamps = Vec::new();
    for (number, line) in file.lines().enumerate() {
        let line = line.map_err(|error| format!("cannot read it: {error}"))?;
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            let stamp = stamp(line).map_err(|why| format!("line {}: {why}", number + 1))?;
            push(&mut stamps, stamp)?;
        }
    }
    Ok(stamps)
}

fn push(stamps: &mut Vec<Timestamp>, stamp: Timestamp) -> Result<(), String> {
    if stamps.len() == MOST {
        return Err(format!("it holds more than {MOST} requests; cut it"));
    }
    stamps.push(stamp);
    Ok(())
}

fn json(file: impl BufRead, column: &str) -> Result<Vec<Timestamp>, String> {
    lines(file, |line| {
        let object: serde_json::Value =
            serde_json::from_str(line).map_err(|error| format!("it is not valid JSON: {error}"))?;
        match object.get(column) {
            Some(serde_json::Value::String(text)) => written(text),
            Some(serde_json::Value::Number(number)) => written(&number.to_string()),
            _ => Err(format!("it has no {column:?} that is a number or a text")),
        }
    })
}

fn csv(file: impl BufRead, column: &str) -> Result<Vec<Timestamp>, String> {
    let mut table = csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(file);
    let names = table.headers().map_err(|error| error.to_string())?;
    let Some(at) = names.iter().position(|name| name == column) else {
        let known: Vec<&str> = names.iter().collect();
        return Err(format!("it has no column {column:?}; its columns are {}", known.join(", ")));
    };
    let mut stamps = Vec::new();
    for record in table.records() {
        let record = record.map_err(|error| error.to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        let stamp = written(record.get(at).unwrap_or("")).map_err(|why| format!("line {line}: {why}"))?;
        push(&mut stamps, stamp)?;
    }
    Ok(stamps)
}

/// The instant in square brackets of a line of an access log in the common or the combined format.
fn logged(line: &str) -> Option<Timestamp> {
    let (_, rest) = line.split_once('[')?;
    let (instant, _) = rest.split_once(']')?;
    strtime::parse(LOGGED, instant).and_then(|parsed| parsed.to_timestamp()).ok()
}

/// An instant of a table: seconds, a calendar time by RFC 3339, or the form of access logs.
fn written(text: &str) -> Result<Timestamp, String> {
    let seconds = |number: f64| {
        let whole = number.floor();
        let ns = ((number - whole) * 1e9).round() as i32;
        Timestamp::new(whole as i64, ns.min(999_999_999)).ok()
    };
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    let bare = text.trim_matches(['[', ']']);
    number
        .and_then(seconds)
        .or_else(|| text.parse().ok())
        .or_else(|| strtime::parse(LOGGED, bare).and_then(|parsed| parsed.to_timestamp()).ok())
        .ok_or_else(|| {
            format!("{text:?} is not an instant; write seconds, 2026-11-21T16:30:00.25Z, or 21/Nov/2026:16:30:00 +0000")
        })
}

/// Sorted, and counted from the first, in seconds.
fn laid_out(mut stamps: Vec<Timestamp>, ties: Ties) -> Vec<f64> {
    stamps.sort_unstable();
    let Some(&first) = stamps.first() else { return Vec::new() };
    let since_s = |stamp: &Timestamp| (stamp.as_nanosecond() - first.as_nanosecond()) as f64 / 1e9;
    if stamps.iter().any(|stamp| stamp.subsec_nanosecond() != 0) {
        return stamps.iter().map(since_s).collect();
    }
    let mut instants_s = Vec::with_capacity(stamps.len());
    for second in stamps.chunk_by(|a, b| a == b) {
        let (from_s, n) = (since_s(&second[0]), second.len());
        let begin = instants_s.len();
        match ties {
            Ties::Even => instants_s.extend((0..n).map(|i| from_s + (i as f64 + 0.5) / n as f64)),
            Ties::Random => {
                let mut rng = stream(0, Purpose::Arrivals, second[0].as_second().cast_unsigned());
                instants_s.extend((0..n).map(|_| from_s + unit(&mut rng)));
                instants_s[begin..].sort_by(f64::total_cmp);
            }
        }
    }
    instants_s
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(column: Option<&str>) -> Reading<'_> {
        Reading { column, ties: Ties::Even, speed: 1.0 }
    }

    fn of(text: &str, how: Reading<'_>) -> Result<Vec<f64>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let Arrivals::Trace { instants_s } = read(file.path(), how)? else { panic!("a trace") };
        Ok(instants_s.to_vec())
    }

    const LOG: &str = "\
        127.0.0.1 - - [21/Nov/2026:16:30:01 +0000] \"GET / HTTP/1.1\" 200 615 \"-\" \"curl/8\"\n\
        ::1 - bob [21/Nov/2026:17:30:00 +0100] \"GET /[x] HTTP/1.1\" 200 615 \"-\" \"curl/8\"\n\
        127.0.0.1 - - [21/Nov/2026:16:30:01 +0000] \"GET / HTTP/1.1\" 404 12 \"-\" \"-\"\n\
        127.0.0.1 - - [21/Nov/2026:16:30:04 +0000] \"GET / HTTP/1.1\" 200 615 \"-\" \"-\"\n";

    #[test]
    fn an_access_log_is_sorted_and_its_seconds_are_filled() {
        assert_eq!(of(LOG, reading(None)), Ok(vec![0.5, 1.25, 1.75, 4.5]));
        let twice = Reading { speed: 2.0, ..reading(None) };
        assert_eq!(of(LOG, twice), Ok(vec![0.25, 0.625, 0.875, 2.25]));
        let random = Reading { ties: Ties::Random, ..reading(None) };
        let drawn = of(LOG, random).unwrap();
        assert_eq!(drawn.iter().map(|at_s| at_s.floor()).collect::<Vec<_>>(), [0.0, 1.0, 1.0, 4.0]);
        assert!(drawn.is_sorted() && drawn == of(LOG, random).unwrap());
    }

    #[test]
    fn a_list_is_taken_as_it_is() {
        assert_eq!(
            of("# seconds\n0.5\n0.5\n2\n", Reading { speed: 0.5, ..reading(None) }),
            Ok(vec![1.0, 1.0, 4.0])
        );
        assert!(of("1\n0\n", reading(None)).unwrap_err().contains("line 2"));
        assert!(of("\n# nothing\n", reading(None)).unwrap_err().contains("no instant"));
    }

    #[test]
    fn a_column_is_found_by_its_name_in_csv_and_in_json_lines() {
        let csv = "id,at\n1, 1700000000.5\n2,1700000000.25\n";
        assert_eq!(of(csv, reading(Some("at"))), Ok(vec![0.0, 0.25]));
        let json = "{\"time\": \"2026-11-21T16:30:00.75Z\", \"n\": 1}\n{\"time\": \"2026-11-21T17:30:00.5+01:00\"}\n";
        assert_eq!(of(json, reading(Some("time"))), Ok(vec![0.0, 0.25]));
        let seconds = "{\"t\": 5}\n{\"t\": 5}\n{\"t\": 7}\n";
        assert_eq!(of(seconds, reading(Some("t"))), Ok(vec![0.25, 0.75, 2.5]));
    }

    #[test]
    fn faults_name_their_line_and_what_there_is() {
        assert!(of("id,at\n1,2\n", reading(Some("when"))).unwrap_err().contains("its columns are id, at"));
        assert!(of("id,at\n1,2\n1,noon\n", reading(Some("at"))).unwrap_err().contains("line 3: \"noon\""));
        assert!(of("{\"t\": 5}\n{\"u\": 5}\n", reading(Some("t"))).unwrap_err().contains("line 2"));
        assert!(of(&format!("{LOG}GET /\n"), reading(None)).unwrap_err().contains("line 5"));
    }
}
