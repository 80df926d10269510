#![no_main]
kendall_fuzz::program!(kendall_push::fuzzing::TARGETS);
