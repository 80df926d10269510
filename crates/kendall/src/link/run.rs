//! `kendall link run`: a command at one end of an emulated link, and its server at the other.

use std::env;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use kendall_archive::write_json;
use kendall_lab::{LinkRun, LinkRunRecord};
use kendall_link::{BackEnd, EmulatedLink, Forward, Hop, LinkSettings, ProgramEnd, SERVER, ServerProgram};
use kendall_linkmodel::Settings;
use kendall_record::clock::now_ns;

use super::settings::LinkOptions;
use crate::interrupt::CtrlC;
use crate::options::{loopback, positive_time};
use crate::quiet::LINK_PROCESS;
use crate::record::new_folder;
use crate::{INTERRUPTED, print};

#[derive(Args)]
pub(crate) struct LinkRunOptions {
    #[command(flatten)]
    link: LinkOptions,

    /// One of several links in a row, from client to server: 'delay=5ms rate=100mbit'; after a slash, settings that differ in the other
    /// direction: 'delay=5ms rate=10mbit / rate=100mbit'
    #[arg(long, value_name = "SETTINGS", value_parser = Hop::from_str)]
    hop: Vec<Hop>,

    /// Run this shell command at the server's end; CMD starts when it listens at 10.0.0.2 or 0.0.0.0
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,

    /// Wait this long at most until the server listens
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = positive_time)]
    wait: Duration,

    /// Forward a TCP port at the server's end to one of this machine: 8080, or 80=127.0.0.1:8080
    #[arg(long, value_name = "PORT[=ADDR]", value_parser = forward)]
    forward: Vec<(u16, SocketAddr)>,

    /// Congestion control of connections from both ends: cubic, bbr, reno [default: that of the machine]
    #[arg(long, value_name = "NAME", value_parser = congestion_control)]
    congestion: Option<String>,

    /// How packets get to the link [default: the first that works here]
    #[arg(long, value_name = "NAME")]
    back_end: Option<Named>,

    /// Seed of all random decisions; drawn at random if left out, and printed
    #[arg(long)]
    seed: Option<u64>,

    /// Measure the link for some seconds before CMD starts
    #[arg(long)]
    measure: bool,

    /// Record what happened in this new folder: link.json, and link.parquet with every flow every 10 ms
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,

    /// Print no summary of the link at the end
    #[arg(long)]
    quiet: bool,

    /// The command to run at the client's end. {server} in it becomes the server's URL, http://10.0.0.2:PORT, {host} and {port} its
    /// parts; KENDALL_SERVER has the address, too. Several words run as they are, without a shell; one word with blanks runs by the
    /// shell, such as 'curl -s {server}/ | wc -c', by the shell
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    command: Vec<String>,
}

/// A back end by its name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Named {
    /// Pairs of devices and packet sockets
    Veth,
    /// TUN devices
    Tun,
    /// The kernel's own emulator, which knows less
    Netem,
}

impl From<Named> for BackEnd {
    fn from(named: Named) -> Self {
        match named {
            Named::Veth => Self::Veth,
            Named::Tun => Self::Tun,
            Named::Netem => Self::Netem,
        }
    }
}

fn congestion_control(name: &str) -> Result<String, String> {
    kendall_link::check_congestion_control(name).map(|()| name.to_owned())
}

/// Reads "8080" or "80=127.0.0.1:8080".
fn forward(text: &str) -> Result<(u16, SocketAddr), String> {
    let (port, to) = text.split_once('=').unwrap_or((text, text));
    let refuse = || format!("{text:?} is not a port to forward; write 8080, or 80=127.0.0.1:8080");
    let read = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let to = to.parse().ok().or_else(|| read(to).map(loopback));
    Ok((read(port).ok_or_else(refuse)?, to.ok_or_else(refuse)?))
}

pub(crate) fn run(options: &LinkRunOptions) -> anyhow::Result<ExitCode> {
    let asked = asked(options)?;
    if let Some(folder) = &options.record {
        new_folder(folder)?;
    }
    let seed = options.seed.unwrap_or_else(kendall_lab::drawn_seed);
    let mut link = lay(options)?;
    // From here on there may be threads; those that stay outside of the link are begun before this one enters it.
    link.join()?;
    let ctrl_c = CtrlC::listen()?;
    let forwards: Vec<_> = options.forward.iter().map(|&(port, to)| (port, Forward::to(to))).collect();
    link.client().enter()?;
    let measured = options.measure.then(|| link.measure(&asked, !seed)).transpose()?;
    let log = options.record.as_ref().map(|folder| folder.join("link.parquet"));
    link.start(&asked, seed, log.as_deref())?;
    let start_ns = now_ns();
    for (port, forward) in forwards {
        let listener = link.server().visit(|| TcpListener::bind((SERVER, port)))?;
        forward.from(listener.with_context(|| format!("cannot listen on {SERVER}:{port}"))?);
    }
    let within = options.wait;
    let serve = |command: &String| ServerProgram::start(&link, command, within, ctrl_c.as_fd());
    let server = options.server.as_ref().map(serve).transpose()?;
    let port =
        server.as_ref().map(ServerProgram::port).or_else(|| options.forward.first().map(|forward| forward.0));
    let mut command = command(&options.command, port)?;
    command.env(LINK_PROCESS, std::process::id().to_string());
    let status = code(link.run_program(command, ctrl_c.as_fd())?);
    let outcome = link.stop(log.as_deref().map(|log| (log, start_ns)))?;
    drop(server);
    let described = link.described();
    // Whatever the command has left behind ends before the summary, so that nothing is printed after that.
    drop(link);
    let did = LinkRun { link: described, seed, asked: (&asked).into(), measured, outcome };
    if let Some(folder) = &options.record {
        write_json(
            &folder.join("link.json"),
            &LinkRunRecord { command: &options.command, start_ns, run: &did },
        )?;
    }
    if !options.quiet {
        print::note(&kendall_lab::link_summary(&did));
    }
    Ok(status)
}

/// The command at the client's end, with the server's place filled in: the words as they are, or one word with blanks for the shell.
fn command(words: &[String], port: Option<u16>) -> anyhow::Result<Command> {
    let filled = |word: &String| {
        let names_port = word.contains("{server}") || word.contains("{port}");
        let port = match port {
            Some(port) => port.to_string(),
            None if names_port => {
                bail!("{word:?} is the server's port, but there is no server; give --server or --forward")
            }
            None => String::new(),
        };
        let url = format!("http://{SERVER}:{port}");
        let host = SERVER.to_string();
        Ok(word.replace("{server}", &url).replace("{host}", &host).replace("{port}", &port))
    };
    let words = words.iter().map(filled).collect::<anyhow::Result<Vec<_>>>()?;
    let mut command = match &words[..] {
        [line] if line.contains(char::is_whitespace) => {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", line]);
            shell
        }
        words => {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            command
        }
    };
    if let Some(port) = port {
        command.env("KENDALL_SERVER_PORT", port.to_string());
    }
    Ok(command)
}

/// An exit status as shells have it.
fn code(end: ProgramEnd) -> ExitCode {
    let ProgramEnd::Exited(status) = end else { return ExitCode::from(INTERRUPTED) };
    let signalled = || 128 + status.signal().unwrap_or(0);
    ExitCode::from(u8::try_from(status.code().unwrap_or_else(signalled)).unwrap_or(1))
}

fn lay(options: &LinkRunOptions) -> anyhow::Result<EmulatedLink> {
    let program = env::current_exe().context("cannot find the kendall program, to emulate the link with")?;
    let back_ends: Vec<BackEnd> = match options.back_end {
        Some(named) => vec![named.into()],
        None => BackEnd::ALL.into(),
    };
    let link = EmulatedLink::set_up(&program, &back_ends, options.congestion.as_deref())?;
    for note in link.notes() {
        print::note(&format!("kendall: {note}"));
    }
    Ok(link)
}

/// The link that is asked for: its only hop by options, or each hop by a text.
fn asked(options: &LinkRunOptions) -> anyhow::Result<LinkSettings> {
    let LinkOptions { up, down } = &options.link;
    if options.hop.is_empty() {
        return Ok(LinkSettings { up: vec![up.clone()], down: vec![down.clone()] });
    }
    if [up, down].iter().any(|way| **way != Settings::default()) {
        bail!("give each --hop all its settings, or give the settings of the only hop without --hop");
    }
    Ok(LinkSettings::row(&options.hop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_servers_url_and_runs_by_the_shell_only_as_one_word() {
        let of = |words: &[&str]| {
            command(&words.iter().map(ToString::to_string).collect::<Vec<_>>(), Some(8080)).unwrap()
        };
        let shown = |command: &Command| {
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&of(&["curl", "-s", "{server}/a b"])), ["curl", "-s", "http://10.0.0.2:8080/a b"]);
        assert_eq!(shown(&of(&["nc {host} {port} | wc"])), ["/bin/sh", "-c", "nc 10.0.0.2 8080 | wc"]);
        assert_eq!(shown(&of(&["true"])), ["true"]);
        let why = command(&["{server}".to_owned()], None).unwrap_err().to_string();
        assert!(why.contains("--server or --forward"), "{why}");
    }

    #[test]
    fn a_port_to_forward_leads_to_the_same_one_of_this_machine_or_to_an_address() {
        assert_eq!(forward("8080"), Ok((8080, loopback(8080))));
        assert_eq!(forward("80=8080"), Ok((80, loopback(8080))));
        assert_eq!(forward("80=[::1]:9"), Ok((80, "[::1]:9".parse().unwrap())));
        for text in ["", "0", "65536", "80=", "=80", "80=example", "http"] {
            assert!(forward(text).unwrap_err().contains("80=127.0.0.1:8080"), "{text}");
        }
    }
}
