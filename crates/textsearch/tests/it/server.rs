//! The server as its clients see it.

use std::fs;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::served::{Client, Served};
use kendall_testbed::wait_until;
use kendall_textsearch::protocol::Dialect;
use kendall_textsearch::{
    Backtracking, Form, Generate, Layout, Matching, Semantics, Size, TextSearchOptions, generate,
};

const ROWS: &str = "1@@@this man is \n2@@@no other; man \n0@@@\n5@@@this is 42\n1@@@a@@@b\n";

/// On each sentence this takes some hundred thousand steps, and matches nothing.
const SLOW: &str = r";^(a+)+\1?$";

/// Rows on which a pattern with backtracking takes minutes.
fn slow_rows() -> String {
    format!("1@@@{}b\n", "a".repeat(18)).repeat(140_000)
}

/// Line by line, because an index would avoid the steps.
fn backtracking(options: &mut TextSearchOptions) {
    options.open.layout = Layout::Flat;
    options.semantics =
        Semantics { backtracking: Backtracking::Within { steps: 100_000_000 }, ..Semantics::default() };
}

#[test]
fn both_dialects_answer_every_request_on_one_connection() {
    for layout in Layout::ALL {
        for dialect in Dialect::ALL {
            let served = Served::start(ROWS, |options| {
                options.dialect = dialect;
                options.open.layout = layout;
            });
            let mut client = served.client();
            let mut ask = |request: &str| client.ask(request);
            assert_eq!(ask("1;man"), ["1@@@this man is "]);
            assert_eq!(ask(";man"), ["1@@@this man is ", "2@@@no other; man "]);
            assert_eq!(
                ask("2,1,5;(this|other)"),
                ["1@@@this man is ", "2@@@no other; man ", "5@@@this is 42"]
            );
            assert_eq!(ask("7;.*"), [""; 0]);
            assert_eq!(ask(";other; "), ["2@@@no other; man "]);
            assert_eq!(ask(";@@@"), ["1@@@a@@@b"]);
            assert_eq!(ask("0;"), ["0@@@"]);
            assert_eq!(ask(";"), ROWS.lines().collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_rejection_is_reported_and_the_connection_continues() {
    for dialect in Dialect::ALL {
        let served = Served::start(ROWS, |options| options.dialect = dialect);
        let mut client = served.client();
        for (request, words) in [
            ("man", "no `;`"),
            ("one;man", "`one` is not a type"),
            (";(man", "rejected at character"),
            (";(a)\\1", "rejected at character"),
            (";(?=a)", "rejected at character"),
            (&format!(";{}", "a".repeat(5000)), "rejected at character"),
            (&format!(";{}", "a".repeat(60_000)), "limit of 8192 bytes"),
        ] {
            let answer = client.ask(request);
            let [row] = &answer[..] else { panic!("{request} is answered with {answer:?}") };
            assert!(row.starts_with("error@@@") && row.contains(words), "{request} is answered with {row}");
            assert_eq!(client.ask("1;man"), ["1@@@this man is "]);
        }
        assert_eq!(served.metric("textsearch_refused_total"), 7);
    }
}

#[test]
fn whole_sentences_are_matched_and_sent_without_their_types_where_asked_and_none_is_an_empty_line() {
    for dialect in Dialect::ALL {
        let served = Served::start(ROWS, |options| {
            options.dialect = dialect;
            options.form = Form::Sentence;
            options.semantics.matching = Matching::Whole;
        });
        let mut client = served.client();
        assert_eq!(client.ask(";man"), [""; 0]);
        assert_eq!(client.ask(";(.*)man(.*)"), ["this man is ", "no other; man "]);
        assert_eq!(client.ask("0;.*"), [" "]);
        assert_eq!(client.ask(";.*"), ["this man is ", "no other; man ", " ", "this is 42", "a@@@b"]);
    }
}

/// Rows of types 0 and 5, and long answers, as the servers of the course answered them.
#[test]
fn long_answers_are_whole_in_lines_and_said_to_be_too_long_in_messages() {
    let rows: String = (0..100_000).map(|row| format!("{}@@@row {row} of many\n", row % 6)).collect();
    let lines = Served::start(&rows, |_| ());
    let (mut client, mut again) = (lines.client(), lines.client());
    assert_eq!(client.ask(";of many"), rows.lines().collect::<Vec<_>>());
    let of = |kind: &str| rows.lines().filter(|row| row.starts_with(kind)).collect::<Vec<_>>();
    assert_eq!(again.ask("5;row"), of("5"));
    assert_eq!(again.ask("0;row"), of("0"));
    let utf = Served::start(&rows, |options| options.dialect = Dialect::Utf);
    let mut client = utf.client();
    assert_eq!(client.ask(";of many"), ["request may be too big "]);
    assert_eq!(client.ask(";row 99999 "), ["3@@@row 99999 of many"]);
    assert_eq!(utf.metric("textsearch_too_big_total"), 1);
}

#[test]
fn helping_threads_do_not_change_the_answer() {
    let rows: String = (0..300_000).map(|row| format!("{}@@@row {row} of many\n", row % 3)).collect();
    let served = Served::start(&rows, |options| {
        options.open.layout = Layout::Flat;
        options.service.workers = NonZeroUsize::MIN;
        options.threads = NonZeroUsize::new(4).unwrap();
    });
    let mut client = served.client();
    for _ in 0..3 {
        let wanted: Vec<_> = rows.lines().filter(|row| row.contains("7 of")).collect();
        assert_eq!(client.ask(";7 of"), wanted);
    }
}

#[test]
fn an_endless_line_and_a_half_request_cost_their_own_connections() {
    let served = Served::start(ROWS, |_| ());
    let mut endless = served.client();
    let mut half = served.client();
    half.send_bytes(b"1;ma").unwrap();
    // It is closed while there is still something to send, or once all was sent.
    for _ in 0..100 {
        if endless.send_bytes(&[b'a'; 10_000]).is_err() {
            break;
        }
    }
    assert!(endless.rest().0.is_empty());
    assert_eq!(served.client().ask("1;man"), ["1@@@this man is "]);
    half.send_bytes(b"n\n").unwrap();
    assert_eq!(half.answer(), ["1@@@this man is "]);
}

/// The memory of this process, in bytes.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn two_hundred_slow_readers_of_everything_cost_little_memory_and_no_worker() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let what = Generate { size: Size::Bytes(12_000_000), types: 5, seed: 1, threads: 2 };
    let made = generate(&what, file.as_file_mut()).unwrap();
    let served = Served::of(file.path(), |_| ());
    let before = resident();
    let mut slow: Vec<Client> = (0..200)
        .map(|index| {
            let mut client = served.client();
            // All different, so that no two share an answer.
            client.send(&format!(";.*|{index}"));
            client
        })
        .collect();
    slow.iter_mut().for_each(|client| assert!(client.sip().is_ascii_digit()));
    let row = fs::read_to_string(file.path()).unwrap();
    let row = row.lines().next().unwrap();
    let (kind, sentence) = row.split_once("@@@").unwrap();
    assert!(served.client().ask(&format!("{kind};^\\Q{sentence}\\E$")).contains(&row.to_owned()));
    let cost = resident().saturating_sub(before);
    assert!(cost < 200 * made.bytes / 10, "{cost} bytes for {} of answers", 200 * made.bytes);
    // And a slow answer is complete.
    assert_eq!(slow[77].answer().len() as u64, made.rows);
}

#[test]
fn a_client_that_leaves_frees_the_worker_and_a_slow_request_gets_an_error() {
    let rows = slow_rows() + ROWS;
    let served = Served::start(&rows, |options| {
        backtracking(options);
        options.service.workers = NonZeroUsize::MIN;
    });
    let mut leaving = served.client();
    leaving.send(SLOW);
    wait_until("it is so", || served.metric("workers_busy") == 1);
    leaving.leave();
    // The search takes minutes, and this client waits for half of one.
    assert_eq!(served.client().ask("5;this"), ["5@@@this is 42"]);

    let late = Served::start(&rows, |options| {
        backtracking(options);
        options.deadline = Duration::from_millis(200);
    });
    let mut client = late.client();
    let answer = client.ask(SLOW);
    assert!(answer.len() == 1 && answer[0].starts_with("error@@@the search took longer than"), "{answer:?}");
    assert_eq!(client.ask("5;this"), ["5@@@this is 42"]);
    assert_eq!(late.metric("textsearch_late_total"), 1);

    let few = Served::start(&rows, |options| {
        options.open.layout = Layout::Flat;
        options.semantics.backtracking = Backtracking::Within { steps: 1000 };
    });
    let answer = few.client().ask(SLOW);
    assert!(answer.len() == 1 && answer[0].contains("more than 1000 steps"), "{answer:?}");
}

#[test]
fn an_answer_that_cannot_go_on_does_not_look_whole() {
    // The limit of steps is reached in a later part of the file than the first rows.
    let rows = "1@@@aaa\n".repeat(200_000) + &slow_rows();
    let served = Served::start(&rows, |options| {
        options.open.layout = Layout::Flat;
        options.semantics.backtracking = Backtracking::Within { steps: 1000 };
        options.service.workers = NonZeroUsize::MIN;
        options.threads = NonZeroUsize::MIN;
    });
    let mut client = served.client();
    client.send(SLOW);
    let (all, in_order) = client.rest();
    let text = String::from_utf8(all).unwrap();
    assert!(!in_order, "it ended like a whole one, after {} bytes", text.len());
    assert!(text.starts_with("1@@@aaa\n") && !text.contains("\n\n"));
}

#[test]
fn equal_requests_are_searched_once() {
    let served = Served::start(&slow_rows(), |options| {
        backtracking(options);
        options.service.workers = NonZeroUsize::MIN;
        options.deadline = Duration::from_secs(2);
    });
    let mut clients: Vec<Client> = (0..5).map(|_| served.client()).collect();
    clients.iter_mut().for_each(|client| client.send(SLOW));
    for client in &mut clients {
        assert!(client.answer()[0].starts_with("error@@@the search took longer"));
    }
    assert_eq!(served.metric("textsearch_searches_total"), 1);
    assert_eq!(served.metric("requests_joined_total"), 4);
}

#[test]
fn requests_beyond_the_capacity_and_beyond_the_memory_are_rejected() {
    let served = Served::start(&slow_rows(), |options| {
        backtracking(options);
        options.service.workers = NonZeroUsize::MIN;
        options.service.max_waiting = 0;
        options.deadline = Duration::from_secs(3);
    });
    let mut busy = served.client();
    busy.send(SLOW);
    wait_until("it is so", || served.metric("workers_busy") == 1);
    assert!(served.client().ask("1;b")[0].starts_with("error@@@the server is full"));
    busy.leave();

    // More than the kernel buffers.
    let rows = format!("1@@@{}\n", "a".repeat(200)).repeat(100_000);
    let none = Served::start(&rows, |options| options.answer_bytes = 1);
    let mut slow = none.client();
    slow.send("1;a");
    slow.sip();
    assert!(none.client().ask("1;aa")[0].starts_with("error@@@the server is full"));
    assert_eq!(slow.answer().len(), 100_000);
    wait_until("it is so", || none.client().ask("1;aab").is_empty());
}

#[test]
fn answers_are_cached_by_canonical_form_and_evicted_beyond_the_limit() {
    let rows: String = (0..1000).map(|row| format!("{}@@@row {row} of many\n", row % 3)).collect();
    let served = Served::start(&rows, |_| ());
    let mut client = served.client();
    let answer = client.ask("1;row 7");
    assert!(!answer.is_empty());
    for same in ["1;row 7", "1;(.*)row 7(.*)", "1,1;row 7"] {
        assert_eq!(client.ask(same), answer);
    }
    let of = |name: &str| served.metric(&format!("textsearch_{name}_total"));
    assert_eq!((of("searches"), of("remembered")), (1, 3));
    assert_eq!(client.ask("2;row 7").len(), rows.lines().filter(|row| row.starts_with("2@@@row 7")).count());
    assert_eq!((of("searches"), of("remembered")), (2, 3));
    assert_eq!(of("by_index") + of("by_nothing") + of("by_literals"), 2);
    let none = Served::start(&rows, |options| options.cache_bytes = 0);
    let mut client = none.client();
    (0..3).for_each(|_| assert_eq!(client.ask("1;row 7"), answer));
    assert_eq!(none.metric("textsearch_searches_total"), 3);
    assert_eq!(none.metric("textsearch_remembered_total"), 0);
}

#[test]
fn equivalent_requests_share_a_search_and_one_that_leaves_does_not_end_it() {
    let rows = slow_rows() + ROWS;
    let served = Served::start(&rows, |options| {
        backtracking(options);
        options.service.workers = NonZeroUsize::new(3).unwrap();
        options.deadline = Duration::from_secs(3);
    });
    let (mut first, mut second) = (served.client(), served.client());
    let mut leaving = served.client();
    first.send(SLOW);
    wait_until("it is so", || served.metric("workers_busy") == 1);
    leaving.send(r";\A(a+)+\1?$");
    second.send(r";^([a]+)+\1?$");
    wait_until("it is so", || served.metric("workers_busy") == 3);
    leaving.leave();
    wait_until("it is so", || served.metric("workers_busy") == 2);
    for client in [&mut first, &mut second] {
        assert!(client.answer()[0].starts_with("error@@@the search took longer"));
    }
    assert_eq!(served.metric("textsearch_shared_total"), 2);
}

/// The short ones overtake the long ones that came first, if the discipline orders by size.
#[test]
fn short_searches_go_first_where_the_discipline_says_so() {
    use kendall_station::Discipline;

    let rows = slow_rows() + &"2@@@short\n".repeat(100);
    let order = |discipline: Discipline| {
        let served = Served::start(&rows, |options| {
            backtracking(options);
            options.open.layout = Layout::ByType;
            options.service.discipline = discipline;
            options.service.workers = NonZeroUsize::MIN;
            options.deadline = Duration::from_secs(1);
        });
        let (mut busy, mut long, mut short) = (served.client(), served.client(), served.client());
        busy.send(SLOW);
        wait_until("it is so", || served.metric("workers_busy") == 1);
        long.send(&SLOW.replace(';', "1;"));
        wait_until("it is so", || served.metric("requests_waiting") == 1);
        short.send("2;short");
        assert_eq!(short.answer().len(), 100);
        let late = served.metric("textsearch_late_total");
        assert!(busy.answer()[0].starts_with("error@@@") && long.answer()[0].starts_with("error@@@"));
        late
    };
    assert_eq!(order(Discipline::Fifo), 2);
    assert_eq!(order(Discipline::CMu), 1);
    assert_eq!(order(Discipline::ShortestRemaining), 1);
}

/// Patterns whose automata take seconds to build completely.
const COSTLY: [&str; 6] = [
    ";.{1000}.{1000}",
    r";\p{L}{100}",
    r";[\p{L}&&[^a]]{100}",
    ";(a?){900}b",
    ";(.*a){30}.{300}c",
    r";(?iu)[\p{L}&&[^a]]{20}[^x]{200}",
];

/// Whether the patterns are found in time depends on the machine; that a client does not wait for their full construction does
/// not.
#[test]
fn a_costly_pattern_is_answered_or_given_up_at_the_deadline() {
    let short = "1@@@a short line\n".to_owned();
    let rows = [&short, &short.repeat(100_000), &format!("{short}2@@@{}\n", "ab ".repeat(1_000_000))];
    for (layout, rows) in Layout::ALL.into_iter().flat_map(|layout| rows.map(|rows| (layout, rows))) {
        let served = Served::start(rows, |options| {
            options.open.layout = layout;
            options.deadline = Duration::from_millis(300);
            options.service.workers = NonZeroUsize::MIN;
        });
        for pattern in COSTLY {
            let answer = served.client().ask(pattern);
            let gave_up = answer.iter().any(|row| row.starts_with("error@@@the search took longer"));
            let found = answer.iter().all(|row| row.starts_with("2@@@ab ab "));
            assert!(gave_up || found, "{layout:?} {pattern}: {} rows", answer.len());
        }
        // A cheap one is not abandoned.
        assert_eq!(served.client().ask("1;^a short line$").len(), rows.matches("short").count());
    }
}

#[test]
fn an_idle_client_loses_its_place() {
    let served = Served::start(ROWS, |options| {
        options.service.patience = Duration::from_millis(200);
        options.service.max_connections = 1;
    });
    let mut idle = served.client();
    assert_eq!(idle.ask("1;man"), ["1@@@this man is "]);
    assert_eq!(idle.rest(), (Vec::new(), true));
    assert_eq!(served.client().ask("1;man"), ["1@@@this man is "]);
    let usual = TextSearchOptions::new("127.0.0.1:0".parse().unwrap(), "rows".into());
    assert!(usual.service.patience < Duration::from_secs(60), "{:?}", usual.service.patience);
}
