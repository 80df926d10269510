//! The card of this machine compared with the portable engine, where there is a card.

use kendall_digest::gpu::{Gpu, GpuAbsent, Sums};
use kendall_digest::sha256::{Outcome, Targets, digest, scan};
use kendall_digest::{Engine, Interrupt};

#[test]
fn a_card_finds_all_answers_and_its_absence_is_reported() {
    for sums in [Sums::Multiplier, Sums::Adder] {
        match Gpu::find(sums) {
            Ok(gpu) => search_on(gpu),
            Err(GpuAbsent::Refused(why)) => panic!("the driver rejects the kernel: {why}"),
            Err(GpuAbsent::Wrong { name }) => panic!("{name} misses answers"),
            Err(GpuAbsent::Failed(why)) => panic!("{why}"),
            Err(absent) => eprintln!("not tried on a card: {absent}"),
        }
    }
}

fn search_on(mut gpu: Gpu) {
    let interrupt = Interrupt::new();
    let start = (9 << 32) - 100_000;
    for answer in [start, start + 99_999, start + 100_000, start + 199_999, start + 200_000] {
        let targets = Targets::new([digest(3), digest(answer)]).unwrap();
        let expected = scan(Engine::Portable, &targets, start..start + 200_000, &interrupt);
        assert_eq!(gpu.scan(&targets, start..start + 200_000, &interrupt), Ok(expected));
    }
    // Enough candidates for some false matches.
    let value = 3 << 34;
    let found = gpu.scan(&Targets::one(digest(value)), value - (1 << 34)..value + 1, &interrupt);
    assert_eq!(found, Ok(Outcome::Found { value, target: 0 }));

    // From another thread, and stopped from this one.
    let targets = Targets::one(digest(0));
    std::thread::scope(|scope| {
        let search = scope.spawn(|| gpu.scan(&targets, 1..u64::MAX, &interrupt));
        interrupt.raise();
        let outcome = search.join().unwrap();
        assert!(matches!(outcome, Ok(Outcome::Stopped { .. })), "{outcome:?}");
    });
}
