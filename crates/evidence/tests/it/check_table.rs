//! Checks of tables: the contradictions of published ones are found, and a table without any passes.

use kendall_evidence::check::{AssumptionVerdict, Check, Finding, check_table};
use kendall_evidence::table::Table;
use kendall_station::Servers;
use proptest::prelude::*;

fn findings(text: &str) -> Vec<Finding> {
    check_table(&Table::read(text).unwrap(), None)
}

/// What is broken, and where.
fn broken(text: &str) -> Vec<(Check, String)> {
    let broken = |finding: &Finding| finding.verdict == AssumptionVerdict::Broken;
    findings(text).into_iter().filter(broken).map(|finding| (finding.check, finding.place)).collect()
}

/// The sentence of a check at a place.
#[track_caller]
fn says(text: &str, check: Check, place: &str) -> String {
    let found = findings(text);
    let at = |finding: &&Finding| finding.check == check && finding.place.starts_with(place);
    found.iter().find(at).unwrap_or_else(|| panic!("{check} at {place} in {found:#?}")).sentence.clone()
}

/// File recovery at 20 requests per second on six cores, as published: printed service time, rate, utilisation and M/M/6,
/// and what was measured.
const FILE_RECOVERY: &str =
    "length,rate_per_s,servers,service_mean_s,service_rate_per_s,utilisation,response_model_s,response_mean_s
3,20,6,0.238,42.052,0.079,0.048,0.1145
4,20,6,44.82,22.311,0.149,1.618,0.1553
5,20,6,613.43,1.630,2.045,,
6,20,6,15506.06,0.064,51.687,,
";

#[test]
fn every_contradiction_of_the_file_recovery_table_is_found() {
    let place = |line: u64, length: u64| format!("line {line} (length {length})");
    let expected = [
        // µ is 1/E[S] in no one unit.
        (Check::Units, place(2, 3)),
        (Check::Units, place(3, 4)),
        (Check::Units, place(4, 5)),
        (Check::Units, place(5, 6)),
        // No steady state.
        (Check::Stability, place(4, 5)),
        (Check::Stability, place(5, 6)),
        // M/M/6 is twice and 36 times too long.
        (Check::Formula, place(2, 3)),
        (Check::Formula, place(3, 4)),
        // The link is in no model.
        (Check::Delay, format!("{} and {}", place(2, 3), place(3, 4))),
    ];
    assert_eq!(broken(FILE_RECOVERY), expected);
    let sentence = |check, line| says(FILE_RECOVERY, check, line);
    assert_eq!(
        sentence(Check::Units, "line 2"),
        "A service rate of 42.052/s means a service time of 23.8 ms, but 0.23800 s is given: the given time is 10 times as \
         long, which no mix-up of units explains."
    );
    for line in ["line 3", "line 4", "line 5"] {
        assert!(sentence(Check::Units, line).ends_with("looks like milliseconds."));
    }
    assert_eq!(
        sentence(Check::Formula, "line 2"),
        "M/M/6 has a mean response of 23.8 ms (by Erlang's recursion 23.780 ms, by the sum over states 23.780 ms), but 48.0 \
         ms is given. The waiting time was multiplied by 6! where the formula divides by it."
    );
    assert!(
        sentence(Check::Formula, "line 3")
            .contains("44.824 ms, by the sum over states 44.824 ms), but 1.62 s is given")
    );
    assert!(
        sentence(Check::Formula, "line 3").ends_with("multiplied by 6! where the formula divides by it.")
    );
    assert!(sentence(Check::Stability, "line 4").ends_with("Capacity is 9.78/s."));
    assert!(sentence(Check::Delay, "line 2").contains("90.7 ms to 110 ms longer"));
    // The utilisations are right.
    assert!(
        findings(FILE_RECOVERY)
            .iter()
            .any(|f| f.check == Check::Utilisation && f.verdict == AssumptionVerdict::Holds)
    );
}

/// Text search with one server, at 10 to 12 requests per 10 s.
const TEXT_SEARCH: &str = include_str!("../../../../examples/text-search.csv");

#[test]
fn the_backlog_and_the_products_of_the_text_search_table_are_found() {
    let found = broken(TEXT_SEARCH);
    let of = |check: Check| found.iter().filter(|(what, _)| *what == check).count();
    // 70 requests meet a room of 51; 40 do not.
    assert_eq!(of(Check::Room), 6);
    let room = says(TEXT_SEARCH, Check::Room, "line 17 ");
    assert!(room.contains("capacity is 51 (1 in service and 50 in the backlog)"), "{room}");
    assert!(room.contains("M/M/1/51 loses 0.0042 %") && room.contains("19 are rejected"), "{room}");
    // 40 × the response time is not a total time.
    assert_eq!(of(Check::TotalTime), 6, "{found:?}");
    assert!(
        says(TEXT_SEARCH, Check::TotalTime, "line 6 ").contains("40 requests at 1.00/s take about 40.0 s")
    );
    // Truncated, and so off by more than rounding: 2.2 for 2.281.
    assert!(found.contains(&(Check::Formula, "line 7 (server fast)".into())), "{found:?}");
    // Constant service waits half as long.
    assert_eq!(of(Check::ServiceLaw), 6);
    assert!(
        says(TEXT_SEARCH, Check::ServiceLaw, "line 6 ")
            .contains("overestimates waits by 98 %: 1.21 s instead of about 610 ms")
    );
}

const CHAT: &str = include_str!("../../../../examples/chat-mysql.csv");

#[test]
fn the_two_contradictions_of_the_chat_table_are_found() {
    let found = broken(CHAT);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|(check, _)| *check == Check::InteractiveLaw));
    let sentences: Vec<String> = findings(CHAT).into_iter().map(|finding| finding.sentence).collect();
    assert!(
        sentences[0].starts_with("Throughput × (response + think time) is 37.6, but there are 35 users"),
        "{sentences:?}"
    );
    assert!(sentences[1].contains("one measurement of 45 users under two labels"), "{sentences:?}");
    let redis = include_str!("../../../../examples/chat-redis.csv");
    assert_eq!(broken(redis), []);
    assert_eq!(findings(redis)[0].verdict, AssumptionVerdict::Holds);
}

#[test]
fn each_slip_of_a_computed_response_is_named() {
    // λ = 8/s, E[S] = 0.5 s, m = 6: ρ = 2/3.
    let named = |printed_s: f64| {
        let text = format!("rate_per_s,servers,service_mean_s,response_model_s\n8,6,0.5,{printed_s}\n");
        says(&text, Check::Formula, "line 2")
    };
    let (load, m) = (4.0f64, 6.0f64);
    let p_wait = kendall_theory::erlang_c(6, load);
    let waiting_s = p_wait * 0.5 / (m - load);
    assert!(named(0.5 + waiting_s).ends_with("is given.") && !named(0.5 + waiting_s).contains("but"));
    let cases = [
        (0.5 + waiting_s * 720.0 * 720.0, "multiplied by 6!"),
        (0.5 + waiting_s * 720.0, "lacks a division by 6!"),
        (waiting_s, "without the service"),
        (0.5 + 8.0 * waiting_s, "mean number waiting"),
        (1.0 / (12.0 - 8.0), "one server 6 times as fast"),
        (0.5 / (1.0 - 2.0 / 3.0), "6 servers with a queue each"),
        (0.5 + 0.5 * p_wait, "number of free servers"),
        (1e3 * (0.5 + waiting_s), "1000 times too large"),
    ];
    for (printed_s, words) in cases {
        assert!(named(printed_s).contains(words), "{printed_s}: {}", named(printed_s));
    }
}

#[test]
fn a_table_that_is_right_passes_in_every_check() {
    // M/M/1 of λ = 1/s and E[S] = 0.5 s, in milliseconds.
    let text = "rate_per_s,throughput_per_s,service_mean_ms,service_rate_per_s,service_scv,utilisation,response_mean_ms,\
                response_model_ms,waiting_mean_ms,requests,servers,duration_s,capacity
        1,1,500,2,1,0.5,1000,1000,500,10000,1,10000,60\n"
        .replace("        ", "");
    let found = findings(&text);
    assert!(found.iter().all(|finding| finding.verdict == AssumptionVerdict::Holds), "{found:#?}");
    assert_eq!(found.len(), 10, "{found:#?}");
    // A wider interval, and a load near 1, are inconclusive.
    let near = "rate_per_s,service_mean_s,servers,requests,response_mean_s\n1.9,0.5,1,100,10\n";
    let verdicts: Vec<AssumptionVerdict> = findings(near).iter().map(|finding| finding.verdict).collect();
    assert_eq!(verdicts, [AssumptionVerdict::CannotTell, AssumptionVerdict::CannotTell]);
    // 100 requests at ρ = 0.5 know the wait to ±106 %, half of the response.
    let half = "rate_per_s,service_mean_s,servers,requests,response_mean_s\n1,0.5,1,100,1\n";
    let precision = findings(half).into_iter().find(|finding| finding.check == Check::Precision).unwrap();
    assert!((precision.effect.unwrap().value - 0.537).abs() < 0.002);
}

/// M/M/1/5 with a service of 1 s: p_n is in proportion to ρⁿ.
#[test]
fn a_correct_row_of_limited_capacity_passes_in_every_check() {
    for rho in [0.95_f64, 1.2, 3.0] {
        let weights: Vec<f64> = (0..=5).map(|n| rho.powi(n)).collect();
        let all: f64 = weights.iter().sum();
        let lost = weights[5] / all;
        let present: f64 = (0..).zip(&weights).map(|(n, weight)| f64::from(n) * weight / all).sum();
        let (busy, response_s) = (1.0 - weights[0] / all, present / (rho * (1.0 - lost)));
        let text = |busy: f64| {
            format!(
                "rate_per_s,service_mean_s,servers,capacity,lost,utilisation,throughput_per_s,response_mean_s\n\
                 {rho},1,1,5,{lost},{busy},{},{response_s}\n",
                rho * (1.0 - lost)
            )
        };
        let found = findings(&text(busy));
        assert!(found.iter().all(|finding| finding.verdict == AssumptionVerdict::Holds), "{found:#?}");
        assert!(found.iter().any(|finding| finding.check == Check::Utilisation), "{found:#?}");
        assert!(broken(&text(0.5 * busy)).iter().any(|(check, _)| *check == Check::Utilisation));
    }
}

#[test]
fn servers_may_be_told_beside_the_table() {
    let table = Table::read("rate_per_s,service_mean_s\n30,0.1\n").unwrap();
    assert!(check_table(&table, None).is_empty());
    let with = |servers| check_table(&table, Servers::new(servers))[0].verdict;
    assert_eq!((with(2), with(4)), (AssumptionVerdict::Broken, AssumptionVerdict::Holds));
}

proptest! {
    #[test]
    fn any_numbers_are_borne(
        values in prop::collection::vec(prop_oneof![1e-9..1e9f64, 0.01..10.0f64, Just(1.0)], 15),
        servers in 1u32..100_000, users in 0u32..3, room in 1u64..3000,
    ) {
        let mut columns = vec![
            "rate_per_s", "response_mean_s", "response_model_s", "waiting_mean_s", "throughput_per_s", "utilisation",
            "service_mean_s", "service_rate_per_s", "service_scv", "delay_s", "think_s", "duration_s", "response_half_width_s",
        ];
        let mut cells: Vec<String> = values.iter().take(columns.len()).map(ToString::to_string).collect();
        columns.extend(["servers", "requests", "backlog"]);
        cells.extend([servers.to_string(), room.to_string(), room.to_string()]);
        if users > 0 {
            columns.push("users");
            cells.push(users.to_string());
        }
        for finding in findings(&format!("{}\n{}\n", columns.join(","), cells.join(","))) {
            prop_assert!(!finding.sentence.contains("NaN") && !finding.sentence.contains("inf"), "{:?}", finding);
            let numbers = finding.statistic.iter().chain(&finding.effect);
            prop_assert!(numbers.into_iter().all(|number| number.value.is_finite()), "{:?}", finding);
        }
    }
}
