use super::*;

const MS: Duration = Duration::from_millis(1);

/// Recovery with `count` units sent a millisecond apart from 0, and a round trip of 100 ms known.
fn sent(count: u64) -> Recovery {
    let mut recovery = Recovery::new();
    recovery.rtt.update(100 * MS, Duration::ZERO);
    for number in 0..count {
        send(&mut recovery, MS * number as u32, number, None);
    }
    recovery
}

fn send(recovery: &mut Recovery, now: Duration, unit: u64, prior: Option<u64>) -> u64 {
    recovery.sent(now, 1088, Some(Carried { start: unit * 1024, stop: (unit + 1) * 1024, prior }))
}

/// An acknowledgment by echo; the numbers of the messages that it shows to be lost, and whether congestion persists.
fn echo(recovery: &mut Recovery, now: Duration, number: u64, duplicate: bool) -> (Vec<u64>, bool) {
    let mut progress = Progress::default();
    recovery.echoed(now, Recovery::wire_number(number), Duration::ZERO, duplicate, &mut progress);
    let lost = losses(recovery, now);
    recovery.progressed(now, &progress);
    lost
}

fn losses(recovery: &mut Recovery, now: Duration) -> (Vec<u64>, bool) {
    let mut lost = vec![];
    let persistent = recovery.detect_losses(now, Duration::ZERO, |_, message| lost.push(message.number));
    (lost, persistent)
}

#[test]
fn a_message_is_lost_when_three_later_ones_arrived() {
    let mut recovery = sent(10);
    assert_eq!(echo(&mut recovery, 100 * MS, 2, false).0, []);
    assert_eq!(echo(&mut recovery, 101 * MS, 3, false).0, [0]);
    assert_eq!(echo(&mut recovery, 102 * MS, 6, false).0, [1]);
    assert_eq!(recovery.in_flight_bytes(), 5 * 1088);
}

#[test]
fn a_message_is_lost_nine_eighths_of_a_round_trip_after_it_was_sent() {
    let mut recovery = sent(2);
    assert_eq!(echo(&mut recovery, 101 * MS, 1, false).0, []);
    let due = recovery.loss_time().unwrap();
    assert_eq!(due, 100 * MS * 9 / 8);
    assert_eq!(losses(&mut recovery, due - MS).0, []);
    assert_eq!(losses(&mut recovery, due).0, [0]);
    assert_eq!(recovery.loss_time(), None);
}

#[test]
fn losses_of_one_round_trip_are_one_event() {
    let mut recovery = sent(12);
    let mut events = vec![];
    for number in [5, 8, 11] {
        let mut progress = Progress::default();
        let now = 100 * MS + MS * number as u32;
        recovery.echoed(now, Recovery::wire_number(number), Duration::ZERO, false, &mut progress);
        recovery.detect_losses(now, Duration::ZERO, |_, lost| events.push(lost.begins_event));
    }
    assert_eq!(events.iter().filter(|begins| **begins).count(), 1, "{events:?}");
    assert!(events.len() > 5);
}

#[test]
fn a_late_arrival_shows_that_the_event_was_none_and_raises_the_threshold() {
    let mut recovery = sent(10);
    assert_eq!(echo(&mut recovery, 104 * MS, 4, false).0, [0, 1]);
    echo(&mut recovery, 105 * MS, 0, false);
    assert!(!recovery.take_spurious_event(), "one of two losses remains");
    echo(&mut recovery, 106 * MS, 1, false);
    assert!(recovery.take_spurious_event());
    assert!(!recovery.take_spurious_event(), "reported once");
    // It was four behind: five are the new threshold.
    assert_eq!(echo(&mut recovery, 107 * MS, 6, false).0, []);
    assert_eq!(echo(&mut recovery, 108 * MS, 7, false).0, [2]);
}

#[test]
fn a_copy_that_brought_nothing_new_shows_that_the_event_was_none() {
    let mut recovery = sent(4);
    let lost: Vec<u64> =
        [1, 2, 3].into_iter().flat_map(|n| echo(&mut recovery, 103 * MS, n, false).0).collect();
    assert_eq!(lost, [0]);
    let copy = send(&mut recovery, 104 * MS, 0, Some(0));
    echo(&mut recovery, 204 * MS, copy, true);
    assert!(recovery.take_spurious_event());
}

#[test]
fn a_range_that_comes_too_soon_after_a_copy_is_about_the_original() {
    let mut recovery = sent(10);
    assert_eq!(echo(&mut recovery, 103 * MS, 3, false).0, [0]);
    let copy = send(&mut recovery, 104 * MS, 0, Some(0));
    let mut progress = Progress::default();
    recovery.unit_arrived(120 * MS, copy, &mut progress);
    assert!(recovery.take_spurious_event());
    assert!(progress.any && progress.sample.is_none());
}

#[test]
fn a_probe_s_arrival_shows_the_loss_of_what_it_replaced() {
    let mut recovery = sent(1);
    recovery.supersede(0);
    assert_eq!(recovery.in_flight_bytes(), 0);
    let probe = send(&mut recovery, 300 * MS, 0, Some(0));
    assert_eq!(echo(&mut recovery, 400 * MS, probe, false).0, [0]);
    // Where the peer had it already, nothing was lost.
    let mut recovery = sent(1);
    recovery.supersede(0);
    let probe = send(&mut recovery, 300 * MS, 0, Some(0));
    assert_eq!(echo(&mut recovery, 400 * MS, probe, true).0, []);
}

#[test]
fn beyond_what_an_acknowledgment_could_list_nothing_is_known_to_be_lost() {
    let mut recovery = sent(10);
    recovery.set_horizon(2 * 1024);
    assert_eq!(echo(&mut recovery, 109 * MS, 9, false).0, [0, 1]);
    recovery.set_horizon(u64::MAX);
    assert_eq!(losses(&mut recovery, 110 * MS).0, [2, 3, 4, 5, 6]);
}

#[test]
fn congestion_persists_if_all_was_lost_over_three_timeouts() {
    // The time-out is 100 + 4 · 50 = 300 ms.
    for (gap, persistent) in [(850, false), (1_000, true)] {
        let mut recovery = Recovery::new();
        recovery.rtt.update(100 * MS, Duration::ZERO);
        send(&mut recovery, Duration::ZERO, 0, None);
        send(&mut recovery, MS * gap, 1, None);
        let last = send(&mut recovery, MS * gap + 50 * MS, 2, None);
        assert_eq!(
            echo(&mut recovery, MS * gap + 180 * MS, last, false),
            (vec![0, 1], persistent),
            "{gap} ms"
        );
    }
    // One that arrived between them ends the row.
    let mut recovery = Recovery::new();
    recovery.rtt.update(100 * MS, Duration::ZERO);
    for (number, at) in [0, 500, 1_000, 1_050].into_iter().enumerate() {
        send(&mut recovery, MS * at, number as u64, None);
    }
    echo(&mut recovery, 600 * MS, 1, false);
    assert!(!echo(&mut recovery, 1_180 * MS, 3, false).1);
}

#[test]
fn probe_timeouts_double_up_to_their_cap_and_start_anew_with_progress() {
    let mut recovery = sent(2);
    let timeout = |recovery: &Recovery| recovery.probe_timeout(25 * MS, Duration::from_secs(2));
    assert_eq!(timeout(&recovery), 325 * MS);
    recovery.timed_out();
    assert_eq!(timeout(&recovery), 650 * MS);
    (0..9).for_each(|_| _ = recovery.timed_out());
    assert_eq!(timeout(&recovery), Duration::from_secs(2));
    echo(&mut recovery, 100 * MS, 0, false);
    assert!(timeout(&recovery) < 650 * MS);
}

#[test]
fn numbers_on_the_wire_wrap_and_skip_zero() {
    assert_eq!([0, 1, WIRE_NUMBERS - 1, WIRE_NUMBERS].map(Recovery::wire_number), [1, 2, u32::MAX, 1]);
    let mut recovery = Recovery::new();
    (recovery.first, recovery.scan) = (WIRE_NUMBERS - 2, WIRE_NUMBERS - 2);
    for unit in 0..4 {
        let number = send(&mut recovery, MS, unit, None);
        assert_eq!(recovery.number(Recovery::wire_number(number)), Some(number));
    }
    assert_eq!((recovery.number(0), recovery.number(3), recovery.number(9)), (None, None, None));
}
