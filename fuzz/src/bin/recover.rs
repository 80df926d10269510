#![no_main]
kendall_fuzz::program!(kendall_recover::fuzzing::TARGETS);
