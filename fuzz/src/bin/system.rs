#![no_main]
kendall_fuzz::program!(kendall_system::fuzzing::TARGETS);
