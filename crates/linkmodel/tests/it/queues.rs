//! The effects of queue disciplines on senders: greedy, thin, marked, and like TCP.

use kendall_linkmodel::{Counters, Ecn, Link, Packet, Settings};

const MS: i64 = 1_000_000;
const S: i64 = 1_000_000_000;
const BYTES: u32 = 1500;

/// A sender at a constant rate that ignores losses.
struct Steady {
    flow: u64,
    bytes: u32,
    gap_ns: i64,
    ecn: Ecn,
}

/// The waits of each sender's packets, in ms, in order, and the counters of the link. Excludes the first second.
fn steady(settings: &str, senders: &[Steady], until_ns: i64) -> (Vec<Vec<f64>>, Counters) {
    let settings: Settings = settings.parse().unwrap();
    let mut link: Link<usize> = Link::new(&settings, 3, 0).unwrap();
    let mut due_ns: Vec<i64> = senders.iter().map(|_| 0).collect();
    let mut waits: Vec<Vec<f64>> = vec![vec![]; senders.len()];
    loop {
        let (sender, now_ns) = due_ns.iter().copied().enumerate().min_by_key(|(_, due_ns)| *due_ns).unwrap();
        if now_ns >= until_ns {
            return (waits, link.counters());
        }
        while let Some(one) = link.poll(now_ns) {
            if one.at_ns > S {
                waits[one.packet.item].push(one.waited_ns as f64 / 1e6);
            }
        }
        let Steady { flow, bytes, gap_ns, ecn } = senders[sender];
        link.offer(now_ns, Packet { bytes, flow, ecn, item: sender });
        due_ns[sender] += gap_ns;
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// A sender with a window, like TCP Reno (RFC 5681) in its essence: the window grows by one packet for each round trip,
/// or for each answer while it is below its threshold, and is halved once for each window in which a packet is missed or marked.
struct Window {
    packets: f64,
    threshold: f64,
    /// Losses among packets before this one belong to a warning that was already handled.
    heeded: u64,
    next: u64,
    out: u64,
}

/// One such sender over a link and back over its delay. Returns the share of the rate that arrives in the second half, and the
/// waits of those packets, in ms.
fn greedy(settings: &str, back_ns: i64, until_ns: i64, ecn: Ecn) -> (f64, Vec<f64>, Counters) {
    let settings: Settings = settings.parse().unwrap();
    let rate = settings.rate.mean_bits_per_s().unwrap();
    let mut link: Link<u64> = Link::new(&settings, 5, 0).unwrap();
    let mut window = Window { packets: 10.0, threshold: 1e9, heeded: 0, next: 0, out: 0 };
    let mut answers = std::collections::VecDeque::new();
    let (mut expected, mut arrived, mut waits) = (0, 0_u64, vec![]);
    let mut now_ns = 0;
    while now_ns < until_ns {
        while (window.out as f64) < window.packets {
            link.offer(now_ns, Packet { bytes: BYTES, flow: 9, ecn, item: window.next });
            window.next += 1;
            window.out += 1;
        }
        let answer_ns = answers.front().map(|(at_ns, _, _): &(i64, u64, bool)| *at_ns);
        now_ns = link.next_ns().into_iter().chain(answer_ns).min().unwrap_or(until_ns);
        while let Some(one) = link.poll(now_ns) {
            if one.at_ns > until_ns / 2 {
                arrived += u64::from(one.packet.bytes);
                waits.push(one.waited_ns as f64 / 1e6);
            }
            answers.push_back((one.at_ns + back_ns, one.packet.item, one.marked));
        }
        while let Some((_, item, marked)) = answers.pop_front_if(|(at_ns, _, _)| *at_ns <= now_ns) {
            let missed = item - expected;
            expected = item + 1;
            window.out -= missed + 1;
            if missed > 0 || marked {
                if item >= window.heeded {
                    window.threshold = (window.packets / 2.0).max(2.0);
                    window.packets = window.threshold;
                    window.heeded = window.next;
                }
            } else {
                window.packets += if window.packets < window.threshold { 1.0 } else { 1.0 / window.packets };
            }
        }
        // Nothing in transit and no feedback: the whole window was lost.
        if link.next_ns().is_none() && answers.is_empty() {
            (window.out, expected) = (0, window.next);
            now_ns += 200 * MS;
        }
    }
    let seconds = (until_ns - until_ns / 2) as f64 / 1e9;
    (arrived as f64 * 8.0 / seconds / rate, waits, link.counters())
}

/// A twentieth more than the 12 Mbit/s of the links here, each packet of which takes 1 ms.
fn too_much(ecn: Ecn) -> Steady {
    Steady { flow: 1, bytes: BYTES, gap_ns: MS * 20 / 21, ecn }
}

#[test]
fn drop_tail_stands_at_its_limit_and_codel_at_its_target() {
    let (waits, counters) = steady("rate=12mbit queue=150k", &[too_much(Ecn::NotCapable)], 60 * S);
    // 100 packets wait in front of each that is accepted.
    assert!((98.0..=100.0).contains(&median(&waits[0])), "{}", median(&waits[0]));
    assert_eq!(counters.dropped.aqm, 0);

    let (waits, counters) = steady("rate=12mbit queue=150k aqm=codel", &[too_much(Ecn::NotCapable)], 60 * S);
    let late = &waits[0][waits[0].len() / 2..];
    assert!(median(late) < 12.0, "stands at {} ms", median(late));
    assert!(counters.dropped.aqm > 0 && counters.dropped.overflow == 0, "{counters:?}");
}

#[test]
fn a_sender_like_tcp_fills_the_link_and_codel_keeps_its_queue_short() {
    // 20 ms each way: a window of 40 packets fills the link. Drop-tail with twice that stands between 40 and 80 packets.
    let (share, waits, _) = greedy("delay=20ms rate=12mbit queue=120k", 20 * MS, 60 * S, Ecn::NotCapable);
    assert!(share > 0.95, "{share} of the rate");
    let standing = median(&waits);
    assert!(standing > 30.0, "{standing} ms");

    // Halving a window that just fills the link leaves up to a quarter of it unused: the price of a short queue where
    // the round trip is long against CoDel's target. Where it is short, the window grows by many packets in an interval.
    for (delay_ms, least, longest_ms) in [(20, 0.75, 6.0), (2, 0.95, 12.0)] {
        let settings = format!("delay={delay_ms}ms rate=12mbit queue=120k aqm=codel");
        let (share, waits, counters) = greedy(&settings, delay_ms * MS, 60 * S, Ecn::NotCapable);
        assert!(share > least, "{share} of the rate over {delay_ms} ms");
        assert!(
            median(&waits) < longest_ms && counters.dropped.aqm > 0,
            "{} ms, {counters:?}",
            median(&waits)
        );
    }
}

#[test]
fn packets_that_support_marks_are_marked_and_not_dropped() {
    let (share, waits, counters) =
        greedy("delay=20ms rate=12mbit queue=120k aqm=codel", 20 * MS, 60 * S, Ecn::Capable);
    assert!(share > 0.75 && median(&waits) < 6.0, "{share} of the rate, {} ms", median(&waits));
    assert!(counters.marked > 10 && counters.dropped.aqm == 0, "{counters:?}");

    let (_, _, counters) =
        greedy("delay=20ms rate=12mbit queue=120k aqm=codel no-ecn", 20 * MS, 60 * S, Ecn::Capable);
    assert!(counters.marked == 0 && counters.dropped.aqm > 0, "{counters:?}");
}

#[test]
fn a_thin_flow_does_not_wait_behind_a_fat_one_under_fq_codel() {
    let thin = || Steady { flow: 2, bytes: 100, gap_ns: 20 * MS, ecn: Ecn::NotCapable };
    let senders = [too_much(Ecn::NotCapable), thin()];
    let (waits, _) = steady("rate=12mbit queue=150k", &senders, 20 * S);
    assert!(median(&waits[1]) > 90.0, "{}", median(&waits[1]));

    let (waits, _) = steady("rate=12mbit queue=150k aqm=fq-codel", &senders, 20 * S);
    // At most the packet that is being sent is in front of it: 1 ms, and the turn of another new flow.
    assert!(largest(&waits[1]) <= 2.0, "{}", largest(&waits[1]));
    assert_eq!(waits[1].len(), (19 * S / (20 * MS)) as usize, "and none of it is lost");
}

#[test]
fn flows_share_the_rate_equally_under_fq_codel() {
    let sender = |flow, bytes, per_s: i64| Steady { flow, bytes, gap_ns: S / per_s, ecn: Ecn::NotCapable };
    // Of 12 Mbit/s: one sends 24 in large packets, one 12 in small ones, one 1.2.
    let senders = [sender(1, 1500, 2_000), sender(2, 300, 5_000), sender(3, 1500, 100)];
    let (waits, _) = steady("rate=12mbit queue=150k aqm=fq-codel", &senders, 21 * S);
    let mbit_per_s: Vec<f64> = waits
        .iter()
        .zip(&senders)
        .map(|(waits, sender)| waits.len() as f64 * f64::from(sender.bytes) * 8.0 / 20e6)
        .collect();
    assert!((mbit_per_s[2] / 1.2 - 1.0).abs() < 0.02, "{mbit_per_s:?}");
    assert!((mbit_per_s[0] / 5.4 - 1.0).abs() < 0.02, "{mbit_per_s:?}");
    assert!((mbit_per_s[1] / 5.4 - 1.0).abs() < 0.02, "{mbit_per_s:?}");
}

#[test]
fn an_overflow_drops_from_the_longest_line() {
    // The thin flow's packets find the queue full of another's.
    let senders = [
        Steady { flow: 1, bytes: BYTES, gap_ns: MS / 100, ecn: Ecn::NotCapable },
        Steady { flow: 2, bytes: 100, gap_ns: 50 * MS, ecn: Ecn::NotCapable },
    ];
    let (waits, counters) = steady("rate=12mbit queue=60k aqm=fq-codel", &senders, 5 * S);
    assert!(counters.dropped.overflow > 100_000, "{counters:?}");
    assert_eq!(waits[1].len(), 80);
}
