//! The properties of this machine that matter to a measurement: cores, SIMD, clock, privileges, namespaces, limits. `kendall
//! doctor` lists them, and a missing one is a reason to doubt a measurement.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::processor::{kernel_chooses_idling, longer_after_sleep};

/// One property of a machine.
#[derive(Clone, Debug, Serialize)]
pub struct Offer {
    /// The property's name.
    pub name: &'static str,
    /// The property's value.
    pub found: String,
    /// The problem and its remedy; `None` if all is well.
    pub advice: Option<String>,
}

/// Inspects this machine. Takes about two seconds, in which it tests the timer and lets a processor sleep and work in turns.
pub fn inspect() -> Vec<Offer> {
    vec![
        cores(),
        simd(),
        memory(),
        clock(),
        timer(),
        sleep(),
        open_files(),
        ports(),
        privileges(),
        namespaces(),
        load(),
    ]
}

fn offer(name: &'static str, found: impl Into<String>, advice: Option<&str>) -> Offer {
    Offer { name, found: found.into(), advice: advice.map(Into::into) }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn cores() -> Offer {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let model = read("/proc/cpuinfo").and_then(|text| field(&text, "model name"));
    let found = format!("{count} × {}", model.unwrap_or_else(|| std::env::consts::ARCH.into()));
    let advice =
        "server and generator share the only core, so each slows the other; measure with two or more";
    offer("cores", found, (count < 2).then_some(advice))
}

fn simd() -> Offer {
    offer("SIMD", simd_features().join(", "), None)
}

#[cfg(target_arch = "x86_64")]
fn simd_features() -> Vec<&'static str> {
    let known = [
        ("sse2", is_x86_feature_detected!("sse2")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("sha", is_x86_feature_detected!("sha")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512bw", is_x86_feature_detected!("avx512bw")),
        ("avx512vl", is_x86_feature_detected!("avx512vl")),
    ];
    known.into_iter().filter(|feature| feature.1).map(|feature| feature.0).collect()
}

#[cfg(target_arch = "aarch64")]
fn simd_features() -> Vec<&'static str> {
    let known = [
        ("neon", std::arch::is_aarch64_feature_detected!("neon")),
        ("sha2", std::arch::is_aarch64_feature_detected!("sha2")),
    ];
    known.into_iter().filter(|feature| feature.1).map(|feature| feature.0).collect()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn simd_features() -> Vec<&'static str> {
    vec!["none known for this architecture"]
}

fn memory() -> Offer {
    let text = read("/proc/meminfo").unwrap_or_default();
    let gib = |name| {
        let kib: f64 = field(&text, name)?.split_whitespace().next()?.parse().ok()?;
        Some(kib / 1024.0 / 1024.0)
    };
    match (gib("MemTotal"), gib("MemAvailable")) {
        (Some(total), Some(free)) => offer("memory", format!("{total:.1} GiB, {free:.1} GiB free"), None),
        _ => offer("memory", "unknown", None),
    }
}

fn clock() -> Offer {
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let start = Instant::now();
    let reads = 10_000;
    for _ in 0..reads {
        std::hint::black_box(kendall_record::clock::now_ns());
    }
    let cost_ns = start.elapsed().as_nanos() / reads;
    let found = format!("{}, {cost_ns} ns a reading", source.as_deref().unwrap_or("unknown source"));
    let advice = "each stamp costs a system call; choose the tsc or kvm-clock as the kernel's clock source";
    offer("clock", found, (cost_ns > 500).then_some(advice))
}

/// How late a sleeping thread wakes: the least send lag.
fn timer() -> Offer {
    let mut late_us: Vec<u128> = (0..50)
        .map(|_| {
            let due = Instant::now() + Duration::from_millis(1);
            std::thread::sleep(Duration::from_millis(1));
            due.elapsed().as_micros()
        })
        .collect();
    late_us.sort_unstable();
    let (p50, p99) = (late_us[late_us.len() / 2], late_us[late_us.len() - 1]);
    let advice = "sends will be late by this much; close other programs, or use a machine that is not shared";
    offer(
        "timer",
        format!("wakes {p50} µs late (median), {p99} µs (worst of 50)"),
        (p99 > 2_000).then_some(advice),
    )
}

/// How much slower a processor is that slept.
fn sleep() -> Offer {
    let longer = longer_after_sleep();
    let found = match longer {
        Some(longer) => {
            format!("the same work takes {:.0} % longer on a processor that slept", longer * 100.0)
        }
        None => "a processor that slept is as fast as a busy one".into(),
    };
    let advice = match kernel_chooses_idling() {
        true => {
            "a server at low load takes longer for each request; keep processors awake with --keep-awake, as root, or boot with idle=poll"
        }
        false => "a server at low load takes longer for each request; boot with idle=poll",
    };
    offer("sleep", found, longer.map(|_| advice))
}

fn open_files() -> Offer {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let words = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    let few = limit.maximum.is_some_and(|most| most < 16_384);
    let found = format!("{} now, {} at most", words(limit.current), words(limit.maximum));
    let advice = "thousands of connections will not fit; raise it with `ulimit -Hn 65536` or in limits.conf";
    offer("open files", found, few.then_some(advice))
}

fn ports() -> Offer {
    let range = read("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let ends: Vec<u32> = range.split_whitespace().filter_map(|end| end.parse().ok()).collect();
    let backlog = read("/proc/sys/net/core/somaxconn").unwrap_or_else(|| "unknown".into());
    let [low, high] = ends[..] else { return offer("ports", "unknown", None) };
    offer(
        "ports",
        format!("{} for clients; accept backlog up to {backlog}", high.saturating_sub(low) + 1),
        None,
    )
}

fn privileges() -> Offer {
    let root = rustix::process::geteuid().is_root();
    let status = read("/proc/self/status").unwrap_or_default();
    let capabilities =
        field(&status, "CapEff").and_then(|hex| u64::from_str_radix(&hex, 16).ok()).unwrap_or_default();
    // Bit numbers of linux/capability.h.
    let known = [
        (12, "CAP_NET_ADMIN"),
        (13, "CAP_NET_RAW"),
        (19, "CAP_SYS_PTRACE"),
        (23, "CAP_SYS_NICE"),
        (38, "CAP_PERFMON"),
    ];
    let held: Vec<&str> =
        known.iter().filter(|(bit, _)| capabilities >> bit & 1 == 1).map(|(_, name)| *name).collect();
    let found = match (root, held.is_empty()) {
        (true, _) => format!("root, with {}", held.join(", ")),
        (false, false) => format!("user, with {}", held.join(", ")),
        (false, true) => "user, without capabilities".into(),
    };
    offer("privileges", found, None)
}

fn namespaces() -> Offer {
    let can = |flags: &[&str]| {
        let mut command = Command::new("unshare");
        let quiet =
            command.args(flags).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    if can(&["--net"]) {
        offer("namespaces", "network namespaces can be made", None)
    } else if can(&["--user", "--map-root-user", "--net"]) {
        offer("namespaces", "network namespaces can be made within a user namespace", None)
    } else {
        offer(
            "namespaces",
            "no network namespaces can be made",
            Some("links can be emulated by a relay only"),
        )
    }
}

fn load() -> Offer {
    let text = read("/proc/loadavg").unwrap_or_default();
    let recent: f64 = text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
    let advice = "other programs are running and will disturb a measurement; wait, or stop them";
    offer("other load", format!("{recent} runnable in the last minute"), (recent > 0.5).then_some(advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_machine_is_named_once() {
        let offers = inspect();
        let mut names: Vec<_> = offers.iter().map(|offer| offer.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), offers.len());
        assert!(offers.iter().all(|offer| !offer.found.is_empty()));
    }
}
