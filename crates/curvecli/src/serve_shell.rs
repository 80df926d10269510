//! `kendall curve serve-shell`: shells for `kendall curve shell`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use kendall_curve::curvecp::{DomainName, Extension, ServerConfig};
use kendall_curve::{Endpoint, KeyDirectory};
use kendall_remote::AuthorizedKeys;
use kendall_remote::shell::{Admit, Guest, ServerSettings, configure, serve};

use crate::host::ServerOptions;
use crate::host::duration;
use crate::run::{run_on_one_thread, signalled};
use kendall_stdio::note;

/// Serve shells for `kendall curve shell` to clients whose keys a file lists
#[derive(Args)]
#[command(
    long_about = "Serve shells and commands for `kendall curve shell` to clients whose public keys a file lists.\n\n\
        Programs run as the user who runs this server. Where that is root, they run as the user that the client's line names with \
        user=NAME, or as root where it names none. Each has its own kernel session and its own descriptors. Standard error has a line for \
        every session: the client and its address, the command, and how it ended.",
    after_long_help = "The file of authorised keys has a line for each client: its public key (kendall curve show), optionally \
        user=NAME, and a name for the log. It is read again when it changes.\n\n\
        Example:\n  kendall curve serve-shell server.example serverkey 127.0.0.1:10000 --authorized-keys authorized_keys"
)]
pub(crate) struct ServeShell {
    #[command(flatten)]
    server: ServerOptions,

    /// The most sessions at once, those without a client included
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    max_sessions: u16,

    /// The most sessions at once of one key
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    max_sessions_per_key: u16,

    /// A session waits this long for a client whose connection was lost; a program that writes much waits, too
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "300s")]
    resume_for: Duration,

    /// A detached session ends after this time
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "604800s")]
    detached_for: Duration,

    /// Let clients set this variable, besides LANG and LC_*; may be repeated
    #[arg(long, value_name = "NAME")]
    accept_env: Vec<String>,
}

pub(crate) fn serve_shell(options: ServeShell) -> anyhow::Result<ExitCode> {
    let keys = KeyDirectory::open(&options.server.key_directory)?;
    let authorized = Arc::new(AuthorizedKeys::open(&options.server.authorized_keys)?);
    let admitted = authorized.clone();
    let admit: Admit = Arc::new(move |key| {
        admitted.client(key).map(|client| Guest { user: client.user, label: client.name })
    });
    let settings = ServerSettings {
        sessions: options.max_sessions.into(),
        sessions_per_key: options.max_sessions_per_key.into(),
        resume_for: options.resume_for,
        detached_for: options.detached_for,
        accept_environment: options.accept_env,
    };
    let mut config = ServerConfig::new(
        keys.secret().clone(),
        Extension::default(),
        DomainName::new(&options.server.name)?,
    );
    configure(&mut config, &admit, &settings);
    run_on_one_thread(async move {
        let endpoint = Endpoint::server(options.server.listen, config, keys.nonces()?)?;
        let (name, address, count) = (&options.server.name, endpoint.address(), authorized.count());
        note(&format!("kendall: {name} listens on {address} and serves shells to {count} clients"));
        let mut code = Ok(ExitCode::SUCCESS);
        serve(endpoint, admit, settings, async { code = signalled().await }).await?;
        code
    })
}
