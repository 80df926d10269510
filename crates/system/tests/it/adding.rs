//! Adding a system takes only its row: this is a complete one, served, loaded, documented and used from the terminal by its row
//! alone. In the repository the same row is in a separate crate, with a line in `kendall/src/systems.rs` and one in
//! `kendall/Cargo.toml`.

use std::io::{self, BufRead, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use kendall_linkmodel::Transport;
use kendall_load::{
    AnswerRead, ConnectionKind, Dialog, Dialogs, Plan, Progress, Request, RequestClass, Reuse, Route, Wire,
    Workload, run,
};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Discipline, Servers};
use kendall_system::{
    Caller, Console, Home, Kind, Parameter, Serving, Settings, StationShape, Subcommand, SubcommandEnd,
    Subcommands, System, Transfer, chapter, no_limits, readme_rows, system_rows,
};

/// The new system: its server multiplies a number.
const ROW: System = System {
    name: "multiply",
    about: "multiplies a number by a factor",
    default_port: 5099,
    home: Home::Here,
    server: &[Parameter {
        name: "factor",
        help: "what numbers are multiplied by",
        kind: Kind::Whole { least: 1, most: 100 },
        default: Some("2"),
    }],
    workload: &[Parameter {
        name: "expect-factor",
        help: "factor that answers must show",
        kind: Kind::Whole { least: 1, most: 100 },
        default: Some("2"),
    }],
    station: |_| StationShape::unlimited(Servers::MIN, Discipline::Fifo),
    transport: |_| Transport::TCP,
    load: |server, settings, _| {
        Ok(Box::new(Numbers { server, factor: settings.whole("expect-factor").expect("a default") }))
    },
    serve,
    limits: no_limits,
    subcommands: Subcommands {
        about: "Multiply at the terminal",
        all: &[Subcommand {
            name: "double",
            about: "Print twice a number",
            arguments: &[Parameter {
                name: "number",
                help: "number to double",
                kind: Kind::Whole { least: 0, most: 1000 },
                default: None,
            }],
            options: &[],
            caller: Caller::User,
            run: |settings, console| {
                console.print(&format!("{}\n", 2 * settings.whole("number").expect("it must be given")))?;
                Ok(SubcommandEnd::Done)
            },
        }],
    },
};

fn serve(settings: &Settings, serving: Serving) -> Result<(), String> {
    let factor = settings.whole("factor").expect("a default");
    let listener = TcpListener::bind(serving.listen).map_err(|error| error.to_string())?;
    (serving.ready)(listener.local_addr().map_err(|error| error.to_string())?);
    for stream in listener.incoming() {
        thread::spawn(move || multiply(stream?, factor));
    }
    Ok(())
}

fn multiply(mut stream: TcpStream, factor: u64) -> io::Result<()> {
    let mut number = [0; 8];
    loop {
        stream.read_exact(&mut number)?;
        stream.write_all(&(factor * u64::from_be_bytes(number)).to_be_bytes())?;
    }
}

/// Its workload: the i-th request is the number i.
struct Numbers {
    server: SocketAddr,
    factor: u64,
}

impl Workload for Numbers {
    fn request(&self, index: u64) -> Request {
        Request::new(0, Bytes::copy_from_slice(&index.to_be_bytes()))
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new("all", 1.0)]
    }

    fn route(&self) -> Route<'_> {
        Route::Bytes(Wire { to: self.server, kind: ConnectionKind::TCP, reuse: Reuse::Keep }, self)
    }
}

impl Dialogs for Numbers {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(Product { expected: 0, factor: self.factor })
    }
}

struct Product {
    expected: u64,
    factor: u64,
}

impl Dialog for Product {
    fn begin(&mut self, index: u64, _request: &Request) {
        self.expected = self.factor * index;
    }

    fn read(&mut self, bytes: &[u8]) -> AnswerRead {
        let Some(product) = bytes.first_chunk() else { return AnswerRead::More { used: 0 } };
        let is_right = u64::from_be_bytes(*product) == self.expected;
        let outcome = if is_right { Outcome::Answered } else { Outcome::Wrong };
        AnswerRead::Done { used: product.len(), outcome, reuse: Reuse::Keep }
    }
}

/// The address of the test's server.
static LISTENS: OnceLock<SocketAddr> = OnceLock::new();

#[test]
fn a_row_is_served_and_loaded() {
    let systems = [ROW];
    let system = systems.iter().find(|system| system.is_of_scheme("multiply")).expect("it is listed");
    let listen = ([127, 0, 0, 1], 0).into();
    let ready = |address| LISTENS.set(address).expect("it is ready once");
    let serving = Serving { listen, metrics: None, stamps: None, ready, for_trial: false };
    let (serve, settings) = (system.serve, Settings::defaults(system.server));
    thread::spawn(move || serve(&settings, serving));
    let address = *LISTENS.wait();
    let mut asked = Settings::defaults(system.workload);
    for (factor, outcome) in [("2", Outcome::Answered), ("3", Outcome::Wrong)] {
        asked.set("expect-factor", system.workload[0].kind.read(factor).unwrap());
        let workload = (system.load)(address, &asked, 1).unwrap();
        let plan = Plan::lasting(Arrivals::constant(200.0), Duration::from_millis(100), 7);
        let rows = |rows: kendall_load::RowBatches| rows.flatten().collect::<Vec<RequestRow>>();
        let (summary, rows) =
            run(&plan, &*workload, &Progress::default(), &AtomicBool::new(false), rows).unwrap();
        assert!(summary.sent > 0);
        // Twice zero is three times zero.
        assert!(rows.iter().all(|row| row.index == 0 || row.outcome == outcome), "{rows:?}");
    }
}

/// A console that captures its output.
#[derive(Default)]
struct Captured(Vec<u8>);

impl Console for Captured {
    fn input(&mut self) -> &mut dyn BufRead {
        unreachable!("the subcommand reads nothing")
    }

    fn output(&mut self) -> &mut dyn Write {
        &mut self.0
    }

    fn takes_colours(&self) -> bool {
        false
    }

    fn note(&mut self, _line: &str) {}

    fn ask(&mut self, _prompt: &str) -> io::Result<String> {
        Ok(String::new())
    }

    fn progress(&mut self, _progress: Transfer) {}

    fn progress_ended(&mut self) {}
}

#[test]
fn a_row_brings_its_subcommand_and_its_documentation() {
    let [double] = ROW.subcommands.all else { panic!("it has one subcommand") };
    let mut settings = Settings::defaults(double.options);
    settings.set("number", double.arguments[0].kind.read("21").unwrap());
    let mut console = Captured::default();
    assert_eq!((double.run)(&settings, &mut console), Ok(SubcommandEnd::Done));
    assert_eq!(console.0, b"42\n");
    let page = chapter(&[ROW]);
    for part in ["## multiply", "| `factor` |", "### `kendall multiply double NUMBER`", "| `NUMBER` |"] {
        assert!(page.contains(part), "{part} is missing:\n{page}");
    }
    assert!(readme_rows(&[ROW]).contains("| `kendall multiply` | multiply at the terminal: double |"));
    assert!(system_rows(&[ROW]).contains("| [`multiply`](systems.md#multiply) | `factor` |"));
}
