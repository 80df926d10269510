//! The kernel's own emulator, where there is one: netem (tc-netem(8)) on the egress of each of our two devices, and packets
//! redirected from one to the other. It has fewer features than the model: no queue management, no rate that changes, no jitter
//! that keeps packets in order. It counts its queue in packets, and all its drops together. It rejects settings that it cannot
//! emulate exactly.

use std::io;
use std::process::Command;

use kendall_linkmodel::{Aqm, Loss, Rate, Settings};
use rustix::thread::{CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities};
use serde_json::Value;

use crate::error::LinkError;
use crate::outcome::HopCounts;

/// The largest packet; netem counts its queue in packets of this size.
const FULL_BYTES: u64 = 1514;
/// The most packets in its queue.
const MOST_PACKETS: u64 = 1_000_000;

/// Redirects the ingress of each of two devices to the egress of the other, and tests whether the kernel has netem.
pub(crate) fn connect(one: &str, other: &str) -> Result<(), LinkError> {
    keep_right();
    for (from, to) in [(one, other), (other, one)] {
        close(from)?;
        tc(&["qdisc", "add", "dev", from, "clsact"])?;
        let all =
            ["filter", "add", "dev", from, "ingress", "protocol", "all", "u32", "match", "u32", "0", "0"];
        tc(&[&all[..], &["action", "mirred", "egress", "redirect", "dev", to]].concat())?;
    }
    Ok(())
}

/// Sets the emulation on the egress of a device.
pub(crate) fn open(device: &str, asked: &[Settings]) -> Result<(), LinkError> {
    let [asked] = asked else {
        return Err(refused("several links in a row"));
    };
    let arguments = arguments(asked)?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // A new one, whose counters are 0.
    tc(&["qdisc", "del", "dev", device, "root"])?;
    tc(&[&["qdisc", "add", "dev", device, "root", "netem"], &arguments[..]].concat())?;
    Ok(())
}

/// Stops the traffic, and returns the counts.
pub(crate) fn close_counted(device: &str, asked: &[Settings]) -> Result<HopCounts, LinkError> {
    let said = tc(&["-s", "-j", "qdisc", "show", "dev", device, "root"])?;
    close(device)?;
    let lossy = asked.iter().any(|hop| hop.loss != Loss::None);
    counts(&said, lossy)
        .ok_or_else(|| LinkError::Refused(format!("tc printed no packet counts in the known form: {said}")))
}

fn close(device: &str) -> Result<(), LinkError> {
    tc(&["qdisc", "replace", "dev", device, "root", "netem", "loss", "100%"]).map(drop)
}

/// The arguments of `netem` for a link with these settings.
fn arguments(asked: &Settings) -> Result<Vec<String>, LinkError> {
    let unable = [
        (asked.aqm != Aqm::DropTail, "a managed queue"),
        (asked.jitter.spread_ns != 0, "jitter that keeps packets in order"),
        (asked.reorder.is_some(), "reordering by a distance"),
        (matches!(asked.rate, Rate::Trace(_)), "a rate that changes"),
    ];
    if let Some((_, what)) = unable.iter().find(|(asked, _)| *asked) {
        return Err(refused(what));
    }
    let mut words = vec!["delay".to_owned(), format!("{}ns", asked.delay_ns)];
    let percent = |share: f64| format!("{}%", share * 100.0);
    match asked.loss {
        Loss::None => {}
        Loss::Random { share } => words.extend(["loss".into(), "random".into(), percent(share)]),
        Loss::GilbertElliott { worsens, recovers, lost_in_bad, lost_in_good } => {
            words.extend(["loss".into(), "gemodel".into()]);
            words.extend([worsens, recovers, lost_in_bad, lost_in_good].map(percent));
        }
    }
    for (name, share) in [("corrupt", asked.corruption), ("duplicate", asked.duplication)] {
        if share > 0.0 {
            words.extend([name.into(), percent(share)]);
        }
    }
    let mut packets = asked.wire_bytes / FULL_BYTES;
    if let Rate::Constant { bits_per_s } = asked.rate {
        words.extend(["rate".into(), format!("{bits_per_s}bit")]);
        if asked.overhead_bytes > 0 {
            words.push(asked.overhead_bytes.to_string());
        }
        // netem counts packets in the queue and packets on the wire together.
        let on_wire_bytes = u128::from(bits_per_s) * asked.delay_ns as u128 / 8_000_000_000;
        packets = (asked.queue_bytes + on_wire_bytes as u64).div_ceil(FULL_BYTES) + 1;
    }
    words.extend(["limit".into(), packets.min(MOST_PACKETS).to_string()]);
    Ok(words)
}

fn refused(what: &str) -> LinkError {
    LinkError::Refused(format!("netem has no {what}; use another back end"))
}

/// Reads the counts from the output of `tc -s -j qdisc show`.
fn counts(said: &str, lossy: bool) -> Option<HopCounts> {
    let said: Value = serde_json::from_str(said).ok()?;
    let netem = said.as_array()?.iter().find(|qdisc| qdisc["kind"] == "netem")?;
    let number = |name: &str| netem[name].as_u64();
    let (packets, bytes, drops, inside) =
        (number("packets")?, number("bytes")?, number("drops")?, number("qlen").unwrap_or(0));
    // netem does not report the reason of a drop. Where it is set to lose packets, most drops are such losses.
    let (dropped_lost, dropped_overflow) = if lossy { (drops, 0) } else { (0, drops) };
    Some(HopCounts {
        offered: packets + drops + inside,
        delivered: packets,
        delivered_bytes: bytes,
        dropped_lost,
        dropped_overflow,
        inside,
        ..HopCounts::default()
    })
}

/// In a user namespace this process may administer its network, but a program that it starts may not, unless it passes that right
/// on (capabilities(7), ambient set).
fn keep_right() {
    // Where this is denied, tc fails as well and reports it.
    if let Ok(mut sets) = capabilities(None) {
        sets.inheritable |= CapabilitySet::NET_ADMIN;
        let _ = set_capabilities(None, sets)
            .and_then(|()| configure_capability_in_ambient_set(CapabilitySet::NET_ADMIN, true));
    }
}

/// Runs `tc`, and returns its output.
fn tc(arguments: &[&str]) -> Result<String, LinkError> {
    let step = || format!("run tc {} (package iproute2)", arguments.join(" "));
    let output = Command::new("tc").args(arguments).output().map_err(LinkError::step(step()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said =
        said.lines().map(|line| line.trim_start_matches("Error: ").trim()).collect::<Vec<_>>().join(" ");
    let lacking = said.contains("qdisc kind is unknown");
    let why = if lacking { "this kernel has no netem".to_owned() } else { said };
    Err(LinkError::step(step())(io::Error::other(why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        arguments(&text.parse().unwrap()).unwrap().join(" ")
    }

    #[test]
    fn what_netem_can_do_is_asked_of_it_in_its_words() {
        assert_eq!(words("delay=20ms wire=1514k"), "delay 20000000ns limit 1000");
        // 10 Mbit/s × 20 ms are 25 000 bytes on the wire; 100 000 may wait.
        assert_eq!(
            words("delay=20ms rate=10mbit queue=100k overhead=24"),
            "delay 20000000ns rate 10000000bit 24 limit 84"
        );
        assert_eq!(
            words("loss=gilbert-elliott 1% 20% 100% 0% corrupt=0.5% wire=1514k"),
            "delay 0ns loss gemodel 1% 20% 100% 0% corrupt 0.5% limit 1000"
        );
    }

    #[test]
    fn what_it_cannot_do_is_refused_rather_than_done_otherwise() {
        for text in ["aqm=codel", "delay=5ms jitter=1ms", "reorder=1%", "rate=1mbit 1s, 2mbit 1s"] {
            let error = arguments(&text.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains("netem has no"), "{text}: {error}");
        }
    }

    #[test]
    fn its_counters_are_read_from_what_tc_prints() {
        // The form of iproute2's tc/tc_qdisc.c and tc_util.c (print_tcstats2_attr).
        let said =
            r#"[{"kind":"netem","handle":"8001:","root":true,"bytes":980,"packets":10,"drops":2,"qlen":1}]"#;
        let counts = counts(said, true).unwrap();
        assert_eq!((counts.offered, counts.delivered, counts.dropped_lost, counts.inside), (13, 10, 2, 1));
        assert_eq!(super::counts("[]", true), None);
        assert_eq!(super::counts("", true), None);
    }
}
