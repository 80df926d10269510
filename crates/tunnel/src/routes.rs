//! Routes of this machine, by `ip` (iproute2). A route through a TUN device vanishes with it.

use std::net::IpAddr;
use std::process::{Command, Output};

use ipnet::IpNet;

use crate::error::TunnelError;

/// The route to the server beside the tunnel, where a route through the tunnel would cover it. It is removed when this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Detour(Vec<String>);

impl Drop for Detour {
    fn drop(&mut self) {
        let mut words: Vec<&str> = self.0.iter().map(String::as_str).collect();
        words[1] = "del";
        if let Err(error) = ip(&words) {
            tracing::warn!("the route to the server stays: {error}");
        }
    }
}

/// Sends a network through a device.
pub(crate) fn add(network: &IpNet, device: &str) -> Result<(), TunnelError> {
    ip(&["route", "replace", &network.to_string(), "dev", device]).map(drop)
}

/// Keeps the way to the server where it is now, if a network that goes through the tunnel contains it.
pub(crate) fn detour(server: IpAddr, networks: &[IpNet]) -> Result<Option<Detour>, TunnelError> {
    if !networks.iter().any(|network| network.contains(&server)) {
        return Ok(None);
    }
    let host = IpNet::from(server).to_string();
    let answer = ip(&["route", "get", &server.to_string()])?;
    let words: Vec<&str> = answer.split_whitespace().collect();
    let after = |word| Some(words.get(words.iter().position(|&it| it == word)? + 1)?.to_string());
    let mut command: Vec<String> = ["route", "replace", &host].map(str::to_owned).into();
    for word in ["via", "dev"] {
        if let Some(value) = after(word) {
            command.extend([word.to_owned(), value]);
        }
    }
    ip(&command.iter().map(String::as_str).collect::<Vec<_>>())?;
    Ok(Some(Detour(command)))
}

/// Fails where a route of this machine, the default ones aside, covers or is part of a network.
pub(crate) fn check_free(network: &IpNet) -> Result<(), TunnelError> {
    let network_text = network.trunc().to_string();
    for selector in ["match", "root"] {
        let routes = ip(&["route", "show", "to", selector, &network_text])?;
        if let Some(route) =
            routes.lines().find(|line| !line.trim().is_empty() && !line.starts_with("default"))
        {
            return Err(TunnelError::Overlap { network: network_text, route: route.trim().to_owned() });
        }
    }
    Ok(())
}

/// Runs `ip`, and gives what it printed.
fn ip(words: &[&str]) -> Result<String, TunnelError> {
    // Where an address does not say it, `ip` lists IPv4.
    let is_v6 = words.iter().any(|word| word.contains(':'));
    let mut command = Command::new("ip");
    command.args(is_v6.then_some("-6")).args(words);
    let failed = |reason: String| TunnelError::Route { command: format!("ip {}", words.join(" ")), reason };
    let Output { status, stdout, stderr } =
        command.output().map_err(|error| failed(format!("{error}; is iproute2 installed?")))?;
    if !status.success() {
        return Err(failed(String::from_utf8_lossy(&stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}
