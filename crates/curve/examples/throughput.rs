//! A server and a client on the loopback interface: `cargo run --release -p kendall-curve --example throughput [MB]` moves
//! that many megabytes (1,000 by default) over one stream and prints the speed and the processor time of both ends.

use std::error::Error;
use std::time::Instant;

use kendall_curve::curvecp::{ClientConfig, DomainName, Extension, SecretKey, ServerConfig};
use kendall_curve::{Endpoint, RandomNonces, system_random};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let megabytes: usize = std::env::args().nth(1).map_or(Ok(1000), |words| words.parse())?;
    let name = DomainName::new("server.example")?;
    let secret = SecretKey::generate(&mut system_random());
    let key = secret.public_key();
    let any = "127.0.0.1:0".parse()?;
    let server =
        Endpoint::server(any, ServerConfig::new(secret, Extension::default(), name.clone()), RandomNonces)?;
    let client = Endpoint::client(any, RandomNonces)?;
    let mut sender = client.connect(ClientConfig {
        identity: SecretKey::generate(&mut system_random()),
        server: key,
        server_extension: Extension::default(),
        name,
        addresses: vec![server.address()],
        extension: None,
        capabilities: Default::default(),
        message: Default::default(),
    })?;

    let (begun, cpu) = (Instant::now(), cpu_s());
    let send = tokio::spawn(async move {
        let megabyte = vec![0; 1_000_000];
        for _ in 0..megabytes {
            sender.write_all(&megabyte).await?;
        }
        sender.shutdown().await
    });
    let mut receiver = server.accept().await?;
    receiver.shutdown().await?;
    let (mut buffer, mut received) = (vec![0; 256 << 10], 0);
    loop {
        match receiver.read(&mut buffer).await? {
            0 => break,
            bytes => received += bytes,
        }
    }
    send.await??;
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), cpu_s() - cpu);
    let bytes = received as f64;
    println!("{:.0} MB/s, {:.2} CPU s/GB for both ends", bytes / 1e6 / seconds, cpu / (bytes / 1e9));
    Ok(())
}

/// The processor time that this process has used.
fn cpu_s() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
