#![no_main]
kendall_fuzz::program!(kendall_remote::fuzzing::TARGETS);
