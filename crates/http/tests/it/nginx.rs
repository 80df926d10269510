//! nginx as a peer: HTTP/1.1, HTTP/2 and both over TLS, connections kept and not.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::{all_end, closed, testdata, trusting};
use kendall_http::{HttpOptions, Trust, Version};
use kendall_load::Reuse;
use kendall_record::Outcome;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A running nginx, stopped by its process id.
struct Nginx {
    process: Child,
    clear: SocketAddr,
    /// HTTP/2 by prior knowledge.
    clear2: SocketAddr,
    tls: SocketAddr,
    /// TLS without HTTP/2.
    tls1: SocketAddr,
    _folder: TempDir,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
    }
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap()
}

/// Starts nginx, or reports why the test is skipped.
fn nginx() -> Option<Nginx> {
    if !kendall_testbed::has_peer("nginx", "-v") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let [clear, clear2, tls, tls1] = [(); 4].map(|()| free());
    let (certificate, key) = (testdata("localhost.pem"), testdata("localhost.key"));
    let (certificate, key) = (certificate.display(), key.display());
    fs::write(folder.path().join("big"), "0123456789abcdef".repeat(20_000)).unwrap();
    let root = folder.path().display();
    let configuration = format!(
        "daemon off; worker_processes 1; pid {root}/pid; error_log stderr error;
        events {{ worker_connections 1024; }}
        http {{
          access_log off; keepalive_requests 50; client_body_temp_path {root}/body; proxy_temp_path {root}/p;
          fastcgi_temp_path {root}/f; uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;
          client_max_body_size 1m; root {root}; ssl_certificate {certificate}; ssl_certificate_key {key};
          server {{
            listen {clear}; listen {clear2} http2; listen {tls} ssl http2; listen {tls1} ssl;
            location / {{ return 200 'ok $request_uri'; }}
            location /echo {{ return 200 '$request_method $http_x_id'; }}
            location /moved {{ return 302 /; }}
            location /busy {{ return 503; }}
            location = /big {{ gzip on; gzip_types *; }}
          }}
        }}"
    );
    fs::write(folder.path().join("nginx.conf"), configuration).unwrap();
    let process =
        Command::new("nginx").arg("-p").arg(folder.path()).args(["-e", "stderr", "-c", "nginx.conf"]).spawn();
    let nginx = Nginx { process: process.unwrap(), clear, clear2, tls, tls1, _folder: folder };
    let deadline = Instant::now() + Duration::from_secs(10);
    // It begins to listen at one port after the other.
    for port in [clear, clear2, tls, tls1] {
        while TcpStream::connect(port).is_err() {
            assert!(Instant::now() < deadline, "nginx does not listen");
            thread::sleep(Duration::from_millis(5));
        }
    }
    Some(nginx)
}

/// All options for one path, with their addresses.
fn ways(nginx: &Nginx, path: &str) -> Vec<(SocketAddr, HttpOptions)> {
    let mut ways = Vec::new();
    for reuse in [Reuse::Keep, Reuse::Close] {
        for (version, clear, tls) in
            [(Version::Http1, nginx.clear, nginx.tls), (Version::Http2, nginx.clear2, nginx.tls)]
        {
            ways.push((
                clear,
                HttpOptions { version, reuse, ..HttpOptions::get(format!("http://{clear}{path}")) },
            ));
            let url = format!("https://localhost:{}{path}", tls.port());
            ways.push((tls, HttpOptions { version, reuse, streams: 3, ..trusting(&url) }));
        }
    }
    ways
}

#[test]
fn every_version_is_answered_with_connections_kept_and_not() {
    let Some(nginx) = nginx() else { return };
    for (address, mut options) in ways(&nginx, "/a/{index}") {
        // More than nginx allows on one connection: it closes them in order meanwhile, which costs no request.
        options.request.expect_text = Some("ok /a/1".into());
        options.url = options.url.replace("{index}", "1{index}");
        all_end(address, &options, 4, 130, Outcome::Answered);
    }
}

#[test]
fn connections_and_streams_are_as_configured() {
    let Some(nginx) = nginx() else { return };
    for (address, options) in ways(&nginx, "/") {
        let (summary, rows) = closed(address, &options, 6, 40);
        assert_eq!(summary.statuses, [(200, 40)].into(), "{:?}", options.version);
        let mut ports: Vec<u16> = rows.iter().map(|row| row.port).collect();
        ports.sort_unstable();
        ports.dedup();
        let expected = match (options.reuse, options.version) {
            (Reuse::Close, _) => 40..=40,
            (Reuse::Keep, Version::Http1) => 1..=6,
            // Six streams on lines of ten or three.
            (Reuse::Keep, _) => 1..=(6 / options.streams.min(6)) as usize,
        };
        assert!(
            expected.contains(&ports.len()),
            "{:?}: {ports:?} {:?}",
            options.version,
            summary.refused_because
        );
    }
}

#[test]
fn methods_headers_bodies_and_statuses_go_through() {
    let Some(nginx) = nginx() else { return };
    for (address, options) in
        ways(&nginx, "/echo").into_iter().filter(|(_, options)| options.reuse == Reuse::Keep)
    {
        let mut puts = options.clone();
        puts.request.method = Some("PUT".into());
        puts.request.headers = [("x-id".to_owned(), "n{random:1}".to_owned())].into();
        puts.request.expect_text = Some("PUT n0".into());
        all_end(address, &puts, 2, 10, Outcome::Answered);
        let mut heads = options.clone();
        heads.request.method = Some("HEAD".into());
        heads.request.expect_length = Some(0);
        all_end(address, &heads, 2, 10, Outcome::Answered);
        let with_path =
            |path: &str| HttpOptions { url: options.url.replace("/echo", path), ..options.clone() };
        all_end(address, &with_path("/moved"), 2, 10, Outcome::Answered);
        all_end(address, &with_path("/busy"), 2, 10, Outcome::Refused);
        all_end(address, &with_path("/big/none"), 2, 10, Outcome::Answered);
        let mut big = with_path("/big");
        big.request.expect_length = Some(320_000);
        all_end(address, &big, 2, 10, Outcome::Answered);
        big.request.expect_length = Some(320_001);
        all_end(address, &big, 2, 10, Outcome::Wrong);
        let mut posts = with_path("/");
        posts.request.body = Some("x".repeat(200_000));
        all_end(address, &posts, 2, 10, Outcome::Answered);
    }
}

#[test]
fn certificates_are_trusted_as_configured() {
    let Some(nginx) = nginx() else { return };
    let url = format!("https://127.0.0.1:{}/", nginx.tls.port());
    for version in [Version::Http1, Version::Http2] {
        let with = |trust| HttpOptions { version, trust, ..HttpOptions::get(&url) };
        all_end(nginx.tls, &with(Trust::File(testdata("localhost.pem"))), 1, 3, Outcome::Answered);
        all_end(nginx.tls, &with(Trust::Anyone), 1, 3, Outcome::Answered);
        all_end(nginx.tls, &with(Trust::Machine), 1, 3, Outcome::Refused);
        // A certificate of localhost is not one of another name.
        let other = HttpOptions { url: url.replace("127.0.0.1", "other.example"), ..trusting(&url) };
        all_end(nginx.tls, &HttpOptions { version, ..other }, 1, 3, Outcome::Refused);
    }
}

#[test]
fn a_server_without_http_2_is_refused_with_the_reason() {
    let Some(nginx) = nginx() else { return };
    let url = format!("https://localhost:{}/", nginx.tls1.port());
    let options = HttpOptions { version: Version::Http2, ..trusting(&url) };
    let (summary, _) = closed(nginx.tls1, &options, 1, 3);
    assert_eq!(summary.count(Outcome::Refused), 3);
    let why = summary.refused_because.unwrap_or_default();
    assert!(why.contains("HTTP/1.1") || why.contains("NoApplicationProtocol"), "{why}");
}
