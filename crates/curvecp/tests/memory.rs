//! What connections cost in memory.

#![cfg(target_os = "linux")]

#[path = "it/net/mod.rs"]
mod net;

use net::attacker::Attacker;
use net::*;
use std::time::Duration;

/// Resident memory of this process: the second field of `/proc/self/statm`, in pages of 4 KiB.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// 10,000 connections must fit in 300 MB; this is the share of 1,000, each of which has received and answered a message.
#[test]
fn a_thousand_connections_take_less_than_thirty_megabytes() {
    let mut config = server_config();
    (config.hellos_per_s, config.hello_burst) = (1_000_000, 10_000);
    let mut net = Net::new(config, 0);
    let before = resident_bytes();
    for i in 0..1000_u32 {
        let from = std::net::SocketAddr::from((i.wrapping_mul(0x9e37_79b9).to_be_bytes(), 53));
        let attacker = Attacker::numbered(i);
        net.now += Duration::from_millis(1);
        net.deliver(Datagram { from, to: address(0), bytes: attacker.hello(1) });
        net.transmit();
        let parts = attacker.open_cookie(&net.log.last().unwrap().1.bytes);
        net.deliver(Datagram { from, to: address(0), bytes: attacker.initiate(2, &parts) });
        net.transmit();
        net.log.clear();
    }
    let ids = net.new_connections();
    assert_eq!(ids.len(), 1000);
    let taken = resident_bytes().saturating_sub(before);
    assert!(taken < 30_000_000, "{taken} bytes for 1,000 connections");
    println!("{} bytes per connection", taken / 1000);
}
