//! Two endpoints on the loopback interface: data, ends, failures.

use std::io::ErrorKind;
use std::time::Duration;

use kendall_curve::curvecp::{
    ClientConfig, CloseReason, DomainName, Extension, MessageConfig, SecretKey, ServerConfig,
};
use kendall_curve::{CurveError, Endpoint, RandomNonces, Stage, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn server_key() -> SecretKey {
    SecretKey::from_bytes([1; 32])
}
fn client_key() -> SecretKey {
    SecretKey::from_bytes([2; 32])
}

fn server_config() -> ServerConfig {
    ServerConfig::new(server_key(), Extension::default(), DomainName::new("server.example").unwrap())
}

fn client_config(server: &Endpoint) -> ClientConfig {
    ClientConfig {
        identity: client_key(),
        server: server_key().public_key(),
        server_extension: Extension::default(),
        name: DomainName::new("server.example").unwrap(),
        addresses: vec![server.address()],
        extension: None,
        capabilities: Default::default(),
        message: MessageConfig::default(),
    }
}

fn endpoints(config: ServerConfig) -> (Endpoint, Endpoint) {
    let any = "127.0.0.1:0".parse().unwrap();
    (Endpoint::server(any, config, RandomNonces).unwrap(), Endpoint::client(any, RandomNonces).unwrap())
}

/// A client's and the server's end of a new connection.
async fn connected(server: &Endpoint, client: &Endpoint) -> (Stream, Stream) {
    let ours = client.connect(client_config(server)).unwrap();
    (ours, server.accept().await.unwrap())
}

#[tokio::test]
async fn bytes_arrive_in_order_and_both_sides_part() {
    let (server, client) = endpoints(server_config());
    let (ours, theirs) = connected(&server, &client).await;
    assert_eq!(theirs.connection().peer(), client_key().public_key());
    assert_eq!(theirs.connection().address(), Some(client.address()));
    let connections = [ours.connection().clone(), theirs.connection().clone()];

    let echo = tokio::spawn(async move {
        let (mut read, mut write) = tokio::io::split(theirs);
        tokio::io::copy(&mut read, &mut write).await.unwrap();
        write.shutdown().await.unwrap();
    });
    let sent: Vec<u8> = (0..3_000_000_u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    let (mut read, mut write) = tokio::io::split(ours);
    let mut arrived = Vec::new();
    let (written, answered) = tokio::join!(
        async {
            write.write_all(&sent).await?;
            let longest = connections[0].stats().longest_message;
            assert_eq!(longest, 1_344, "the loopback interface carries the longest packets");
            write.shutdown().await
        },
        read.read_to_end(&mut arrived),
    );
    written.unwrap();
    assert_eq!(answered.unwrap(), sent.len());
    assert!(arrived == sent);
    echo.await.unwrap();
    for connection in connections {
        assert_eq!(connection.closed().await, Some(CloseReason::Finished));
    }
    client.idle().await;
    server.idle().await;
}

#[tokio::test]
async fn a_dropped_stream_reads_as_failed_and_the_connection_ends() {
    let (server, client) = endpoints(server_config());
    let (ours, mut theirs) = connected(&server, &client).await;
    let connection = ours.connection().clone();
    assert!(connection.established().await);
    drop(ours);
    let error = theirs.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::ConnectionReset, "the peer ended its stream in failure")
    );
    // What no one reads any more does not hold up the end.
    theirs.write_all(&vec![0; 1_000_000]).await.unwrap();
    theirs.shutdown().await.unwrap();
    assert_eq!(theirs.connection().closed().await, Some(CloseReason::Finished));
    assert_eq!(theirs.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn many_connections_share_one_socket() {
    let (server, client) = endpoints(server_config());
    let serve = async {
        for _ in 0..50 {
            let mut stream = server.accept().await.unwrap();
            tokio::spawn(async move {
                let question = stream.read_u32().await.unwrap();
                stream.write_u32(question + 1).await.unwrap();
                stream.shutdown().await.unwrap();
            });
        }
    };
    let ask = async {
        let asked: Vec<_> = (0..50_u32)
            .map(|question| {
                let mut stream = client.connect(client_config(&server)).unwrap();
                tokio::spawn(async move {
                    stream.write_u32(question).await.unwrap();
                    stream.shutdown().await.unwrap();
                    assert_eq!(stream.read_u32().await.unwrap(), question + 1);
                })
            })
            .collect();
        for asked in asked {
            asked.await.unwrap();
        }
    };
    tokio::join!(serve, ask);
    client.idle().await;
}

#[tokio::test]
async fn connections_outlive_their_endpoint() {
    let (server, client) = endpoints(server_config());
    let (mut ours, mut theirs) = connected(&server, &client).await;
    drop((server, client));
    ours.write_all(b"still here").await.unwrap();
    ours.shutdown().await.unwrap();
    theirs.shutdown().await.unwrap();
    let mut arrived = String::new();
    theirs.read_to_string(&mut arrived).await.unwrap();
    assert_eq!(arrived, "still here");
    assert_eq!(ours.connection().closed().await, Some(CloseReason::Finished));
}

#[tokio::test]
async fn a_server_that_knows_another_name_stays_silent_and_a_wrong_configuration_is_an_error() {
    let (server, client) = endpoints(server_config());
    let other = ClientConfig { name: DomainName::new("other.example").unwrap(), ..client_config(&server) };
    let stream = client.connect(other).unwrap();
    let answered = tokio::time::timeout(Duration::from_millis(300), stream.connection().established());
    assert!(answered.await.is_err());
    assert_eq!(stream.connection().stage(), Stage::Opening);
    let nowhere = ClientConfig { addresses: vec![], ..client_config(&server) };
    let error = client.connect(nowhere).unwrap_err();
    assert!(matches!(error, CurveError::Protocol(_)), "{error}");
    let taken = Endpoint::client(client.address(), RandomNonces).unwrap_err().to_string();
    assert!(taken.starts_with(&format!("cannot bind UDP {}: ", client.address())), "{taken}");
}

#[test]
fn streams_fail_when_the_runtime_ends() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (mut ours, client) = runtime.block_on(async {
        let (server, client) = endpoints(server_config());
        let (ours, _theirs) = connected(&server, &client).await;
        (ours, client)
    });
    drop(runtime);
    let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
    other.block_on(async {
        assert_eq!(ours.write(b"late").await.unwrap_err().kind(), ErrorKind::ConnectionAborted);
        assert_eq!(ours.read(&mut [0; 9]).await.unwrap_err().kind(), ErrorKind::ConnectionAborted);
        assert!(matches!(client.accept().await, Err(CurveError::EndpointClosed)));
    });
}
