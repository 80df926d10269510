//! One of the bodies of `tests/it/fuzzing` of curvecp, of the chat and of talks, or one of remote's, under libFuzzer; the environment's
//! `FUZZ_TARGET` names it.

#![no_main]

#[path = "../../crates/chat/tests/it/fuzzing/mod.rs"]
mod chat;
#[path = "../../crates/curvecp/tests/it/fuzzing/mod.rs"]
mod fuzzing;
#[path = "../../crates/curvecp/tests/it/net/mod.rs"]
mod net;
#[allow(dead_code, reason = "each program uses a part")]
#[path = "../../crates/remote/tests/it/fuzzing.rs"]
mod remote;
#[allow(dead_code, reason = "each program uses a part")]
#[path = "../../crates/remote/tests/it/shell/fuzzing.rs"]
mod shell;
#[path = "../../crates/talk/tests/it/fuzzing/mod.rs"]
mod talk;

use std::sync::LazyLock;

static TARGET: LazyLock<String> =
    LazyLock::new(|| std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target"));

libfuzzer_sys::fuzz_target!(|input: &[u8]| match TARGET.as_str() {
    "copy" => remote::run(input),
    "shell" => shell::run(input),
    target => {
        let of_chat = chat::TARGETS.iter().map(|target| (target.name, target.run));
        let of_talk = talk::TARGETS.iter().map(|target| (target.name, target.run));
        match of_chat.chain(of_talk).find(|(name, _)| *name == target) {
            Some((_, run)) => run(input),
            None => fuzzing::run(target, input),
        }
    }
});
