//! Tests how parameters become a load, and which faults they may have.

use super::*;

fn load(values: &[(&'static str, &str)]) -> Result<Load, (&'static str, String)> {
    let mut settings = Settings::defaults(LOAD);
    for (name, text) in values {
        let parameter = LOAD.iter().find(|parameter| parameter.name == *name).unwrap();
        settings.set(parameter.name, parameter.kind.read(text).unwrap());
    }
    Load::new(&settings, Path::new("."))
}

#[test]
fn a_share_waits_for_the_capacity() {
    let load = load(&[("rate", "50%"), ("duration", "3s")]).unwrap();
    assert_eq!(load.arrivals(Some(200.0)), Arrivals::poisson(100.0));
    assert_eq!(load.expected(Some(200.0)), Duration::from_secs(3));
}

#[test]
fn a_gap_is_a_rate_in_another_way() {
    let load = load(&[("arrivals", "constant"), ("gap", "600ms"), ("requests", "100")]).unwrap();
    let Arrivals::Open { gap } = load.arrivals(None) else { panic!("an open stream") };
    assert!((gap.mean_s() - 0.6).abs() < 1e-12, "{gap:?}");
    assert_eq!(load.expected(None).as_millis(), 60_000);
}

#[test]
fn the_first_limit_stops_a_trial() {
    let load = load(&[("rate", "10"), ("duration", "30s"), ("requests", "20")]).unwrap();
    assert_eq!(load.expected(None), Duration::from_secs(2));
}

#[test]
fn threads_are_as_many_as_have_connections_and_users() {
    let closed = [("arrivals", "closed"), ("users", "3"), ("duration", "1s")];
    let with = |more: &[(&'static str, &str)]| load(&[&closed[..], more].concat());
    assert_eq!(with(&[]).unwrap().threads, Threads::Number(1));
    assert_eq!(with(&[("generator-threads", "3")]).unwrap().threads, Threads::Number(3));
    assert_eq!(with(&[("generator-threads", "auto")]).unwrap().threads, Threads::Auto);
    let refused = |more: &[(&'static str, &str)]| with(more).unwrap_err().0;
    assert_eq!(refused(&[("generator-threads", "4")]), "generator-threads");
    assert_eq!(refused(&[("generator-threads", "3"), ("connections", "2")]), "generator-threads");
    assert_eq!(refused(&[("generator-threads", "2"), ("core", "0")]), "core");
}

#[test]
fn free_cores_are_those_that_the_server_does_not_use() {
    let free = |all, server| Cores { all, server }.free();
    assert_eq!(free(8, ServerCores::Known(0)), 8);
    assert_eq!(free(8, ServerCores::Known(6)), 2);
    assert_eq!(free(8, ServerCores::Known(9)), 1);
    assert_eq!((free(8, ServerCores::Unknown), free(2, ServerCores::Unknown)), (4, 1));
    assert_eq!(free(1, ServerCores::Unknown), 1);
}

#[test]
fn what_is_missing_is_named() {
    let missing = |values: &[(&'static str, &str)]| load(values).unwrap_err().0;
    assert_eq!(missing(&[("duration", "1s")]), "rate");
    assert_eq!(missing(&[("rate", "5")]), "duration");
    assert_eq!(missing(&[("arrivals", "closed"), ("duration", "1s")]), "users");
    assert_eq!(missing(&[("arrivals", "trace"), ("duration", "1s")]), "trace");
    assert_eq!(missing(&[("arrivals", "pareto"), ("rate", "5"), ("duration", "1s")]), "arrivals");
    assert_eq!(missing(&[("rate", "5"), ("duration", "1s"), ("warmup", "1s")]), "warmup");
    assert_eq!(missing(&[("rate", "5"), ("duration", "0s")]), "duration");
    assert_eq!(missing(&[("rate", "5"), ("gap", "1s"), ("duration", "1s")]), "gap");
    assert_eq!(missing(&[("gap", "0s"), ("duration", "1s")]), "gap");
    assert_eq!(missing(&[("rate", "5"), ("users", "3"), ("duration", "1s")]), "users");
    assert_eq!(missing(&[("arrivals", "closed"), ("users", "3"), ("rate", "5"), ("duration", "1s")]), "rate");
}

#[test]
fn sessions_are_told_by_the_rate_of_their_requests() {
    let shape =
        [("arrivals", "sessions"), ("requests-per-session", "4"), ("think", "1s"), ("duration", "9s")];
    let with = |more: &[(&'static str, &str)]| load(&[&shape[..], more].concat());
    let Arrivals::Sessions(sessions) = with(&[("rate", "50%")]).unwrap().arrivals(Some(400.0)) else {
        panic!("sessions")
    };
    assert!((sessions.rate_per_s() - 200.0).abs() < 1e-9 && (sessions.thinking() - 150.0).abs() < 1e-9);
    assert_eq!(sessions.requests, Batch::Geometric { mean: 4.0 });
    assert_eq!(with(&[]).unwrap_err().0, "rate");
    assert_eq!(with(&[("rate", "5"), ("users", "5")]).unwrap_err().0, "users");
    assert!(with(&[("rate", "1e9")]).unwrap_err().1.contains("sessions thinking"));
    let odd = [("arrivals", "sessions"), ("rate", "5"), ("duration", "9s"), ("session-law", "constant")];
    assert_eq!(load(&odd).unwrap_err().0, "requests-per-session");
    let odd = [&odd[..], &[("requests-per-session", "2.5")]].concat();
    assert!(load(&odd).unwrap_err().1.contains("whole number"));
}

#[test]
fn a_warm_up_is_set_or_found() {
    let with = |warmup| load(&[("rate", "5"), ("duration", "3s"), ("warmup", warmup)]);
    assert_eq!(with("1s").unwrap().warmup, Warmup::Until(1_000_000_000));
    assert_eq!(with("auto").unwrap().warmup, Warmup::Auto);
    assert_eq!(with("3s").unwrap_err().0, "warmup");
    let (name, why) = load(&[("stages", "2s: 5/s"), ("warmup", "auto")]).unwrap_err();
    assert!(name == "warmup" && why.contains("steady state"), "{why}");
}

#[test]
fn stages_say_themselves_when_they_end() {
    let ramp = load(&[("stages", "2s: 0→100/s, 8s: 100/s")]).unwrap();
    assert_eq!(ramp.expected(None), Duration::from_secs(10));
    let Arrivals::Varying(profile) = ramp.arrivals(None) else { panic!("stages") };
    assert_eq!((profile.expected(60.0), profile.spacing), (900.0, Spacing::Poisson));
    assert_eq!(load(&[("stages", "2s: 5/s"), ("rate", "5")]).unwrap_err().0, "rate");
    assert_eq!(load(&[("stages", "2s: 5/s"), ("arrivals", "uniform")]).unwrap_err().0, "arrivals");
    assert_eq!(
        load(&[("stages", "2s: 5/s"), ("arrivals", "closed"), ("users", "3")]).unwrap_err().0,
        "users"
    );
    let users = load(&[("stages", "2s: 5, 3s: 8"), ("arrivals", "closed")]).unwrap();
    assert_eq!(users.expected(None), Duration::from_secs(5));
    assert!(matches!(users.arrivals(None), Arrivals::Attended(users) if users.most() == 8));
    let short = load(&[("stages", "2s: 5, 3s: 8"), ("arrivals", "closed"), ("duration", "1s")]).unwrap();
    assert!(matches!(short.arrivals(None), Arrivals::Attended(users) if users.most() == 5));
    assert_eq!(load(&[("stages", "2s: 5/s"), ("arrivals", "closed")]).unwrap_err().0, "stages");
}

#[test]
fn a_missing_trace_names_its_file() {
    let (_, message) = load(&[("arrivals", "trace"), ("trace", "no-such-file")]).unwrap_err();
    assert!(message.contains("no-such-file"), "{message}");
}
