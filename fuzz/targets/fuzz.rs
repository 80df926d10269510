//! One of the bodies of `tests/it/fuzzing` of curvecp and of the chat under libFuzzer; the environment's `FUZZ_TARGET` names it.

#![no_main]

#[path = "../../crates/chat/tests/it/fuzzing/mod.rs"]
mod chat;
#[path = "../../crates/curvecp/tests/it/fuzzing/mod.rs"]
mod fuzzing;
#[path = "../../crates/curvecp/tests/it/net/mod.rs"]
mod net;

use std::sync::LazyLock;

static TARGET: LazyLock<String> =
    LazyLock::new(|| std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target"));

libfuzzer_sys::fuzz_target!(|input: &[u8]| match chat::TARGETS.iter().find(|target| target.name == *TARGET) {
    Some(target) => (target.run)(input),
    None => fuzzing::run(&TARGET, input),
});
