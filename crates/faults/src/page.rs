//! The page of results: faults × systems.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use kendall_archive::{Machine, utc_now};
use serde_json::Value;

use crate::case::{LEVEL_LIMIT, MORE_DESCRIPTORS, MORE_MEMORY_KB, OTHERS_LIMIT, RECOVERY_LIMIT, RUN_LIMIT};
use crate::faults::{FAULTS, Fault};
use crate::subjects::{SUBJECTS, Subject};

/// The page of the last result of each case of a seed.
pub fn page(results: &[Value], seed: u64) -> String {
    let mut cases = BTreeMap::new();
    let results: Vec<&Value> =
        results.iter().filter(|result| result["seed"].as_u64() == Some(seed)).collect();
    for result in &results {
        cases.insert(result["case"].as_u64(), *result);
    }
    let repeated = results.iter().filter(|result| {
        let last = cases.get(&result["case"].as_u64());
        result["outcome"] == "failed" && last.is_some_and(|last| last["outcome"] == "passed")
    });
    let repeated: BTreeSet<_> = repeated.map(|result| result["case"].as_u64()).collect();
    let cases: Vec<&Value> = cases.into_values().collect();
    let count = |outcome: &str| cases.iter().filter(|case| case["outcome"] == outcome).count();
    let (passed, failed) = (count("passed"), count("failed"));
    let machine = Machine::here();
    let mut page = format!(
        "# Faults\n\nWritten by `make faults` on {}, seed {seed}.\n\n{} × {}, kernel {}, kendall {}.\n\n\
         The campaign injected {} faults into systems under load. {passed} cases passed, {failed} failed. Checked answers that were right: {}. \
         {} of the cases failed at first, and passed when the campaign was continued.\n",
        &utc_now()[..10],
        machine.cores,
        machine.cpu,
        machine.kernel,
        env!("CARGO_PKG_VERSION"),
        passed + failed,
        cases.iter().filter_map(|case| case["checked"].as_u64()).sum::<u64>(),
        repeated.len(),
    );
    page.push_str(&introduction());
    table(&mut page, &cases);
    left_out(&mut page, &cases);
    page
}

fn introduction() -> String {
    format!(
        "\nEach case starts a system in its own network, with its own disk and processes, loads it, injects a fault at a random instant, and \
         removes the fault again. A case passes if all of these hold:\n\n\
         - No acknowledged work is lost, not even after a kill: a registered account can log in, a copied file is complete, and each request \
         of a run has its outcome.\n\
         - No answer is wrong: every client checks its answers.\n\
         - While the fault lasts, other clients get right answers within {others} s, unless the fault is one of the server, its disk, its \
         peer or its link.\n\
         - A new client gets a right answer at most {recovery} s after the fault (a run of the laboratory ends within {run} s).\n\
         - At most {level} s later, each process has at most {descriptors} descriptors and {memory} MiB of memory more than before, and no \
         process has panicked.\n\n\
         `make faults SEED=7` repeats a campaign, and continues one that was interrupted or had failures. A failing case prints the command \
         that repeats it. Each cell has the cases that passed / all cases, then the median and the longest time to recover, in seconds.\n",
        others = OTHERS_LIMIT.as_secs(),
        recovery = RECOVERY_LIMIT.as_secs(),
        run = RUN_LIMIT.as_secs(),
        level = LEVEL_LIMIT.as_secs(),
        descriptors = MORE_DESCRIPTORS,
        memory = MORE_MEMORY_KB >> 10,
    )
}

/// One table for the systems in groups, so that its rows fit a page.
fn table(page: &mut String, cases: &[&Value]) {
    let mut reasons: Vec<&str> = Vec::new();
    for systems in SUBJECTS.chunks(6) {
        let heads: Vec<&str> = systems.iter().map(|subject| subject.system).collect();
        let lines = " --- |".repeat(systems.len());
        let _ = write!(page, "\n| fault | {} |\n| --- |{lines}\n", heads.join(" | "));
        for fault in FAULTS {
            let cells: Vec<String> =
                systems.iter().map(|subject| cell(fault, subject, cases, &mut reasons)).collect();
            let _ = writeln!(page, "| {} | {} |", fault.what, cells.join(" | "));
        }
    }
    page.push_str(
        "\nA dash with a number means that the fault does not apply to the system, for this reason:\n\n",
    );
    for (reason, number) in reasons.iter().zip(1..) {
        let _ = writeln!(page, "{number}. {reason}.");
    }
}

fn cell(fault: &Fault, subject: &Subject, cases: &[&Value], reasons: &mut Vec<&str>) -> String {
    if let Some(reason) = (fault.not_for)(subject) {
        let known = reasons.iter().position(|known| *known == reason);
        let number = known.unwrap_or_else(|| {
            reasons.push(reason);
            reasons.len() - 1
        });
        return format!("– {}", number + 1);
    }
    let of_cell = |case: &&&Value| case["fault"] == fault.name && case["system"] == subject.name;
    let tried: Vec<&&Value> =
        cases.iter().filter(of_cell).filter(|case| case["outcome"] != "left out").collect();
    let mut recovery_ms: Vec<u64> = tried.iter().filter_map(|case| case["recovery_ms"].as_u64()).collect();
    recovery_ms.sort_unstable();
    let Some(longest) = recovery_ms.last() else { return format!("0/{}", tried.len()) };
    let seconds = |ms: u64| format!("{:.1}", ms as f64 / 1e3);
    let median = seconds(recovery_ms[(recovery_ms.len() - 1) / 2]);
    format!("{}/{}, {median}, {}", recovery_ms.len(), tried.len(), seconds(*longest))
}

fn left_out(page: &mut String, cases: &[&Value]) {
    let why = |case: &&Value| {
        (case["outcome"] == "left out").then(|| case["why"].as_str().unwrap_or("").trim().to_owned())
    };
    let reasons: BTreeSet<String> = cases.iter().filter_map(why).collect();
    for reason in reasons {
        let _ = writeln!(page, "\nCases were left out on this machine: {reason}.");
    }
    page.push_str(
        "\nThe campaign never sets the machine's own clock: a library shifts the server's view of it. A user without the rights of root can \
         inject all faults in user namespaces, with two exceptions: memory limits need a cgroup that the user may write, and PostgreSQL \
         refuses to run there.\n",
    );
}
