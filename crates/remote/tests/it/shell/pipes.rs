//! Commands without a terminal: bytes, ends and statuses as they are.

use std::time::Duration;

use kendall_remote::shell::protocol::Exit;
use kendall_remote::shell::{LocalEvent, Outcome, ServerSettings, Start};
use kendall_testbed::tempdir;
use tokio::io::AsyncWriteExt;

use super::harness::{Server, pipes, test};

#[test]
fn output_and_errors_stay_apart_and_statuses_and_signals_are_passed_on() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let (outcome, output, errors) =
            server.client(pipes("echo out; echo err >&2; test -t 0 || echo pipe; exit 7")).finish().await;
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Status(7)));
        assert_eq!((&output[..], &errors[..]), (&b"out\npipe\n"[..], &b"err\n"[..]));
        let (outcome, ..) = server.client(pipes("kill -TERM $$")).finish().await;
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Signal(15)));
        let (outcome, _, errors) = server.client(pipes("no-such-command")).finish().await;
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Status(127)));
        assert!(String::from_utf8_lossy(&errors).contains("no-such-command"));
        server.stop().await;
    });
}

#[test]
fn ten_megabytes_pass_both_ways_unchanged() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let sent: Vec<u8> = (0..10_000_000_u32).map(|i| (i.wrapping_mul(i) >> 11) as u8).collect();
        let mut client = server.client(pipes("cat"));
        let (mut input, copy) = (client.input.take().unwrap(), sent.clone());
        let writer = tokio::spawn(async move { input.write_all(&copy).await.unwrap() });
        let (outcome, output, _) = client.wait().await;
        writer.await.unwrap();
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Status(0)));
        assert!(output == sent, "{} of {} bytes", output.len(), sent.len());
        server.stop().await;
    });
}

#[test]
fn a_command_gets_signals_that_its_client_gets_and_hangs_up_when_the_client_leaves() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let mut client =
            server.client(pipes("trap 'echo got it; exit 3' INT; echo ready; while :; do sleep 0.01; done"));
        client.expect("ready").await;
        client.event(LocalEvent::Signal(2)).await;
        let (outcome, output, _) = client.wait().await;
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Status(3)));
        assert!(output.ends_with(b"got it\n"));

        let folder = tempdir().unwrap();
        let mark = folder.path().join("hung-up");
        let line =
            format!("trap 'echo > {}; exit' HUP; echo ready; while :; do sleep 0.01; done", mark.display());
        let mut client = server.client(pipes(&line));
        client.expect("ready").await;
        client.event(LocalEvent::Signal(1)).await;
        let (outcome, ..) = client.wait().await;
        assert_eq!(outcome.unwrap(), Outcome::Exited(Exit::Status(0)));
        assert!(mark.exists());
        std::fs::remove_file(&mark).unwrap();

        // A second signal: the client no longer waits for the program.
        let mut client = server.client(pipes(&format!("trap '' TERM; {line}")));
        client.expect("ready").await;
        client.event(LocalEvent::Signal(15)).await;
        client.event(LocalEvent::Signal(15)).await;
        let (outcome, ..) = client.wait().await;
        assert_eq!(outcome.unwrap(), Outcome::Signalled(15));
        while !mark.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server.stop().await;
    });
}

#[test]
fn a_program_waits_while_its_client_does_not_read() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let folder = tempdir().unwrap();
        let progress = folder.path().join("progress");
        let line = format!(
            "i=0; while [ $i -lt 1000 ]; do head -c 100000 /dev/zero; i=$((i+1)); echo $i >{}; done",
            progress.display()
        );
        let client = server.client(pipes(&line));
        let read = || {
            std::fs::read_to_string(&progress)
                .ok()
                .and_then(|text| text.trim().parse::<u32>().ok())
                .unwrap_or(0)
        };
        // Until it has made no progress for a while.
        let mut last = 0;
        let mut quiet = 0;
        while last == 0 || quiet < 20 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            quiet = if read() == last { quiet + 1 } else { 0 };
            last = read();
        }
        assert!(last < 150, "{last} × 100 kB were taken without a reader");
        let (outcome, output, _) = client.finish().await;
        assert_eq!((outcome.unwrap(), output.len()), (Outcome::Exited(Exit::Status(0)), 100_000_000));
        server.stop().await;
    });
}

#[test]
fn a_program_has_an_environment_and_descriptors_of_its_own() {
    test(async {
        let settings =
            ServerSettings { accept_environment: vec!["PROJECT".into()], ..ServerSettings::default() };
        let server = Server::start(settings);
        let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        let environment = vec![
            pair("LANG", "de_DE.UTF-8"),
            pair("LC_TIME", "C"),
            pair("PROJECT", "x y"),
            pair("LD_PRELOAD", "/evil.so"),
            pair("HOME", "/evil"),
            pair("LC_A=B", "c"),
        ];
        let line = "echo $LANG,$LC_TIME,$PROJECT,$LD_PRELOAD,$HOME,$CARGO_MANIFEST_DIR; ls /proc/self/fd | wc -l; \
                    ps -o pid=,sid= -p $$ | awk '{print $1 == $2}'; pwd";
        let start = Start::Open { terminal: None, command: Some(line.into()), environment };
        let (_, output, errors) = server.client(start).finish().await;
        let output = String::from_utf8(output).unwrap();
        let lines: Vec<&str> = output.lines().collect();
        let fields: Vec<&str> = lines[0].split(',').collect();
        assert_eq!((&fields[..4], fields[5]), (&["de_DE.UTF-8", "C", "x y", ""][..], ""));
        assert!(fields[4] != "/evil", "{output}");
        // Three streams and the folder that ls reads.
        assert_eq!(lines[1].trim(), "4", "{output} {}", String::from_utf8_lossy(&errors));
        assert_eq!((lines[2], lines[3]), ("1", fields[4]));
        server.stop().await;
    });
}

#[test]
fn the_programs_of_root_run_as_the_user_that_the_key_names() {
    if !rustix::process::geteuid().is_root() {
        return kendall_testbed::left_out("only root can become another user");
    }
    test(async {
        let server = Server::start_as(ServerSettings::default(), Some("nobody"));
        let line = "id -un; id -G; echo $HOME $USER; kill -0 1 2>&1 || echo cannot";
        let mut start = pipes(line);
        if let Start::Open { command, .. } = &mut start {
            // The user's own shell refuses to log in.
            *command = Some(line.into());
        }
        let (outcome, output, errors) = server.client(start).finish().await;
        let (output, errors) = (String::from_utf8_lossy(&output), String::from_utf8_lossy(&errors));
        match outcome {
            Ok(Outcome::Exited(Exit::Status(0))) => {
                let lines: Vec<&str> = output.lines().collect();
                assert_eq!((lines[0], lines.last()), ("nobody", Some(&"cannot")), "{output} {errors}");
            }
            // nologin.
            other => assert!(output.contains("not available"), "{other:?} {output} {errors}"),
        }
        server.stop().await;
        let server = Server::start_as(ServerSettings::default(), Some("no-such-user"));
        let (outcome, ..) = server.client(pipes("true")).finish().await;
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("no user no-such-user"), "{error}");
        server.stop().await;
    });
}
