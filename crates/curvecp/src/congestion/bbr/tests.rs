use super::*;
use crate::recovery::RateSample;

const MS: Duration = Duration::from_millis(1);

/// A path without losses: a bottleneck of this rate, a round trip without queue, and whatever BBR lets in flight.
struct TestPath {
    bbr: Bbr,
    bytes_per_s: f64,
    rtt: Duration,
    now: Duration,
    delivered: u64,
}

impl TestPath {
    fn new(bytes_per_s: f64, rtt: Duration) -> Self {
        Self { bbr: Bbr::new(3, Duration::ZERO), bytes_per_s, rtt, now: Duration::ZERO, delivered: 0 }
    }

    /// One round trip: the window or the pace is sent, and acknowledged in ten parts.
    fn round(&mut self) {
        let bdp = self.bytes_per_s * self.rtt.as_secs_f64();
        let paced = self.bbr.pacing_rate * self.rtt.as_secs_f64();
        let in_flight = if paced > 0.0 { paced.min(self.bbr.window) } else { self.bbr.window };
        let rtt = Duration::from_secs_f64(self.rtt.as_secs_f64() * (in_flight / bdp).max(1.0));
        let prior = self.delivered;
        for part in 1..=10 {
            self.now += rtt / 10;
            let bytes = (in_flight / 10.0) as u64;
            self.delivered += bytes;
            let rate = RateSample {
                bytes_per_s: in_flight / rtt.as_secs_f64(),
                prior_delivered: prior,
                delivered: self.delivered,
                in_flight_at_send: in_flight as u64,
                lost: 0,
                application_limited: false,
            };
            let mut estimate = Rtt::default();
            estimate.update(rtt, Duration::ZERO);
            self.bbr.on_ack(&Ack {
                now: self.now,
                bytes,
                in_flight_before: in_flight as u64,
                in_flight: (in_flight * f64::from(10 - part) / 10.0) as u64,
                sample: Some(rtt),
                rtt: &estimate,
                rate: Some(rate),
                largest: 0,
                next: 0,
                window_limited: false,
                most_data: 1024,
                in_recovery: false,
            });
        }
    }

    fn gain(&self) -> f64 {
        self.bbr.pacing_rate / self.bytes_per_s
    }
}

#[test]
fn startup_finds_the_bandwidth_and_then_drains_and_probes() {
    let mut path = TestPath::new(12.5e6, 40 * MS);
    let mut phases = vec![];
    for _ in 0..300 {
        path.round();
        if phases.last() != Some(&path.bbr.phase) {
            phases.push(path.bbr.phase);
        }
    }
    let (bandwidth, rtt) = (path.bbr.model.max_bandwidth(), path.bbr.model.min_rtt().unwrap());
    assert!((bandwidth / 12.5e6 - 1.0).abs() < 0.01, "{bandwidth} bytes/s");
    assert_eq!(rtt, 40 * MS);
    assert_eq!(phases[0], Phase::Startup);
    for phase in [Phase::Cruise, Phase::Up, Phase::ProbeRtt { done: None }] {
        let same = |one: &Phase| std::mem::discriminant(one) == std::mem::discriminant(&phase);
        assert!(phases.iter().any(same), "{phase:?} in {phases:?}");
    }
    assert!((0.85..1.3).contains(&path.gain()), "paces at {} of the bandwidth", path.gain());
}

#[test]
fn the_window_is_twice_the_product_of_bandwidth_and_round_trip() {
    let mut path = TestPath::new(1.25e6, 100 * MS);
    for _ in 0..40 {
        path.round();
    }
    let bdp = 1.25e6 * 0.1;
    let expected = bdp * WINDOW_GAIN + path.bbr.model.extra_acked() + 3.0 * SEGMENT_BYTES as f64;
    assert!((path.bbr.window / expected - 1.0).abs() < 0.15, "{} for {expected}", path.bbr.window);
}

#[test]
fn losses_beyond_the_threshold_while_probing_lower_the_bound() {
    let mut path = TestPath::new(12.5e6, 40 * MS);
    while path.bbr.phase != Phase::Up {
        path.round();
    }
    let loss = |lost_since_send| Loss {
        now: path.now,
        bytes: SEGMENT_BYTES,
        in_flight: 400_000,
        in_flight_at_send: 600_000,
        lost_since_send,
        application_limited: false,
        begins_event: true,
        next: 0,
    };
    path.bbr.on_loss(&loss(11_000));
    assert_eq!((path.bbr.phase, path.bbr.model.inflight_high), (Phase::Up, f64::INFINITY), "below 2 %");
    path.bbr.on_loss(&loss(13_000));
    assert_eq!(path.bbr.phase, Phase::Down);
    assert!((598_000.0..=600_000.0).contains(&path.bbr.model.inflight_high));
    assert!(path.bbr.inflight_with_headroom() < 0.86 * path.bbr.model.inflight_high);
}
