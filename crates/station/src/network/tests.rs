use super::*;
use crate::conditions::{Clock, Delays, Interrupted};

const OPEN: &str = r#"
    [[station]]
    name = "web"
    servers = 4
    service = { law = "exponential", mean_s = 0.02 }
    arrivals = { rate_per_s = 80 }

    [[station]]
    name = "db"
    service = { law = "exponential", mean_s = 0.01 }
    services.gold = { law = "constant", mean_s = 0.005 }
    capacity = 50
    when_full = "block"
    discipline = "priority"
    [station.conditions]
    patience = { law = "constant", mean_s = 1.0 }
    retry = { probability = 0.5, after = [1, 2, 4], most = 3 }
    setup = { time = { law = "constant", mean_s = 0.1 } }
    [station.conditions.breakdown]
    up = { law = "exponential", mean_s = 3600 }
    repair = { law = "constant", mean_s = 20 }
    then = "restart"
    clock = "calendar"

    [routing]
    web = { db = 0.7 }
    db = { web = 0.2 }

    [[class]]
    name = "plain"
    share = 0.9

    [[class]]
    name = "gold"
    share = 0.1
    weight = 5
    routing = { web = { db = 1.0 } }
"#;

const CLOSED: &str = r#"
    [[station]]
    name = "cpu"
    servers = 2
    service = { law = "erlang", shape = 2, mean_s = 0.1 }
    discipline = "processor-sharing"

    [[station]]
    name = "disk"
    service = { law = "constant", mean_s = 0.02 }

    [routing]
    cpu = { disk = 0.9 }
    disk = { cpu = 1.0 }

    [users]
    count = 30
    think = { law = "exponential", mean_s = 2 }
    enter = { cpu = 1 }
"#;

fn read(text: &str) -> Network {
    toml::from_str(text).unwrap()
}

#[test]
fn a_network_is_read_as_a_person_writes_it() {
    let open = read(OPEN);
    assert_eq!(open.validate(), Ok(()));
    assert_eq!(open.nodes[0].arrivals, Some(Arrivals::poisson(80.0)));
    let db = &open.nodes[1];
    assert_eq!((db.servers.get(), db.when_full, db.discipline), (1, WhenFull::Block, Discipline::Priority));
    let breakdown = db.conditions.breakdown.as_ref().unwrap();
    assert_eq!((breakdown.then, breakdown.clock), (Interrupted::Restart, Clock::Calendar));
    assert_eq!(db.conditions.retry.as_ref().unwrap().after, Delays::Listed(vec![1.0, 2.0, 4.0]));
    let closed = read(CLOSED);
    assert_eq!(closed.validate(), Ok(()));
    assert_eq!(closed.population.as_ref().unwrap().count, 30);
    for network in [open, closed] {
        let text = serde_json::to_string(&network).unwrap();
        assert_eq!(serde_json::from_str::<Network>(&text).unwrap(), network);
    }
}

#[test]
fn the_traffic_equations_hold() {
    let flows = read(OPEN).flows();
    // For plain, web = 72 + 0.2 db and db = 0.7 web; gold customers all go to both.
    let web = 72.0 / (1.0 - 0.14);
    let exact = [[web, 0.7 * web], [8.0, 8.0 * 1.0]];
    for (flow, exact) in flows.iter().flatten().zip(exact.iter().flatten()) {
        assert!((flow - exact).abs() < 1e-9 * exact, "{flows:?}");
    }
    let visits = read(CLOSED).flows();
    assert!((visits[0][0] - 10.0).abs() < 1e-9 && (visits[0][1] - 9.0).abs() < 1e-9, "{visits:?}");
}

#[test]
fn a_station_is_a_network_of_one_node() {
    let station = Station::new(Arrivals::poisson(3.0), Law::Constant { mean_s: 0.1 }, Servers::MIN);
    let class = |service| crate::Class { name: "same".into(), share: 0.5, weight: 1.0, service };
    let own = Some(Law::Constant { mean_s: 0.3 });
    let station = Station { classes: vec![class(None), class(own.clone())], ..station };
    let network = Network::from(&station);
    assert_eq!(network.validate(), Ok(()));
    assert_eq!(network.nodes[0].services.values().next(), own.as_ref());
    let arrivals = Arrivals::Closed { population: 7, think: Law::Constant { mean_s: 1.0 } };
    let closed = Network::from(&Station { arrivals, ..station });
    assert_eq!(closed.validate(), Ok(()));
    assert_eq!(closed.population.unwrap().count, 7);
}

#[test]
fn invalid_networks_are_rejected() {
    let refused = |text: &str| read(text).validate().unwrap_err().to_string();
    let without = |from: &str, to: &str| {
        assert!(OPEN.contains(from) || CLOSED.contains(from), "{from}");
        if OPEN.contains(from) { OPEN.replacen(from, to, 1) } else { CLOSED.replacen(from, to, 1) }
    };
    for (from, to, says) in [
        ("name = \"web\"", "name = \"db\"", "two stations are called \"db\""),
        ("name = \"gold\"", "name = \"plain\"", "the class \"gold\", which does not exist"),
        ("web = { db = 0.7 }", "web = { cache = 0.7 }", "routing names the station \"cache\""),
        ("web = { db = 0.7 }", "web = { db = 1.1 }", "add up to 1.1"),
        ("db = { web = 0.2 }", "db = { web = 0.2, db = 0.9 }", "from \"db\" add up to 1.1"),
        ("arrivals = { rate_per_s = 80 }", "", "has no arrivals"),
        ("arrivals = { rate_per_s = 80 }", "arrivals = { rate_per_s = -1 }", "station \"web\": arrivals"),
        ("capacity = 50", "capacity = 0", "a capacity of 0 requests"),
        ("probability = 0.5", "probability = 2", "a retry is 2"),
        ("share = 0.1", "share = 0.2", "add up to 1.1"),
        ("weight = 5", "weight = 0", "the weight 0"),
        ("count = 30", "count = 0", "at least one user"),
        ("enter = { cpu = 1 }", "enter = { cpu = 0.5 }", "entering add up to 0.5"),
        ("cpu = { disk = 0.9 }", "cpu = { disk = 1 }", "never leave"),
    ] {
        let why = refused(&without(from, to));
        assert!(why.contains(says), "{from} → {to}: {why}");
    }
    let both = CLOSED.replacen("name = \"cpu\"", "name = \"cpu\"\n arrivals = { rate_per_s = 1 }", 1);
    assert!(refused(&both).contains("either closed or open"));
    let misspelt = OPEN.replacen("servers", "server", 1);
    assert!(toml::from_str::<Network>(&misspelt).unwrap_err().to_string().contains("unknown field `server`"));
}
