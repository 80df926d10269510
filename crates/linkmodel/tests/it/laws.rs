//! The laws that hold for a link with any settings.

use kendall_linkmodel::{
    Aqm, CoDel, Counters, Delivery, Ecn, FqCoDel, Jitter, Law, Link, Loss, Packet, Path, Piece, Rate,
    Reorder, Settings, Warning,
};
use proptest::prelude::*;

const US: i64 = 1_000;
const MS: i64 = 1_000_000;

fn shares() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..=1.0, Just(1.0)]
}

fn rates() -> impl Strategy<Value = Rate> {
    let piece = || {
        (prop_oneof![Just(0), 10_000_u64..100_000_000], 1_000..20 * MS)
            .prop_map(|(bits_per_s, duration_ns)| Piece { bits_per_s, duration_ns })
    };
    prop_oneof![
        Just(Rate::Unlimited),
        (100_000_u64..1_000_000_000).prop_map(|bits_per_s| Rate::Constant { bits_per_s }),
        (prop::collection::vec(piece(), 0..5), 1_000_000_u64..100_000_000).prop_map(
            |(mut pieces, bits_per_s)| {
                pieces.push(Piece { bits_per_s, duration_ns: 10 * MS });
                Rate::Trace(pieces)
            }
        ),
    ]
}

fn aqms() -> impl Strategy<Value = Aqm> {
    let codel = (0..20 * MS, 20 * MS..200 * MS, any::<bool>()).prop_map(|(target_ns, interval_ns, marks)| {
        CoDel { target_ns, interval_ns, warning: if marks { Warning::Mark } else { Warning::Drop } }
    });
    prop_oneof![
        Just(Aqm::DropTail),
        codel.clone().prop_map(Aqm::CoDel),
        (codel, 64_u32..3000)
            .prop_map(|(codel, quantum_bytes)| Aqm::FqCoDel(FqCoDel { codel, quantum_bytes })),
    ]
}

fn losses() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        (0.001..=1.0).prop_map(|share| Loss::Random { share }),
        (shares(), shares(), shares(), shares()).prop_map(
            |(worsens, recovers, lost_in_bad, lost_in_good)| {
                Loss::GilbertElliott { worsens, recovers, lost_in_bad, lost_in_good }
            }
        ),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let laws = prop_oneof![Just(Law::Uniform), Just(Law::Normal), Just(Law::ParetoNormal)];
    let jitters = (0..20 * MS, laws, 0..30 * MS);
    let reorders = prop::option::of((shares(), 1_u32..6, 0..40 * MS));
    let overheads = 0_u32..100;
    (jitters, rates(), overheads, 1_500_u64..100_000, aqms(), losses(), shares(), shares(), reorders)
        .prop_map(
            |(
                (spread_ns, law, delay_ns),
                rate,
                overhead_bytes,
                queue_bytes,
                aqm,
                loss,
                corruption,
                duplication,
                reorder,
            )| {
                Settings {
                    delay_ns: delay_ns + spread_ns,
                    // A law without spread is written like no jitter.
                    jitter: if spread_ns == 0 { Jitter::default() } else { Jitter { spread_ns, law } },
                    rate,
                    overhead_bytes,
                    queue_bytes,
                    aqm,
                    loss,
                    corruption,
                    duplication,
                    reorder: reorder.map(|(share, distance, within_ns)| Reorder {
                        share,
                        distance,
                        within_ns,
                    }),
                    wire_bytes: 64_000_000,
                }
            },
        )
}

/// Arrivals and sizes of packets: gap in ns, bytes, flow, and their support of marks.
type Traffic = Vec<(i64, u32, u64, Ecn)>;

fn traffic() -> impl Strategy<Value = Traffic> {
    let ecn = prop_oneof![Just(Ecn::NotCapable), Just(Ecn::Capable), Just(Ecn::Marked)];
    prop::collection::vec((0..2_000 * US, 0_u32..3_000, 0_u64..5, ecn), 1..300)
}

/// Offers the traffic, polling each time, and then polls everything that is still inside.
fn run(
    link: &mut Link<usize>,
    traffic: &Traffic,
    mut at_each: impl FnMut(&Link<usize>),
) -> Vec<Delivery<usize>> {
    let (mut now_ns, mut out) = (0, vec![]);
    for (item, &(gap_ns, bytes, flow, ecn)) in traffic.iter().enumerate() {
        now_ns += gap_ns;
        while let Some(next_ns) = link.next_ns().filter(|next_ns| *next_ns <= now_ns) {
            out.extend(std::iter::from_fn(|| link.poll(next_ns)));
        }
        link.offer(now_ns, Packet { bytes, flow, ecn, item });
        at_each(link);
    }
    while let Some(next_ns) = link.next_ns() {
        out.extend(std::iter::from_fn(|| link.poll(next_ns)));
        at_each(link);
    }
    out
}

fn conserved(counters: &Counters) -> bool {
    counters.offered + counters.copies == counters.delivered + counters.dropped.total() + counters.inside
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_is_accounted_for_at_any_time(settings in settings(), traffic in traffic(), seed in any::<u64>()) {
        let mut link = Link::new(&settings, seed, 0).unwrap();
        let mut held = true;
        let out = run(&mut link, &traffic, |link| {
            held &= conserved(&link.counters()) && link.queue_bytes() <= settings.queue_bytes;
        });
        prop_assert!(held);
        let counters = link.counters();
        prop_assert_eq!(counters.inside, 0, "the link empties without further packets");
        prop_assert_eq!(counters.offered, traffic.len() as u64);
        prop_assert_eq!(counters.delivered, out.iter().map(|one| u64::from(one.copies)).sum::<u64>());
        prop_assert_eq!(counters.corrupted, out.iter().filter(|one| one.wrong_bit.is_some()).count() as u64);
        for one in &out {
            prop_assert!(one.wrong_bit.is_none_or(|bit| bit < u64::from(one.packet.bytes) * 8));
        }
    }

    #[test]
    fn instants_do_not_depend_on_when_one_looks(
        settings in settings(), traffic in traffic(), seed in any::<u64>(), step_ns in 1..50 * MS,
    ) {
        let mut exact = Link::new(&settings, seed, 0).unwrap().logged(10 * MS);
        let expected = run(&mut exact, &traffic, |_| ());
        let mut late = Link::new(&settings, seed, 0).unwrap().logged(10 * MS);
        let (mut now_ns, mut out) = (0, vec![]);
        for (item, &(gap_ns, bytes, flow, ecn)) in traffic.iter().enumerate() {
            now_ns += gap_ns;
            late.offer(now_ns, Packet { bytes, flow, ecn, item });
        }
        while late.next_ns().is_some() {
            now_ns += step_ns;
            out.extend(std::iter::from_fn(|| late.poll(now_ns)));
            prop_assert!(out.last().is_none_or(|last: &Delivery<_>| last.at_ns <= now_ns));
        }
        // A packet takes memory until it is polled, so only a full wire depends on polling.
        if late.counters().dropped.wire_full == 0 {
            prop_assert_eq!(out, expected);
            prop_assert_eq!(late.counters(), exact.counters());
            prop_assert!(late.finish_log().eq(exact.finish_log()));
        }
    }

    #[test]
    fn packets_arrive_in_order_unless_reordering_is_asked_for(
        settings in settings(), traffic in traffic(), seed in any::<u64>(),
    ) {
        let fair = matches!(settings.aqm, Aqm::FqCoDel(_));
        let settings = Settings { reorder: None, ..settings };
        let mut link = Link::new(&settings, seed, 0).unwrap();
        let out = run(&mut link, &traffic, |_| ());
        prop_assert!(out.is_sorted_by_key(|one| one.at_ns));
        if fair {
            // Flows overtake each other; packets of one flow do not.
            for flow in 0..5 {
                let own = out.iter().filter(|one| one.packet.flow == flow);
                prop_assert!(own.is_sorted_by_key(|one| one.packet.item));
            }
        } else {
            prop_assert!(out.is_sorted_by_key(|one| one.packet.item));
        }
    }

    #[test]
    fn the_log_adds_up_to_the_counters(settings in settings(), traffic in traffic(), seed in any::<u64>()) {
        let mut link = Link::new(&settings, seed, 0).unwrap().logged(10 * MS);
        let mut rows = vec![];
        let (mut now_ns, mut spans) = (0, vec![]);
        for (item, &(gap_ns, bytes, flow, ecn)) in traffic.iter().enumerate() {
            now_ns += gap_ns;
            while link.poll(now_ns).is_some() {}
            let complete: Vec<_> = link.drain_log(now_ns).collect();
            prop_assert!(complete.iter().all(|row| row.start_ns + 10 * MS <= now_ns));
            spans.extend(complete.iter().map(|row| (row.start_ns, row.flow)));
            rows.extend(complete);
            link.offer(now_ns, Packet { bytes, flow, ecn, item });
        }
        while let Some(next_ns) = link.next_ns() {
            while link.poll(next_ns).is_some() {}
        }
        rows.extend(link.finish_log());
        let counters = link.counters();
        let sum = |of: fn(&kendall_linkmodel::FlowRow) -> u64| rows.iter().map(of).sum::<u64>();
        prop_assert_eq!(sum(|row| row.offered), counters.offered);
        prop_assert_eq!(sum(|row| row.offered_bytes), counters.offered_bytes);
        prop_assert_eq!(sum(|row| row.delivered), counters.delivered);
        prop_assert_eq!(sum(|row| row.delivered_bytes), counters.delivered_bytes);
        prop_assert_eq!(sum(|row| row.dropped.total()), counters.dropped.total());
        prop_assert_eq!(sum(|row| row.marked), counters.marked);
        for row in &rows {
            let mean = row.wait_mean_ns().unwrap_or(0.0);
            prop_assert!(row.wait_min_ns as f64 <= mean && mean <= row.wait_max_ns as f64);
        }
        // A drained span is complete: nothing is counted on it later.
        let unique: std::collections::BTreeSet<_> = rows.iter().map(|row| (row.start_ns, row.flow)).collect();
        prop_assert_eq!(unique.len(), rows.len());
    }

    #[test]
    fn settings_read_back_as_they_are_written(settings in settings()) {
        let text = settings.to_string();
        prop_assert_eq!(text.parse::<Settings>(), Ok(settings), "{}", text);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[a-z0-9=%,. -]{0,60}") {
        let _ = text.parse::<Settings>();
        let _ = format!("loss={text}").parse::<Settings>();
        let _ = format!("aqm={text}").parse::<Settings>();
        let _ = format!("rate={text}").parse::<Settings>();
    }

    #[test]
    fn a_path_conserves_packets_on_each_of_its_links(
        hops in prop::collection::vec(settings(), 1..4), traffic in traffic(), seed in any::<u64>(),
    ) {
        let mut path = Path::new(&hops, seed, 0).unwrap();
        let (mut now_ns, mut out) = (0, 0);
        for (item, &(gap_ns, bytes, flow, ecn)) in traffic.iter().enumerate() {
            now_ns += gap_ns;
            path.offer(now_ns, Packet { bytes, flow, ecn, item });
            out += std::iter::from_fn(|| path.poll(now_ns)).map(|one| u64::from(one.copies)).sum::<u64>();
        }
        while let Some(next_ns) = path.next_ns() {
            out += std::iter::from_fn(|| path.poll(next_ns)).map(|one| u64::from(one.copies)).sum::<u64>();
        }
        let counters: Vec<Counters> = path.counters().collect();
        prop_assert!(counters.iter().all(|one| conserved(one) && one.inside == 0));
        prop_assert!(counters.windows(2).all(|two| two[0].delivered == two[1].offered));
        prop_assert_eq!(counters.last().unwrap().delivered, out);
    }
}
