//! The row of the HTTP system in the table of systems.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::{HttpOptions, HttpWorkload, Statuses, Sum, Text, Trust, Version, Written};
use kendall_files::read_text;
use kendall_linkmodel::Transport;
use kendall_load::Reuse;
use kendall_station::{Discipline, Servers};
use kendall_system::{
    COMMAND, Home, Kind, Parameter, Serving, Settings, StationShape, Subcommands, System, URL, mark_secret,
    no_limits,
};

/// The row of this system.
pub const ROW: System = System {
    name: "http",
    about: "starts any HTTP server by a shell command; for a running server, its URL is enough",
    default_port: 8080,
    home: Home::Anywhere {
        schemes: &["http", "https"],
        address: |url| crate::address(url).map_err(|error| error.to_string()),
    },
    server: &[
        Parameter {
            name: COMMAND,
            help: "shell command that starts the server and stays with it; {port} in it stands for a free port, and {folder} \
                   for an empty folder that is removed at the end",
            kind: Kind::Word(not_empty),
            default: None,
        },
        Parameter {
            name: "servers",
            help: "number of requests that the server processes at the same time, for models: its workers or cores",
            kind: Kind::Whole { least: 1, most: 100_000 },
            default: Some("1"),
        },
        Parameter {
            name: "discipline",
            help: "order of service, for models",
            kind: Kind::Word(|name| name.parse::<Discipline>().map(drop).map_err(|error| error.to_string())),
            default: Some("fifo"),
        },
    ],
    workload: &[
        Parameter {
            name: URL,
            help: "URL to request; {port} in it stands for the port of a server that was started",
            kind: Kind::Url,
            default: Some("http://127.0.0.1:{port}/"),
        },
        Parameter {
            name: "method",
            help: "method of the request: GET, or POST if it has a body, if left out",
            kind: Kind::Word(not_empty),
            default: None,
        },
        Parameter {
            name: "header",
            help: "a header, as \"name: value\", or @FILE for those in a file; ${NAME} in a value stands for a variable of the \
                   environment. May be given several times. No record keeps the value of a header such as authorization",
            kind: Kind::Headers,
            default: None,
        },
        Parameter {
            name: "secret",
            help: "name of a header, of a parameter in the query of the URL, or of a field of the body, whose value no record, page \
                   or message keeps, in addition to the known secret ones. May be given several times",
            kind: Kind::Lines(mark_secret),
            default: None,
        },
        Parameter {
            name: "body",
            help: "body of the request; in it, in headers and in the URL {index} stands for the request's number, {random} for a \
                   number from all of 64 bits and {random:1000} for one of 0 to 999",
            kind: Kind::Body,
            default: None,
        },
        Parameter {
            name: "body-file",
            help: "file with the body of the request",
            kind: Kind::File,
            default: None,
        },
        Parameter {
            name: "requests-file",
            help: "file of several requests, with weights: TOML with a [[request]] for each, or JSON lines",
            kind: Kind::File,
            default: None,
        },
        Parameter {
            name: "expect-status",
            help: "statuses of a good answer, such as 200 or 200-299,304; all below 400 if left out",
            kind: Kind::Word(check::<Statuses>),
            default: None,
        },
        Parameter {
            name: "expect-text",
            help: "text that the body of a good answer contains",
            kind: Kind::Text(check::<Text>),
            default: None,
        },
        Parameter {
            name: "expect-length",
            help: "length of the body of a good answer, in bytes",
            kind: Kind::Whole { least: 0, most: u64::MAX },
            default: None,
        },
        Parameter {
            name: "expect-sha256",
            help: "SHA-256 of the body of a good answer, in hexadecimal digits",
            kind: Kind::Word(check::<Sum>),
            default: None,
        },
        Parameter {
            name: "http",
            help: "version of HTTP: 1, 2 (without TLS by prior knowledge) or 3",
            kind: Kind::Word(check::<Version>),
            default: Some("1"),
        },
        Parameter {
            name: "streams",
            help: "most requests at a time on one connection of HTTP/2 or HTTP/3; the server may allow fewer",
            kind: Kind::Whole { least: 1, most: 10_000 },
            default: Some("10"),
        },
        Parameter {
            name: "reuse",
            help: "whether a connection carries many requests (keep) or one (close)",
            kind: Kind::Word(|name| reuse(name).map(drop)),
            default: Some("keep"),
        },
        Parameter {
            name: "ca",
            help: "PEM file of the certificates to trust, instead of those that this machine trusts",
            kind: Kind::File,
            default: None,
        },
        Parameter {
            name: "insecure",
            help: "trust any certificate, for your own servers: on or off",
            kind: Kind::Switch,
            default: Some("off"),
        },
    ],
    station: |server| {
        let servers = server.whole("servers").and_then(|servers| Servers::new(servers as u32));
        let discipline = server.word("discipline").and_then(|name| name.parse().ok());
        StationShape::unlimited(
            servers.expect("at least one server"),
            discipline.expect("its kind checked discipline"),
        )
    },
    transport: |workload| match workload.word("http") {
        Some("3") => Transport::UDP,
        _ => Transport::TCP,
    },
    load: |address, workload, seed| {
        let workload = HttpWorkload::new(address, &options(workload)?, seed);
        Ok(Box::new(workload.map_err(|error| error.to_string())?))
    },
    serve,
    limits: no_limits,
    subcommands: Subcommands::NONE,
};

/// The longest file of headers.
const MOST_HEADER_BYTES: u64 = 1 << 16;

fn options(workload: &Settings) -> Result<HttpOptions, String> {
    let text = |name| workload.word(name).map(str::to_owned);
    let file = |name| workload.word(name).map(PathBuf::from);
    let is_set = "it has a default, and its kind checked it";
    let mut headers = BTreeMap::new();
    for line in header_lines(workload.word("header").unwrap_or_default())? {
        let (name, value) = header(&line)?;
        if headers.insert(name.to_lowercase(), value).is_some() {
            return Err(format!(
                "the header {name} is given twice; give it once, with commas between its values"
            ));
        }
    }
    let trust = match (file("ca"), workload.word("insecure")) {
        (Some(_), Some("on")) => {
            return Err("ca and insecure exclude each other; remove one of them".into());
        }
        (Some(path), _) => Trust::File(path),
        (None, Some("on")) => Trust::Anyone,
        (None, _) => Trust::Machine,
    };
    Ok(HttpOptions {
        url: text(URL).expect(is_set),
        request: Written {
            method: text("method"),
            headers,
            body: text("body"),
            body_file: text("body-file"),
            expect_status: text("expect-status"),
            expect_text: text("expect-text"),
            expect_length: workload.whole("expect-length"),
            expect_sha256: text("expect-sha256"),
            ..Written::default()
        },
        requests_file: file("requests-file"),
        version: workload.word("http").and_then(|version| version.parse().ok()).expect(is_set),
        streams: workload.whole("streams").expect(is_set) as u32,
        reuse: workload.word("reuse").and_then(|name| reuse(name).ok()).expect(is_set),
        trust,
    })
}

fn serve(server: &Settings, Serving { listen, metrics, stamps, ready, .. }: Serving) -> Result<(), String> {
    if metrics.is_some() || stamps.is_some() {
        return Err("a third-party server has no metrics and stamps of kendall; remove these settings".into());
    }
    let command = server
        .word(COMMAND)
        .ok_or("no server to start; give a command, such as --command 'python3 -m http.server {port}'")?;
    crate::host(command, listen, ready).map_err(|error| error.to_string())
}

/// Parses the given headers, including those in files.
fn header_lines(given: &str) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for line in given.lines() {
        match line.strip_prefix('@') {
            Some(file) => {
                let text = read_text(Path::new(file), MOST_HEADER_BYTES)
                    .map_err(|error| format!("cannot read the headers in {file}: {error}"))?;
                lines.extend(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned));
            }
            None => lines.push(line.to_owned()),
        }
    }
    Ok(lines)
}

fn header(line: &str) -> Result<(String, String), String> {
    match line.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().into(), value.trim().into())),
        // The line may contain a secret.
        _ => Err("a header must be \"name: value\", or @FILE for those in a file, one per line".into()),
    }
}

fn reuse(name: &str) -> Result<Reuse, String> {
    match name {
        "keep" => Ok(Reuse::Keep),
        "close" => Ok(Reuse::Close),
        _ => Err(format!("must be keep or close, not {name:?}")),
    }
}

fn not_empty(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("must not be empty".into()) } else { Ok(()) }
}

fn check<T: FromStr<Err = String>>(text: &str) -> Result<(), String> {
    text.parse::<T>().map(drop)
}
