//! Tests receivers that accept, reject, delay or do not answer.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use kendall_archive::live::{Live, LiveState, Process, Sample, Samples};
use kendall_push::{Push, Target};
use prost::Message;
use serde_json::Value;
use tempfile::TempDir;

/// The requests that a receiver got.
struct Request {
    head: String,
    body: Vec<u8>,
}

/// Answers each request with the next of these statuses, then always with the last.
fn receiver(statuses: &[&'static str]) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, requests) = channel();
    let statuses = statuses.to_vec();
    thread::spawn(move || {
        for (at, stream) in listener.incoming().enumerate() {
            let stream = stream.unwrap();
            let Some(request) = read(&stream) else { continue };
            let status = statuses[at.min(statuses.len() - 1)];
            (&stream)
                .write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes())
                .unwrap();
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (address, requests)
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.trim().parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { head, body })
}

/// A run with this many samples in its live state.
fn run(samples: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    live(samples).write(folder.path()).unwrap();
    folder
}

fn live(samples: usize) -> Live {
    let mut all = Samples::default();
    for at in 0..samples {
        all.push(Sample {
            at_s: 0.5 * at as f64,
            sent_per_s: at as f64,
            answered_per_s: 99.5,
            in_flight: 3,
            waiting: 1,
            p50_s: Some(0.002),
            // The first requests got no answer.
            p90_s: (at > 0).then_some(0.004),
            p99_s: None,
            failed: [0, 2, 0, 1],
            server_cores: Some(0.75),
            generator_cores: Some(0.1),
        });
    }
    Live {
        process: Process::here(),
        state: LiveState::Running,
        doing: String::new(),
        trials_planned: 1,
        trials_done: 0,
        left_s: None,
        elapsed_s: 0.5 * samples as f64,
        trial: None,
        samples: all,
        trials: std::collections::VecDeque::new(),
    }
}

fn labels() -> Vec<(String, String)> {
    vec![("experiment".to_owned(), "small \"one\"".to_owned()), ("run".to_owned(), "2026-11-21".to_owned())]
}

#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Value64>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Value64 {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

#[test]
fn remote_write_arrives_as_series_with_their_labels() {
    let (address, requests) = receiver(&["503 Service Unavailable", "204 No Content"]);
    let folder = run(4);
    let target = Target::remote_write(&format!("http://{address}/api/v1/write?tenant=a")).unwrap();
    let push = Push::start(target, folder.path(), labels()).unwrap();
    let first = requests.recv_timeout(Duration::from_secs(10)).expect("a first attempt");
    // A message that a receiver rejects temporarily is sent again.
    let request = requests.recv_timeout(Duration::from_secs(10)).expect("a second attempt");
    assert_eq!(first.body, request.body);
    assert!(request.head.starts_with("post /api/v1/write?tenant=a http/1.1"), "{}", request.head);
    for header in [
        "content-encoding: snappy",
        "content-type: application/x-protobuf",
        "x-prometheus-remote-write-version: 0.1.0",
    ] {
        assert!(request.head.contains(header), "{}", request.head);
    }
    let bytes = snap::raw::Decoder::new().decompress_vec(&request.body).expect("it is compressed by Snappy");
    let message = WriteRequest::decode(bytes.as_slice()).expect("it is a WriteRequest");
    let mut series = BTreeMap::new();
    for one in message.timeseries {
        let names: Vec<&str> = one.labels.iter().map(|label| label.name.as_str()).collect();
        assert!(names.is_sorted(), "{names:?}");
        let label =
            |name: &str| one.labels.iter().find(|label| label.name == name).map(|label| label.value.clone());
        assert_eq!(label("experiment").as_deref(), Some("small \"one\""));
        let own = ["quantile", "outcome", "role"].into_iter().find_map(label).unwrap_or_default();
        assert!(one.samples.windows(2).all(|pair| pair[0].timestamp < pair[1].timestamp));
        let values: Vec<f64> = one.samples.iter().map(|sample| sample.value).collect();
        series.insert((label("__name__").expect("a name"), own), values);
    }
    let of = |name: &str, own: &str| series.get(&(name.to_owned(), own.to_owned())).cloned();
    assert_eq!(of("kendall_sent_requests_per_second", ""), Some(vec![0.0, 1.0, 2.0, 3.0]));
    assert_eq!(of("kendall_response_seconds", "0.9"), Some(vec![0.004; 3]));
    assert_eq!(of("kendall_response_seconds", "0.99"), None);
    assert_eq!(of("kendall_failed_requests_total", "refused"), Some(vec![2.0, 4.0, 6.0, 8.0]));
    assert_eq!(of("kendall_cpu_cores", "server"), Some(vec![0.75; 4]));
    let result = push.end();
    assert_eq!((result.sent, result.dropped), (4, 0));
    assert!(result.to_string().contains("503"), "{result}");
}

#[test]
fn otlp_arrives_as_metrics_with_points_and_what_comes_later_comes_once() {
    let (address, requests) = receiver(&["200 OK"]);
    let folder = run(3);
    let push =
        Push::start(Target::otlp(&format!("http://{address}")).unwrap(), folder.path(), labels()).unwrap();
    let request = requests.recv_timeout(Duration::from_secs(10)).expect("something is sent");
    assert!(request.head.starts_with("post /v1/metrics http/1.1"), "{}", request.head);
    assert!(request.head.contains("content-type: application/json"), "{}", request.head);
    let points = |request: &Request, name: &str| -> Vec<Value> {
        let message: Value = serde_json::from_slice(&request.body).expect("it is JSON");
        let resource = &message["resourceMetrics"][0];
        let attributes = resource["resource"]["attributes"].as_array().expect("attributes");
        assert!(
            attributes
                .iter()
                .any(|one| one["key"] == "service.name" && one["value"]["stringValue"] == "kendall")
        );
        let metrics = resource["scopeMetrics"][0]["metrics"].as_array().expect("metrics");
        let names: Vec<&str> =
            metrics.iter().map(|metric| metric["name"].as_str().expect("a name")).collect();
        let metric = &metrics[names.iter().position(|own| *own == name).expect("it is there")];
        assert_eq!(names.iter().filter(|own| **own == name).count(), 1);
        let points =
            metric["gauge"]["dataPoints"].as_array().or_else(|| metric["sum"]["dataPoints"].as_array());
        points.expect("a kind that is known").clone()
    };
    assert_eq!(points(&request, "kendall.in_flight").len(), 3);
    let failed = points(&request, "kendall.failed");
    assert_eq!(failed.len(), 12);
    assert!(failed.iter().all(|point| {
        let instant =
            |name: &str| point[name].as_str().expect("64 bits are text").parse::<u64>().expect("a number");
        instant("startTimeUnixNano") <= instant("timeUnixNano")
    }));
    live(5).write(folder.path()).unwrap();
    let later = requests.recv_timeout(Duration::from_secs(10)).expect("what is new is sent");
    let sent: Vec<f64> = points(&later, "kendall.sent")
        .iter()
        .map(|point| point["asDouble"].as_f64().expect("a number"))
        .collect();
    assert_eq!(sent, [3.0, 4.0]);
    let result = push.end();
    assert_eq!((result.sent, result.dropped, result.why), (5, 0, None));
}

#[test]
fn what_is_refused_is_dropped_and_said() {
    let (address, _requests) = receiver(&["400 Bad Request"]);
    let folder = run(7);
    let push =
        Push::start(Target::otlp(&format!("http://{address}/v1/metrics")).unwrap(), folder.path(), labels())
            .unwrap();
    let result = push.end();
    assert_eq!((result.sent, result.dropped), (0, 7));
    assert!(result.to_string().contains("7 were dropped") && result.to_string().contains("400"), "{result}");
}

#[test]
fn a_receiver_that_says_nothing_holds_nothing_up() {
    // The kernel accepts the connection, and no answer follows.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let folder = run(600);
    let push = Push::start(Target::otlp(&url).unwrap(), folder.path(), labels()).unwrap();
    let result = push.end();
    assert_eq!((result.sent, result.dropped), (0, 600));
    assert!(result.why.is_some_and(|why| why.contains("no answer within")));
}

#[test]
fn an_address_is_one_of_http() {
    for wrong in ["", "127.0.0.1:4318", "https://collector", "ftp://host/x", "http://"] {
        let error = Target::otlp(wrong).unwrap_err().to_string();
        assert!(error.contains("write http://HOST:PORT/PATH"), "{wrong}: {error}");
    }
}

#[test]
fn an_address_with_a_user_or_a_password_is_rejected_without_showing_them() {
    for wrong in ["http://me:s3cret@127.0.0.1:1/x?token=s3cret", "http://s3cret@127.0.0.1:1/x"] {
        let error = Target::otlp(wrong).unwrap_err().to_string();
        assert!(
            error.contains("to http://127.0.0.1:1/x with a user") && !error.contains("s3cret"),
            "{error}"
        );
        assert!(Target::remote_write(wrong).is_err());
    }
}
