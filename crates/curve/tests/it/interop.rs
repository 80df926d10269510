//! This crate and the programs of NaCl talk to each other: either is the server, either speaks first, over links that
//! lose, repeat and reorder.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::reference::{NAME, Peer};
use crate::relay::Link;
use kendall_curve::curvecp::{
    ClientConfig, CloseReason, DomainName, Extension, MessageConfig, PublicKey, SecretKey, ServerConfig,
};
use kendall_curve::{Endpoint, KeyDirectory, RandomNonces, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Links by their share of loss, with how much crosses them: the reference halves its rate with each loss.
const LINKS: [(Link, usize); 3] = [
    (Link { loss: 0.0, repeats: 0.0, late: 0.0 }, 40_000),
    (Link { loss: 0.01, repeats: 0.02, late: 0.02 }, 30_000),
    (Link { loss: 0.05, repeats: 0.05, late: 0.05 }, 10_000),
];
/// No transfer takes this long unless it stalls.
const STALLED: Duration = Duration::from_secs(240);

fn message_config() -> MessageConfig {
    MessageConfig { time_wait: Duration::from_millis(100), ..MessageConfig::default() }
}

fn data(length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A client of ours, connected to a server of the reference behind a link.
async fn client_of(server: &Peer, key: PublicKey, link: Link, seed: u64) -> Stream {
    let client = Endpoint::client("127.0.0.1:0".parse().unwrap(), RandomNonces).unwrap();
    let address = crate::relay::start(server.address, link, seed).await;
    let config = ClientConfig {
        identity: SecretKey::from_bytes([7; 32]),
        server: key,
        server_extension: Extension::default(),
        name: DomainName::new(NAME).unwrap(),
        // As the program may not have bound its port yet, the second Hello gets through.
        addresses: vec![address],
        extension: None,
        capabilities: Default::default(),
        message: message_config(),
    };
    client.connect(config).unwrap()
}

/// A server of ours, and a client of the reference that reaches it through a link.
async fn server_for(keys: &KeyDirectory, link: Link, seed: u64, message: &str) -> (Stream, Peer) {
    let mut config =
        ServerConfig::new(keys.secret().clone(), Extension::default(), DomainName::new(NAME).unwrap());
    config.message = message_config();
    let server = Endpoint::server("127.0.0.1:0".parse().unwrap(), config, keys.nonces().unwrap()).unwrap();
    let address = crate::relay::start(server.address(), link, seed).await;
    let client = Peer::client(&format!("{:?}", keys.public_key()), address, message);
    (server.accept().await.unwrap(), client)
}

/// Runs a pairing over all links at once, each in a folder with a key directory and data to send.
async fn over_all_links<F: Future<Output = ()>>(
    pairing: impl Fn(tempfile::TempDir, KeyDirectory, Link, u64) -> F,
) {
    if !crate::reference::is_here() {
        return;
    }
    let runs = LINKS.iter().zip(1..).map(|((link, length), seed)| {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeyDirectory::create(&folder.path().join("key")).unwrap();
        fs::write(folder.path().join("data"), data(*length)).unwrap();
        let run = pairing(folder, keys, *link, seed);
        async move {
            let done = tokio::time::timeout(STALLED, run).await;
            assert!(done.is_ok(), "the transfer stalls over {link:?}");
        }
    });
    let [first, second, third] = <[_; 3]>::try_from(runs.collect::<Vec<_>>()).ok().unwrap();
    tokio::join!(first, second, third);
}

/// Waits until a program has written this file in full.
async fn written(file: &Path, expected: &[u8]) {
    while fs::read(file).is_ok_and(|bytes| bytes != expected) || !file.exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn our_client_gets_back_what_it_sends_to_their_server() {
    over_all_links(|folder, keys, link, seed| async move {
        let server = Peer::server(&folder.path().join("key"), "exec curvecpmessage cat");
        let stream = client_of(&server, keys.public_key(), link, seed).await;
        let connection = stream.connection().clone();
        let sent = fs::read(folder.path().join("data")).unwrap();
        let (mut read, mut write) = tokio::io::split(stream);
        let mut arrived = Vec::new();
        let (written, answered) = tokio::join!(
            async {
                write.write_all(&sent).await?;
                write.shutdown().await
            },
            read.read_to_end(&mut arrived),
        );
        written.and(answered).unwrap();
        assert!(arrived == sent, "{} of {} bytes", arrived.len(), sent.len());
        assert_eq!(connection.closed().await, Some(CloseReason::Finished));
    })
    .await;
}

#[tokio::test]
async fn our_client_reads_what_their_server_sends_first() {
    over_all_links(|folder, keys, link, seed| async move {
        let program = format!("exec curvecpmessage cat {}/data", folder.path().display());
        let server = Peer::server(&folder.path().join("key"), &program);
        let mut stream = client_of(&server, keys.public_key(), link, seed).await;
        stream.shutdown().await.unwrap();
        let mut arrived = Vec::new();
        stream.read_to_end(&mut arrived).await.unwrap();
        assert!(arrived == fs::read(folder.path().join("data")).unwrap());
        assert_eq!(stream.connection().closed().await, Some(CloseReason::Finished));
    })
    .await;
}

#[tokio::test]
async fn their_client_gets_back_what_it_sends_to_our_server() {
    over_all_links(|folder, keys, link, seed| async move {
        let path = folder.path().display();
        let program =
            format!("exec curvecpmessage -C sh -c 'cat {path}/data >&7 & exec 7>&-; cat <&6 >{path}/answer'");
        let (stream, _client) = server_for(&keys, link, seed, &program).await;
        let (mut read, mut write) = tokio::io::split(stream);
        tokio::io::copy(&mut read, &mut write).await.unwrap();
        write.shutdown().await.unwrap();
        written(&folder.path().join("answer"), &fs::read(folder.path().join("data")).unwrap()).await;
    })
    .await;
}

#[tokio::test]
async fn their_client_reads_what_our_server_sends_first() {
    over_all_links(|folder, keys, link, seed| async move {
        let path = folder.path().display();
        let program = format!("exec curvecpmessage -c sh -c 'exec 7>&-; cat <&6 >{path}/answer'");
        let (mut stream, _client) = server_for(&keys, link, seed, &program).await;
        let sent = fs::read(folder.path().join("data")).unwrap();
        stream.write_all(&sent).await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(stream.read_to_end(&mut Vec::new()).await.unwrap(), 0);
        written(&folder.path().join("answer"), &sent).await;
        assert_eq!(stream.connection().closed().await, Some(CloseReason::Finished));
    })
    .await;
}
