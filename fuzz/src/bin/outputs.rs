#![no_main]
kendall_fuzz::program!(kendall_outputs::fuzzing::TARGETS);
