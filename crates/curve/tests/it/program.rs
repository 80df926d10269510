//! Programs on both ends of a connection.

use std::io::Read;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use kendall_curve::curvecp::{ClientConfig, DomainName, Extension, MessageConfig, SecretKey, ServerConfig};
use kendall_curve::{Descriptors, Endpoint, RandomNonces, run_program};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command
}

/// A server and a stream to it, which is accepted by the first call of `accept`.
fn endpoints() -> (Endpoint, Endpoint, kendall_curve::Stream) {
    let (secret, name) = (SecretKey::from_bytes([1; 32]), DomainName::new("server.example").unwrap());
    let any = "127.0.0.1:0".parse().unwrap();
    let config = ServerConfig::new(secret.clone(), Extension::default(), name.clone());
    let server = Endpoint::server(any, config, RandomNonces).unwrap();
    let client = Endpoint::client(any, RandomNonces).unwrap();
    let stream = client.connect(ClientConfig {
        identity: SecretKey::from_bytes([2; 32]),
        server: secret.public_key(),
        server_extension: Extension::default(),
        name,
        addresses: vec![server.address()],
        extension: None,
        capabilities: Default::default(),
        message: MessageConfig::default(),
    });
    (server, client, stream.unwrap())
}

async fn serve(server: &Endpoint, line: &str) -> ExitStatus {
    let stream = server.accept().await.unwrap();
    run_program(stream, shell(line), Descriptors::Standard, server.address()).await.unwrap()
}

#[tokio::test]
async fn programs_talk_by_standard_streams_and_by_descriptors_6_and_7() {
    let (server, client, stream) = endpoints();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answer");
    let line = format!("echo question >&7; exec 7>&-; cat <&6 >{}", file.display());
    let local = client.address();
    let (served, asked) = tokio::join!(
        serve(&server, "cat; echo $PROTO $CURVECPREMOTEIP $CURVECPREMOTEKEY"),
        run_program(stream, shell(&line), Descriptors::Ucspi, local),
    );
    assert!(served.success() && asked.unwrap().success());
    let key = SecretKey::from_bytes([2; 32]).public_key();
    let expected = format!("question\nCURVECP 127.0.0.1 {key:?}\n");
    assert_eq!(std::fs::read_to_string(file).unwrap(), expected);
    client.idle().await;
}

#[tokio::test]
async fn a_program_that_fails_ends_its_stream_in_failure() {
    let (server, _client, mut stream) = endpoints();
    let asked = async {
        let mut arrived = String::new();
        let error = stream.read_to_string(&mut arrived).await.unwrap_err();
        (arrived, error.to_string())
    };
    let (served, asked) = tokio::join!(serve(&server, "echo part; exit 3"), asked);
    assert_eq!(served.code(), Some(3));
    assert_eq!(asked.1, "the peer ended its stream in failure");
    assert!(asked.0.is_empty() || asked.0 == "part\n", "{}", asked.0);
}

#[tokio::test]
async fn a_program_is_killed_where_its_input_ends_in_failure() {
    let (server, _client, mut stream) = endpoints();
    stream.write_all(b"part").await.unwrap();
    let (served, ()) = tokio::join!(serve(&server, "cat >/dev/null; sleep 1000"), async {
        assert!(stream.connection().established().await);
        stream.abort();
    });
    assert!(!served.success(), "{served}");
}

#[tokio::test]
async fn programs_that_a_killed_program_has_started_do_not_see_an_end_of_their_input() {
    for is_cancelled in [false, true] {
        let (server, _client, mut stream) = endpoints();
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("whole");
        // Whichever of the programs sees the end of its input writes the file.
        let line = format!("cat | {{ echo ready; cat >/dev/null; echo >{0}; }}; echo >{0}", whole.display());
        let (mut alive, theirs) = std::io::pipe().unwrap();
        let mut command = shell(&line);
        command.stderr(Stdio::from(theirs));
        stream.write_all(b"part").await.unwrap();
        let served = async {
            let stream = server.accept().await.unwrap();
            run_program(stream, command, Descriptors::Standard, server.address()).await
        };
        let ready = async {
            stream.read_exact(&mut [0; 6]).await.unwrap();
            if !is_cancelled {
                stream.abort();
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            served = served => assert!(!served.unwrap().success()),
            () = ready => assert!(is_cancelled),
        }
        // Ends when the last of the programs has.
        let ended = tokio::task::spawn_blocking(move || alive.read(&mut [0]).unwrap());
        assert_eq!(tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap().unwrap(), 0);
        assert!(!whole.exists(), "cancelled: {is_cancelled}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error() {
    let (_server, client, stream) = endpoints();
    let nothing = Command::new("/no/such/program");
    let error = run_program(stream, nothing, Descriptors::Standard, client.address()).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot start /no/such/program: "), "{error}");
}
