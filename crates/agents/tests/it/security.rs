//! What agents refuse, and how they reach a NATS server that admits only some.

use std::time::Duration;

use futures_util::StreamExt as _;
use kendall_agents::FleetError;
use kendall_load::Plan;
use kendall_nats::NatsError;
use kendall_record::Outcome;
use kendall_station::Arrivals;
use kendall_testbed::Nats;

use crate::bed::{Agent, gather, load};
use crate::echo::Server;

#[test]
fn an_agent_loads_only_what_its_command_line_allows() {
    let Some(nats) = Nats::with("") else { return };
    let server = Server::start();
    let _agent = Agent::start(&nats.url(), "careful", "127.0.0.1:1");
    let fleet = gather(&nats.url(), 1).unwrap();
    let plan = Plan::lasting(Arrivals::poisson(100.0), Duration::from_millis(100), 5);
    let refused = |plan: &Plan, change: &dyn Fn(&mut kendall_agents::Target)| {
        let mut target = server.target();
        change(&mut target);
        load(&fleet, &target, plan, 1).unwrap_err().to_string()
    };
    let said = refused(&plan, &|_| ());
    assert!(said.contains("careful") && said.contains("it may not load"), "{said}");
    let here = |target: &mut kendall_agents::Target| target.address = "127.0.0.1:1".parse().unwrap();
    let said = refused(&plan, &|target| {
        here(target);
        target.system = "shell".into();
    });
    assert!(said.contains("no system \"shell\""), "{said}");
    let said = refused(&plan, &|target| {
        here(target);
        target.workload.insert("command".into(), "id".into());
    });
    assert!(said.contains("no parameter \"command\""), "{said}");
    let endless = Plan { duration: None, ..plan.clone() };
    assert!(refused(&endless, &here).contains("no end"));
    let bad = Plan { connections: 0, ..plan };
    assert!(refused(&bad, &here).contains("connections"));
}

/// Sends the first order to start on again, as any client of the NATS server may, and returns the agent's reply.
async fn start_again(client: async_nats::Client, mut orders: async_nats::Subscriber) -> String {
    while let Some(order) = orders.next().await {
        if order.payload.starts_with(b"{\"start\"") {
            let reply = client.request(order.subject, order.payload).await.unwrap();
            return String::from_utf8(reply.payload.into()).unwrap();
        }
    }
    unreachable!("the fleet starts its load")
}

#[test]
fn a_second_order_to_start_is_refused_and_the_load_goes_on() {
    let Some(nats) = Nats::with("") else { return };
    let server = Server::start();
    let _agent = Agent::start(&nats.url(), "a", &server.address.to_string());
    let fleet = gather(&nats.url(), 1).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (client, orders) = runtime.block_on(async {
        let client = async_nats::connect(nats.url()).await.unwrap();
        let orders = client.subscribe("kendall.agent.*").await.unwrap();
        client.flush().await.unwrap();
        (client, orders)
    });
    let again = runtime.spawn(start_again(client, orders));
    let plan = Plan::lasting(Arrivals::poisson(200.0), Duration::from_secs(1), 5);
    let (summary, _) = load(&fleet, &server.target(), &plan, 1).unwrap();
    assert_eq!(summary.count(Outcome::Answered), summary.sent);
    let reply = runtime.block_on(again).unwrap();
    assert!(reply.contains("sends already"), "{reply}");
}

#[test]
fn a_password_is_needed_and_not_shown() {
    let Some(nats) = Nats::with("authorization { user: me, password: sesame }") else { return };
    let server = Server::start();
    let with = |user: &str| nats.url_of(&format!("{user}@"));
    let _agent = Agent::start(&with("me:sesame"), "a", &server.address.to_string());
    let fleet = gather(&with("me:sesame"), 1).unwrap();
    let plan =
        Plan { requests: Some(10), ..Plan::lasting(Arrivals::poisson(100.0), Duration::from_secs(9), 5) };
    assert_eq!(load(&fleet, &server.target(), &plan, 1).unwrap().0.sent, 10);
    let failed = gather(&with("me:wrong"), 1).unwrap_err();
    let said = failed.to_string();
    assert!(matches!(failed, FleetError::Nats(NatsError::Connect { .. })), "{said}");
    assert!(!said.contains("wrong"), "{said}");
}

#[test]
fn too_few_agents_are_an_error() {
    let Some(nats) = Nats::with("") else { return };
    let failed = gather(&nats.url(), 2).unwrap_err();
    assert!(matches!(failed, FleetError::TooFew { found: 0, wanted: 2 }), "{failed}");
}
