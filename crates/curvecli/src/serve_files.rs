//! `kendall curve serve-files`: a folder for `kendall curve copy`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use kendall_curve::KeyDirectory;
use kendall_remote::copy::{Access, FilePolicy, FileServer};
use kendall_remote::{AuthorizedKeys, Sessions, serve};

use crate::host::{ServerOptions, silence_limit};
use crate::run::{run, signalled};
use kendall_stdio::note;

/// Serve a folder for `kendall curve copy` to clients whose keys a file lists
#[derive(Args)]
#[command(
    long_about = "Serve a folder for `kendall curve copy` to clients whose public keys a file lists.\n\n\
        Clients see nothing outside the folder: no path and no symbolic link leads out of it. Without --read-write they can \
        download only. Standard error has a line for every copy: the client, the files, and how it ended.",
    after_long_help = "The file of authorised keys has a line for each client: its public key (kendall curve show), a space, and a \
        name for the log. It is read again when it changes.\n\n\
        Example:\n  kendall curve serve-files server.example serverkey 127.0.0.1:10000 /srv/files --authorized-keys \
        authorized_keys --read-write"
)]
pub(crate) struct ServeFiles {
    #[command(flatten)]
    server: ServerOptions,

    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Accept uploads, too
    #[arg(long)]
    read_write: bool,

    /// The most sessions at once; further clients are rejected
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    sessions: u16,

    /// The most sessions at once of one key; its further ones are rejected, too
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    sessions_per_key: u16,

    /// Let clients set owners and groups of uploaded files
    #[arg(long, requires = "read_write")]
    allow_owner: bool,

    /// Let clients set the set-user-ID, set-group-ID and sticky bits of uploaded files
    #[arg(long, requires = "read_write")]
    allow_special_bits: bool,

    /// End a session whose client has sent nothing for this time; a working client sends at least every 10 s
    #[arg(long, value_name = "DURATION", value_parser = silence_limit, default_value = "60s")]
    silence_limit: Duration,
}

pub(crate) fn serve_files(options: ServeFiles) -> anyhow::Result<ExitCode> {
    let keys = KeyDirectory::open(&options.server.key_directory)?;
    let authorized = Arc::new(AuthorizedKeys::open(&options.server.authorized_keys)?);
    let policy = FilePolicy {
        access: if options.read_write { Access::ReadWrite } else { Access::ReadOnly },
        allow_owner: options.allow_owner,
        allow_special_bits: options.allow_special_bits,
        silence_limit: options.silence_limit,
    };
    let files = FileServer::new(&options.folder, policy)?;
    let sessions = Sessions {
        name: options.server.name.clone(),
        keys,
        listen: options.server.listen,
        authorized: authorized.clone(),
        most: options.sessions.into(),
        most_per_key: options.sessions_per_key.into(),
    };
    run(async move {
        let bound = |address| {
            let (name, folder, count) = (&options.server.name, options.folder.display(), authorized.count());
            note(&format!("kendall: {name} listens on {address} and serves {folder} to {count} clients"));
        };
        let session = |stream, client: String, stop: kendall_remote::Stop| {
            let files = files.clone();
            async move { files.session(stream, &client, stop.requested()).await }
        };
        let mut code = Ok(ExitCode::SUCCESS);
        serve(sessions, bound, session, async { code = signalled().await }).await?;
        code
    })
}
