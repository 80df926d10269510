#![no_main]
kendall_fuzz::program!(kendall_chat::fuzzing::TARGETS);
