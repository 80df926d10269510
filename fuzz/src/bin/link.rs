#![no_main]
kendall_fuzz::program!(kendall_link::fuzzing::TARGETS);
