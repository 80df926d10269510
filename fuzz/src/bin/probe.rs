#![no_main]
kendall_fuzz::program!(kendall_probe::fuzzing::TARGETS);
