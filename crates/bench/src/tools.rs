//! The generator beside other load generators, all as programs against one nginx: how fast, at what cost, how far from
//! the schedule they send as packets show it, and what they say of a server that stood still.

mod capture;
mod nginx;
mod program;

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{ROUNDS, median, ratio};
use capture::{Capture, Sends};

use program::{PROGRAMS, Program, Spent};

pub(crate) use nginx::Nginx;
pub(crate) use program::{quantile_s, words};

const CONNECTIONS: u32 = 50;
/// On schedule, enough of them that none has to be waited for while the server pauses for some milliseconds.
const OPEN_CONNECTIONS: u32 = 200;
const CLOSED: Duration = Duration::from_secs(4);
const OPEN: Duration = Duration::from_secs(5);
const RATES_PER_S: [u32; 2] = [5_000, 20_000];

/// Three tables; a program that is not installed has no row.
pub(crate) fn section(page: &mut String) {
    page.push_str("\n## Beside other load generators\n\n");
    let Some(server) = Nginx::start() else {
        page.push_str("nginx is not installed: `tools/install bench` gets it.\n");
        return;
    };
    let there: Vec<&Program> = PROGRAMS.iter().filter(|program| program.is_there()).collect();
    let absent: Vec<&str> = PROGRAMS.iter().filter(|one| !one.is_there()).map(|one| one.name).collect();
    page.push_str(
        "Each tool runs as a separate process, beside an nginx with two workers that answers `ok` from memory; both share this machine's \
         processors.",
    );
    if !absent.is_empty() {
        let _ = write!(page, " Not installed here: {}.", absent.join(", "));
    }
    page.push('\n');
    closed(page, &server, &there);
    floor(page, &server, there[0]);
    open(page, &server, &there);
    stalled(page, &server, &there);
}

/// As fast as they can, in turns.
fn closed(page: &mut String, server: &Nginx, programs: &[&Program]) {
    let able: Vec<&&Program> = programs.iter().filter(|program| program.closed.is_some()).collect();
    let mut seen: Vec<Vec<(f64, f64, f64)>> = vec![Vec::new(); able.len()];
    for _ in 0..ROUNDS {
        for (program, seen) in able.iter().zip(&mut seen) {
            let before = server.requests();
            let (cpu_before_s, command) = (server.cpu_s(), program.closed.expect("it is able"));
            let mut running = program.start(&command(&server.url(), CONNECTIONS, CLOSED));
            // The middle of the run: neither the opening of connections nor the end.
            sleep(CLOSED / 5);
            let (from, from_ns) = (server.requests(), kendall_record::clock::now_ns());
            sleep(CLOSED * 3 / 5);
            let (to, to_ns) = (server.requests(), kendall_record::clock::now_ns());
            let Spent { cpu_s, .. } = running.finish();
            let requests = (server.requests() - before) as f64;
            let per_s = (to - from) as f64 / ((to_ns - from_ns) as f64 / 1e9);
            seen.push((per_s, cpu_s * 1e6 / requests, (server.cpu_s() - cpu_before_s) * 1e6 / requests));
        }
    }
    let _ = write!(
        page,
        "\n**Closed loop**, {CONNECTIONS} connections, HTTP/1.1 GET on kept connections, for {} s. Requests as nginx counts them.\n\n\
         | | requests/s | CPU per request, µs | nginx's, µs | kendall's rate ÷ this one's | kendall's CPU ÷ this one's |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
        CLOSED.as_secs()
    );
    let ours = seen[0].clone();
    let of_program =
        |name: &str| able.iter().position(|program| program.name == name).map(|place| &seen[place]);
    let pair = of_program("kendall --generator-threads 2").zip(of_program("wrk"));
    for (program, rounds) in able.iter().zip(&seen) {
        let of = |value: fn(&(f64, f64, f64)) -> f64| median(rounds.iter().map(value));
        let ratio = |value: fn(&(f64, f64, f64)) -> f64| {
            median(ours.iter().zip(rounds).map(|(ours, theirs)| value(ours) / value(theirs)))
        };
        let _ = writeln!(
            page,
            "| {} | {:.0} | {:.1} | {:.1} | {:.2} | {:.2} |",
            program.name,
            of(|round| round.0),
            of(|round| round.1),
            of(|round| round.2),
            ratio(|round| round.0),
            ratio(|round| round.1),
        );
    }
    if let Some((two, wrk)) = pair {
        let ratio = |value: fn(&(f64, f64, f64)) -> f64| {
            median(two.iter().zip(wrk).map(|(two, wrk)| value(two) / value(wrk)))
        };
        let _ = writeln!(
            page,
            "\nTwo threads each: kendall's rate is {:.2} times wrk's, its CPU per request {:.2} times, in the median of the rounds.",
            ratio(|round| round.0),
            ratio(|round| round.1),
        );
    }
}

/// One connection, beside a loop that only writes and waits.
fn floor(page: &mut String, server: &Nginx, ours: &Program) {
    let mut floors = Vec::new();
    for _ in 0..ROUNDS {
        let bare_us = ping_pong_us(server.address());
        let run =
            format!("load {} --arrivals closed --users 1 --connections 1 --duration 3s --json", server.url());
        let told = quantile_s(&ours.start(&words(&run)).finish().output, 0.5);
        floors.push((bare_us, told.expect("there are answers enough for a median") * 1e6));
    }
    let _ = writeln!(
        page,
        "\n**One connection**: median response {:.1} µs; of a bare loop that writes and waits {:.1} µs; apart {:.1} µs in the \
         median of the rounds.",
        median(floors.iter().map(|floor| floor.1)),
        median(floors.iter().map(|floor| floor.0)),
        median(floors.iter().map(|floor| floor.1 - floor.0)),
    );
}

/// The median of a loop that writes a request and waits for the answer, and does nothing else.
fn ping_pong_us(server: SocketAddr) -> f64 {
    let mut stream = TcpStream::connect(server).expect("nginx listens");
    stream.set_nodelay(true).expect("it is a TCP connection");
    let mut answer = [0; 4096];
    let ask = |_| {
        let before = Instant::now();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("nginx reads");
        // An answer this short comes whole.
        assert!(stream.read(&mut answer).expect("nginx answers") > 0);
        before.elapsed().as_nanos() as f64 / 1e3
    };
    median((0..20_000).map(ask))
}

/// On schedule, as the packets have it.
fn open(page: &mut String, server: &Nginx, programs: &[&Program]) {
    if !Capture::is_possible() {
        page.push_str("\nSends on schedule: tcpdump is not installed, or may not capture here.\n");
        return;
    }
    let _ = write!(
        page,
        "\n**Open loop**, constant rate, at most {OPEN_CONNECTIONS} connections, {} s. The packets, stamped in nanoseconds as the sender hands them \
         over, show when each request left: how late it was on a line of that rate which no send precedes. \
         Dispersion is that of counts per 1 ms: 0 for even sends, 1 for Poisson.\n\n\
         | | rate, 1/s | late p50, µs | p99, µs | kendall's p99 is 1 : | gaps' variation | dispersion | CPU per request, µs | sent |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        OPEN.as_secs()
    );
    for rate_per_s in RATES_PER_S {
        let able: Vec<&&Program> = programs.iter().filter(|program| program.open.is_some()).collect();
        let mut seen: Vec<Vec<(Sends, f64)>> = able.iter().map(|_| Vec::new()).collect();
        for _ in 0..ROUNDS {
            for (program, seen) in able.iter().zip(&mut seen) {
                let capture = Capture::start(server.port());
                let command =
                    program.open.expect("it is able")(&server.url(), OPEN_CONNECTIONS, rate_per_s, OPEN);
                let Spent { cpu_s, .. } = program.start(&command).finish();
                let instants_ns = capture.finish();
                let cpu_us = cpu_s * 1e6 / instants_ns.len().max(1) as f64;
                seen.extend(Sends::of(&instants_ns, f64::from(rate_per_s)).map(|sends| (sends, cpu_us)));
            }
        }
        let late = |rounds: &[(Sends, f64)]| median(rounds.iter().map(|(sends, _)| sends.late_p99_ns));
        let ours = late(&seen[0]);
        for (program, rounds) in able.iter().zip(&seen).filter(|(_, rounds)| !rounds.is_empty()) {
            let of = |value: fn(&Sends) -> f64| median(rounds.iter().map(|(sends, _)| value(sends)));
            let _ = writeln!(
                page,
                "| {} | {rate_per_s} | {:.1} | {:.1} | {} | {:.2} | {:.2} | {:.1} | {:.1} % |",
                program.name,
                of(|sends| sends.late_p50_ns) / 1e3,
                late(rounds) / 1e3,
                ratio(late(rounds) / ours),
                of(|sends| sends.gap_variation),
                of(|sends| sends.dispersion),
                median(rounds.iter().map(|(_, cpu_us)| *cpu_us)),
                of(|sends| sends.rate_per_s) / f64::from(rate_per_s) * 100.0,
            );
        }
    }
    poisson(page, server, programs[0]);
}

/// Whether Poisson arrivals are Poisson on the wire.
fn poisson(page: &mut String, server: &Nginx, ours: &Program) {
    let dispersions = RATES_PER_S.map(|rate_per_s| {
        let run = format!(
            "load {} --rate {rate_per_s} --connections {OPEN_CONNECTIONS} --duration {}s --json",
            server.url(),
            OPEN.as_secs()
        );
        let round = |_| {
            let capture = Capture::start(server.port());
            ours.start(&words(&run)).finish();
            Some(Sends::of(&capture.finish(), f64::from(rate_per_s))?.dispersion)
        };
        (0..ROUNDS).filter_map(round).collect::<Vec<f64>>()
    });
    let told = |rounds: &[f64]| {
        let each: Vec<String> = rounds.iter().map(|dispersion| format!("{dispersion:.2}")).collect();
        format!("{:.2} (rounds: {})", median(rounds.iter().copied()), each.join(", "))
    };
    let _ = writeln!(
        page,
        "\nWith Poisson arrivals kendall's dispersion is {} at 5,000/s and {} at 20,000/s, where it should be 1. A pause of the whole \
         machine puts what was due in it into one count.",
        told(&dispersions[0]),
        told(&dispersions[1]),
    );
}

/// A server that stalls for one second in eight.
fn stalled(page: &mut String, server: &Nginx, programs: &[&Program]) {
    const RATE_PER_S: u32 = 1_000;
    const LASTING: Duration = Duration::from_secs(8);
    page.push_str(
        "\n**A server that pauses** for one second of eight, at 1,000 requests a second, one run each. An eighth of the requests wait \
         between 0 and 1 s, so the 99th percentile of the response time is 920 ms, and the 99.9th 992 ms.\n\n\
         | | p99 it reports, ms | of the true one | p99.9, ms | |\n| --- | ---: | ---: | ---: | --- |\n",
    );
    for program in programs.iter().filter(|program| program.reported.is_some()) {
        let Some(open) = program.open else { continue };
        let before = server.requests();
        let mut running = program.start(&open(&server.url(), CONNECTIONS, RATE_PER_S, LASTING));
        sleep(LASTING / 2);
        server.stand_still(Duration::from_secs(1));
        let Spent { output, .. } = running.finish();
        let missing = 8_000 - (server.requests() - before).min(8_000);
        let told = program.reported.expect("it reports")(&output);
        let [p99_s, p999_s] = told.unwrap_or([f64::NAN; 2]);
        let comment =
            if missing > 80 { format!("{missing} of 8,000 requests missing") } else { String::new() };
        let shown = |s: f64| if s.is_nan() { "not reported".to_owned() } else { format!("{:.1}", s * 1e3) };
        let _ = writeln!(
            page,
            "| {} | {} | {:.1} % | {} | {comment} |",
            program.name,
            shown(p99_s),
            p99_s / 0.92 * 100.0,
            shown(p999_s),
        );
    }
}
