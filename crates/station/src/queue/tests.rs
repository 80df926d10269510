//! The order of each discipline, and the effect of tickets.

use super::*;
use crate::law::Law;
use proptest::prelude::*;

fn job(weight: f64, size: f64) -> Job {
    Job { weight, size: Size::Exactly(size), attained: 0.0 }
}

/// The order in which three jobs (weight, size) pushed in this order are served.
fn order(discipline: Discipline, jobs: &[(f64, f64)]) -> Vec<usize> {
    let mut queue = Queue::new(discipline);
    for (i, &(weight, size)) in jobs.iter().enumerate() {
        queue.push(job(weight, size), i);
    }
    std::iter::from_fn(|| queue.pop()).map(|entry| entry.item).collect()
}

#[test]
fn each_discipline_serves_in_its_order() {
    let jobs = [(1.0, 3.0), (4.0, 8.0), (2.0, 1.0), (4.0, 9.0)];
    assert_eq!(order(Discipline::Fifo, &jobs), [0, 1, 2, 3]);
    assert_eq!(order(Discipline::Lifo, &jobs), [3, 2, 1, 0]);
    assert_eq!(order(Discipline::Priority, &jobs), [1, 3, 2, 0]);
    assert_eq!(order(Discipline::PreemptivePriority, &jobs), [1, 3, 2, 0]);
    assert_eq!(order(Discipline::ProcessorSharing, &jobs), [0, 1, 2, 3]);
    assert_eq!(order(Discipline::ShortestRemaining, &jobs), [2, 0, 1, 3]);
    assert_eq!(order(Discipline::CMu, &jobs), [2, 1, 3, 0]);
    assert_eq!(order(Discipline::Gittins, &jobs), [2, 1, 3, 0]);
}

#[test]
fn only_preemptive_disciplines_interrupt_and_never_an_equal() {
    for discipline in Discipline::ALL {
        let mut queue = Queue::new(discipline);
        let running = job(1.0, 8.0);
        assert!(!queue.outranks(&running), "{discipline}: no job waits");
        queue.push(job(1.0, 8.0), ());
        assert_eq!(queue.outranks(&running), discipline == Discipline::ProcessorSharing, "{discipline}");
        queue.push(job(2.0, 1.0), ());
        assert_eq!(queue.outranks(&running), discipline.preempts(), "{discipline}");
    }
}

/// Section 5.1 of the theory of hash reversal: a job that has done half its range is safe from one of the
/// same range and less than twice its priority.
#[test]
fn a_half_searched_range_yields_only_to_twice_its_priority() {
    let half_done = Job { weight: 1.0, size: Size::UniformUpTo(30e6), attained: 15e6 };
    let interrupted_by = |weight| {
        let mut queue = Queue::new(Discipline::Gittins);
        queue.push(Job { weight, size: Size::UniformUpTo(30e6), attained: 0.0 }, ());
        queue.outranks(&half_done)
    };
    assert!(!interrupted_by(1.9));
    assert!(interrupted_by(2.1));
}

#[test]
fn an_interrupted_job_keeps_its_place_by_arrival() {
    let mut queue = Queue::new(Discipline::PreemptivePriority);
    queue.push(job(1.0, 1.0), "first");
    queue.push(job(1.0, 1.0), "second");
    let first = queue.pop().unwrap();
    queue.resume(first);
    assert_eq!(queue.pop().unwrap().item, "first");

    let mut sharing = Queue::new(Discipline::ProcessorSharing);
    sharing.push(job(1.0, 1.0), "first");
    sharing.push(job(1.0, 1.0), "second");
    let first = sharing.pop().unwrap();
    sharing.resume(first);
    assert_eq!(sharing.pop().unwrap().item, "second");
}

#[test]
fn among_equal_indices_the_job_served_most_goes_first() {
    let mut queue = Queue::new(Discipline::Gittins);
    queue.push(job(1.0, 4.0), "fresh");
    queue.push(Job { attained: 6.0, ..job(1.0, 10.0) }, "served");
    assert_eq!(queue.pop().unwrap().item, "served");
}

#[test]
fn a_job_with_falling_hazard_is_overtaken_while_it_is_served() {
    let law = Law::Hyperexponential { parts: vec![(0.9, 0.1), (0.1, 10.0)] };
    let size = Size::Law(Arc::new(GittinsTable::new(&law)));
    let mut queue = Queue::new(Discipline::Gittins);
    let running = Job { weight: 1.0, size: size.clone(), attained: 0.0 };
    queue.push(Job { weight: 0.5, size, attained: 0.0 }, ());
    let after = queue.overtaken_after(&running).expect("its index falls below half");
    assert!(after > 0.0 && !queue.outranks(&running));
    assert!(queue.outranks(&Job { attained: after, ..running }));
}

/// At any received service, and whichever of the two waits.
#[test]
fn a_memoryless_job_never_makes_way_for_its_like() {
    for mean_s in [1.0, 0.25, 1.0 / 4.2] {
        let size = Size::Law(Arc::new(GittinsTable::new(&Law::Exponential { mean_s })));
        let aged = |i: u32| Job { weight: 1.5, size: size.clone(), attained: f64::from(i) * mean_s * 0.01 };
        for i in 0..2000 {
            for (waiting, running) in [(aged(0), aged(i)), (aged(i), aged(0))] {
                let mut queue = Queue::new(Discipline::Gittins);
                queue.push(waiting, ());
                assert!(!queue.outranks(&running), "{mean_s} {i}");
                assert_eq!(queue.overtaken_after(&running), None);
            }
        }
    }
}

#[test]
fn a_memoryless_job_is_worth_its_rate_at_any_age() {
    let aged = |attained| Job { weight: 2.0, size: Size::Memoryless(0.25), attained };
    for attained in [0.0, 0.1, 1e9] {
        assert_eq!(rank(Discipline::Gittins, &aged(attained)).value(), -8.0);
        assert_eq!(rank(Discipline::ShortestRemaining, &aged(attained)).value(), 0.25);
    }
    let mut queue = Queue::new(Discipline::Gittins);
    queue.push(aged(0.0), ());
    assert!(!queue.outranks(&aged(3.0)));
    assert_eq!(queue.overtaken_after(&aged(3.0)), None);
}

#[test]
fn the_head_is_the_ticket_of_the_next_job() {
    let mut queue = Queue::new(Discipline::ShortestRemaining);
    assert_eq!(queue.head(), None);
    let long = queue.push(job(1.0, 5.0), "long");
    let short = queue.push(job(1.0, 2.0), "short");
    assert_eq!(queue.head(), Some(short));
    queue.pop();
    assert_eq!(queue.head(), Some(long));
}

#[test]
fn a_waiting_job_can_be_taken_back_once() {
    let mut queue = Queue::new(Discipline::Gittins);
    let ticket = queue.push(job(1.0, 1.0), "gone");
    queue.push(job(1.0, 2.0), "stays");
    assert_eq!(queue.remove(ticket).unwrap().item, "gone");
    assert!(queue.remove(ticket).is_none());
    assert_eq!(queue.pop().unwrap().item, "stays");
}

proptest! {
    /// Whatever is pushed comes out exactly once, ordered by rank, under every discipline.
    #[test]
    fn nothing_is_lost_and_the_order_holds(jobs in prop::collection::vec((0.1f64..9.0, 0.1f64..9.0), 0..60)) {
        for discipline in Discipline::ALL {
            let served = order(discipline, &jobs);
            let mut sorted = served.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..jobs.len()).collect::<Vec<_>>());
            let ranks: Vec<_> =
                served.iter().map(|&i| rank(discipline, &job(jobs[i].0, jobs[i].1))).collect();
            prop_assert!(ranks.is_sorted());
        }
    }

    /// For any sequence of arrivals, departures, removals, changes of weight and returns: the next job is always the
    /// one that a search through all waiting jobs would choose.
    #[test]
    fn the_head_is_who_a_search_would_choose(
        steps in prop::collection::vec((0u8..6, 0usize..60, 1u8..4, 1u8..4), 0..300),
    ) {
        let queues = Discipline::ALL.map(|it| [(it, Queue::new(it)), (it, Queue::of_few_kinds(it))]);
        for (discipline, mut queue) in queues.into_iter().flatten() {
            // Lines know their end but not its sign.
            let key = |ticket: Ticket| match discipline {
                Discipline::Lifo => Key { turn: -ticket.key.turn, ..ticket.key },
                _ => ticket.key,
            };
            let mut plain: Vec<(Ticket, usize)> = Vec::new();
            for (i, &(step, which, weight, size)) in steps.iter().enumerate() {
                let new = job(f64::from(weight), f64::from(size));
                let first = plain.iter().map(|waiting| key(waiting.0)).min();
                prop_assert_eq!(queue.head().map(key), first);
                match step {
                    0..=2 => plain.push((queue.push(new, i), i)),
                    3 => {
                        let at = plain.iter().position(|waiting| Some(key(waiting.0)) == first);
                        let expected = at.map(|at| plain.swap_remove(at).1);
                        prop_assert_eq!(queue.pop().map(|entry| entry.item), expected);
                    }
                    _ if plain.is_empty() => {}
                    _ => {
                        let (ticket, item) = plain.swap_remove(which % plain.len());
                        let mut entry = queue.remove(ticket).unwrap();
                        prop_assert_eq!(entry.item, item);
                        prop_assert!(queue.remove(ticket).is_none());
                        if step == 4 {
                            entry.job.weight = new.weight;
                            plain.push((queue.resume(entry), item));
                        }
                    }
                }
                prop_assert_eq!(queue.len(), plain.len());
            }
            plain.sort_by_key(|waiting| key(waiting.0));
            let left: Vec<usize> = queue.drain().map(|entry| entry.item).collect();
            prop_assert_eq!(left, plain.into_iter().map(|waiting| waiting.1).collect::<Vec<_>>());
            prop_assert!(queue.is_empty());
        }
    }

    #[test]
    fn numbers_keep_their_order(a in any::<f64>(), b in any::<f64>()) {
        prop_assume!(!a.is_nan() && !b.is_nan());
        prop_assert_eq!(Ordered::new(a).cmp(&Ordered::new(b)), (a + 0.0).total_cmp(&(b + 0.0)));
        prop_assert_eq!(Ordered::new(a).value(), a);
    }
}
