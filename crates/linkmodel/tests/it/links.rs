//! Links of known behaviour: instants to the nanosecond, and shares within their random variation.

use kendall_linkmodel::{Delivery, Ecn, Fault, Link, Packet, Path, Settings};

const MS: i64 = 1_000_000;

fn link(settings: &str) -> Link<u32> {
    Link::new(&settings.parse().unwrap(), 1, 0).unwrap()
}

fn packet(bytes: u32, item: u32) -> Packet<u32> {
    Packet { bytes, flow: 1, ecn: Ecn::NotCapable, item }
}

/// All remaining deliveries, each at its own instant.
fn rest(link: &mut Link<u32>) -> Vec<Delivery<u32>> {
    let mut out = vec![];
    while let Some(at_ns) = link.next_ns() {
        out.extend(link.poll(at_ns));
    }
    out
}

/// How many of `count` packets, 1 ms apart, fulfil a condition on arrival; and how many arrive.
fn share(settings: &str, count: u32, condition: impl Fn(&Delivery<u32>) -> bool) -> (f64, f64) {
    let mut link = link(settings);
    let mut out = vec![];
    for item in 0..count {
        let now_ns = i64::from(item) * MS;
        out.extend(std::iter::from_fn(|| link.poll(now_ns)));
        link.offer(now_ns, packet(100, item));
    }
    out.extend(rest(&mut link));
    let met = out.iter().filter(|one| condition(one)).count();
    (met as f64 / f64::from(count), out.len() as f64 / f64::from(count))
}

/// 5 standard deviations of a share: a false alarm of 6 in 10⁷.
fn tolerance(share: f64, count: u32) -> f64 {
    5.0 * (share * (1.0 - share) / f64::from(count)).sqrt()
}

#[test]
fn packets_leave_and_arrive_to_the_nanosecond() {
    // 8 Mbit/s is a byte per µs; 20 bytes more go with each packet.
    let mut link = link("delay=5ms rate=8mbit overhead=20");
    link.offer(0, packet(980, 0));
    link.offer(0, packet(480, 1));
    link.offer(3 * MS, packet(80, 2));
    let seen: Vec<_> = rest(&mut link).iter().map(|one| (one.at_ns, one.waited_ns)).collect();
    assert_eq!(seen, [(6 * MS, 0), (6 * MS + 500_000, MS), (8 * MS + 100_000, 0)]);
}

#[test]
fn a_full_queue_drops_the_newest_packet_and_accepts_the_next_once_it_has_space() {
    // 12 Mbit/s: 1,500 bytes per ms. One is being sent, two wait, the fourth finds the queue full.
    let mut link = link("rate=12mbit queue=3000");
    for item in 0..4 {
        link.offer(0, packet(1500, item));
    }
    assert_eq!((link.counters().dropped.overflow, link.queue_bytes()), (1, 3000));
    link.offer(MS, packet(1500, 4)); // at the instant at which there is room again
    let items: Vec<_> = rest(&mut link).iter().map(|one| one.packet.item).collect();
    assert_eq!(items, [0, 1, 2, 4]);
}

#[test]
fn an_hour_of_packets_arrives_at_the_rate() {
    let mut link = link("rate=9999991bit queue=100k");
    let (mut now_ns, mut out) = (0, 0_u64);
    let mut last_ns = 0;
    for item in 0..200_000 {
        // Twice as fast as the link is.
        now_ns += 605_000;
        link.offer(now_ns, packet(1514, item));
        while let Some(one) = link.poll(now_ns) {
            (out, last_ns) = (out + u64::from(one.packet.bytes), one.at_ns);
        }
    }
    let exact_ns = out as f64 * 8e9 / 9_999_991.0;
    // It was busy all the time from the first packet on.
    assert!((last_ns as f64 - 605_000.0 - exact_ns).abs() <= 1.0, "{last_ns} ns for {out} bytes");
}

#[test]
fn random_conditions_have_their_share() {
    let (_, arrived) = share("loss=2%", 100_000, |_| true);
    assert!((arrived - 0.98).abs() < tolerance(0.02, 100_000), "{arrived}");
    let (damaged, arrived) = share("corrupt=3%", 100_000, |one| one.wrong_bit.is_some());
    assert!((damaged - 0.03).abs() < tolerance(0.03, 100_000) && arrived == 1.0, "{damaged}");
    let (twice, _) = share("duplicate=5%", 100_000, |one| one.copies == 2);
    assert!((twice - 0.05).abs() < tolerance(0.05, 100_000), "{twice}");
}

#[test]
fn one_random_condition_does_not_change_another() {
    let lost = |settings: &str| {
        let mut link = link(settings);
        (0..5_000).for_each(|item| link.offer(i64::from(item) * MS, packet(100, item)));
        let arrived: Vec<u32> = rest(&mut link).iter().map(|one| one.packet.item).collect();
        (0..5_000).filter(|item| !arrived.contains(item)).collect::<Vec<u32>>()
    };
    let alone = lost("loss=1%");
    assert!(!alone.is_empty());
    assert_eq!(alone, lost("loss=1% corrupt=10% duplicate=10% delay=9ms jitter=3ms"));
}

#[test]
fn jitter_is_spread_around_the_delay() {
    // Packets are 50 ms apart, so none holds up another.
    let mut link = link("delay=20ms jitter=4ms");
    let mut delays_ms = vec![];
    for item in 0..50_000 {
        let now_ns = i64::from(item) * 50 * MS;
        link.offer(now_ns, packet(100, item));
        let at_ns = link.next_ns().unwrap();
        delays_ms.push((link.poll(at_ns).unwrap().at_ns - now_ns) as f64 / 1e6);
    }
    let mean = delays_ms.iter().sum::<f64>() / 50_000.0;
    // The standard deviation of a uniform law is its half-width over √3; 5 standard errors.
    assert!((mean - 20.0).abs() < 5.0 * 4.0 / 3.0_f64.sqrt() / 50_000.0_f64.sqrt(), "{mean}");
    assert!(delays_ms.iter().all(|delay| (16.0..=24.0).contains(delay)));
    let early = delays_ms.iter().filter(|delay| **delay < 18.0).count() as f64 / 50_000.0;
    assert!((early - 0.25).abs() < tolerance(0.25, 50_000), "{early}");
}

#[test]
fn a_packet_that_is_held_back_is_overtaken_by_as_many_as_asked() {
    for distance in [1, 3] {
        let mut link = link(&format!("delay=5ms reorder=2% distance {distance} within 1s"));
        let mut out = vec![];
        for item in 0..20_000 {
            let now_ns = i64::from(item) * MS;
            out.extend(std::iter::from_fn(|| link.poll(now_ns)));
            link.offer(now_ns, packet(100, item));
        }
        let held = link.counters().held_back;
        assert!((held as f64 / 20_000.0 - 0.02).abs() < tolerance(0.02, 20_000), "{held}");
        let items: Vec<u32> = out.iter().map(|one| one.packet.item).collect();
        // A packet that arrives after a later one was held back; counts the later ones that arrived before it. Those
        // that were held back themselves stay behind it.
        let overtaken: Vec<usize> = items
            .iter()
            .enumerate()
            .map(|(place, item)| {
                items[place.saturating_sub(20)..place].iter().filter(|other| *other > item).count()
            })
            .filter(|overtakers| *overtakers > 0)
            .collect();
        assert!(overtaken.len() as u64 >= held - 2, "{} of {held}", overtaken.len());
        assert!(overtaken.iter().all(|overtakers| *overtakers == distance), "{overtaken:?}");
    }
}

#[test]
fn the_last_packet_of_all_is_not_held_back_for_ever() {
    let mut link = link("delay=5ms reorder=100% distance 2 within 30ms");
    link.offer(0, packet(100, 0));
    assert_eq!(rest(&mut link)[0].at_ns, 35 * MS);
}

#[test]
fn a_full_wire_is_counted() {
    let mut link = link("delay=1s wire=15k");
    (0..20).for_each(|item| link.offer(0, packet(1500, item)));
    assert_eq!(link.counters().dropped.wire_full, 10);
    assert_eq!(rest(&mut link).len(), 10);
    link.offer(2_000 * MS, packet(1500, 20));
    assert_eq!(rest(&mut link).len(), 1, "what arrived has left the wire");
}

#[test]
fn several_links_in_a_row_add_up() {
    let hops: Vec<Settings> = ["delay=1ms rate=12mbit", "delay=2ms rate=6mbit", "delay=3ms"]
        .map(|hop| hop.parse().unwrap())
        .to_vec();
    let mut path = Path::new(&hops, 1, 0).unwrap();
    path.offer(0, packet(1500, 0));
    path.offer(0, packet(1500, 1));
    let mut seen = vec![];
    while let Some(at_ns) = path.next_ns() {
        seen.extend(path.poll(at_ns).map(|one| (one.at_ns, one.waited_ns)));
    }
    // 1 ms + 1 ms, 2 ms + 2 ms, 3 ms; the second waits 1 ms before the first link and 1 ms before the second.
    assert_eq!(seen, [(9 * MS, 0), (11 * MS, 2 * MS)]);
    assert_eq!(Path::<()>::new(&[], 1, 0).unwrap_err(), Fault::NoLink);
}

#[test]
fn invalid_settings_are_explained_in_a_sentence() {
    let fault = |text: &str| text.parse::<Settings>().unwrap_err().to_string();
    assert_eq!(
        fault("delay=2ms jitter=5ms"),
        "a jitter of 5ms is more than the delay of 2ms, but no packet arrives before it was sent; set more delay or \
         less jitter"
    );
    assert!(fault("rate=10mbps").contains("10mbit"), "{}", fault("rate=10mbps"));
    assert!(fault("rat=10mbit").contains("a link has no setting \"rat\""));
    assert!(fault("aqm=red").contains("codel"));
    assert!(fault("loss=90% burst 1").contains("burst 5"));
    assert!(fault("delay=1ms delay=2ms").contains("twice"));
    assert!(fault("rate=100gbit delay=1s").contains("larger wire"));
    assert!(fault("rate=0 1s").contains("at least 1kbit"));
    for text in [
        "queue=0",
        "delay=2h",
        "overhead=5GB",
        "aqm=codel target 200ms",
        "reorder=1% distance 0",
        "rate=1bit",
    ] {
        assert!(text.parse::<Settings>().is_err(), "{text}");
    }
}
