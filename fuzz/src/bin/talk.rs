#![no_main]
kendall_fuzz::program!(kendall_talk::fuzzing::TARGETS);
