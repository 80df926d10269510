//! One of the bodies of curvecp's `tests/it/fuzzing` under libFuzzer; the environment's `FUZZ_TARGET` names it.

#![no_main]

#[path = "../../crates/curvecp/tests/it/fuzzing/mod.rs"]
mod fuzzing;
#[path = "../../crates/curvecp/tests/it/net/mod.rs"]
mod net;

use std::sync::LazyLock;

static TARGET: LazyLock<String> =
    LazyLock::new(|| std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target"));

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::run(&TARGET, input));
