#![no_main]
kendall_fuzz::program!(kendall_reverse::fuzzing::TARGETS);
