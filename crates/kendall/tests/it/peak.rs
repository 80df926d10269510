//! `kendall peak` against a server whose capacity is known.

use std::process::Output;

use crate::served::{Served, kendall};
use serde_json::Value;

fn peak(server: &Served) -> Output {
    kendall()
        .args(["peak", &format!("hold://{}", server.address), "--slo", "mean<50ms", "--duration", "500ms"])
        // Probes of half a second decide little near the limit, and a busy machine makes it less.
        .args(["--seed", "7", "--json", "--allow", "undecided"])
        .output()
        .unwrap()
}

/// Constant service in a millisecond: the mean response exceeds 50 ms at 99 % of what the server can do. What that is, its
/// closed populations say in the same run, so nothing here depends on how exactly this machine keeps a millisecond.
#[test]
fn the_highest_rate_is_just_below_what_the_server_can_do() {
    let server = Served::new(&["hold", "--workers", "1", "--service", "constant", "--mean", "1ms"]);
    // Another program may have had the generator's core, or the machine paused.
    let output = kendall_testbed::unless_disturbed(|| {
        let output = peak(&server);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let limited = words.contains("the generator is the limit") || found["unfinished"].is_object();
        // Where each probe had too many late requests to decide, no rate was found.
        let decided = !output.status.success() || found["found"]["rate_per_s"].is_object();
        if limited || !decided { Err(words) } else { Ok(output) }
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let peak: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    let most_per_s =
        peak["light"]["throughput_per_s"].as_array().unwrap().iter().map(|point| number(&point[1]));
    let most_per_s = most_per_s.fold(0.0, f64::max);
    let found_per_s = number(&peak["found"]["rate_per_s"]["value"]);
    assert!((0.7..1.15).contains(&(found_per_s / most_per_s)), "{found_per_s} of {most_per_s}");

    // What it found is between rates that passed and rates that did not.
    let probes = peak["found"]["probes"].as_array().unwrap();
    let rates = |outcome: &str| -> Vec<f64> {
        let such = probes.iter().filter(|probe| probe["outcome"] == outcome);
        such.map(|probe| number(&probe["ask"]["rate_per_s"])).collect()
    };
    let passed = rates("pass").into_iter().fold(f64::INFINITY, f64::min);
    let failed = rates("fail").into_iter().fold(0.0, f64::max);
    assert!(
        passed < failed && passed <= found_per_s && found_per_s <= failed,
        "{passed} {found_per_s} {failed}"
    );
    // A failed probe missed the objective because of the server, not because of the generator's lag.
    for probe in probes.iter().filter(|probe| probe["outcome"] == "fail") {
        let seen = &probe["sighting"];
        let beyond = seen["value_s"]["value"].as_f64().is_none_or(|value_s| value_s > 0.05);
        let overloaded = number(&seen["achieved_share"]) < 0.97 || seen["grows"] == true;
        assert!(beyond || overloaded, "{seen}");
    }
}

/// The light load of this server takes some five seconds, so a probe or two fit into eight.
#[test]
fn a_search_ends_within_its_budget_and_says_so() {
    let server = Served::new(&["hold", "--workers", "1", "--service", "constant", "--mean", "5ms"]);
    kendall_testbed::unless_disturbed(|| {
        let output = kendall()
            .args(["peak", &format!("hold://{}", server.address), "--slo", "mean<80ms", "--duration", "1s"])
            .args(["--budget", "12s", "--seed", "7"])
            .output()
            .unwrap();
        let (shown, notes) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let fits = output.status.code() == Some(3) && shown.contains("The budget is spent");
        if fits && notes.contains("A search takes about") { Ok(()) } else { Err(format!("{shown}{notes}")) }
    });
}
