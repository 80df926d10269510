#![no_main]
kendall_fuzz::program!(kendall_hold::fuzzing::TARGETS);
