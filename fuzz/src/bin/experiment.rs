#![no_main]
kendall_fuzz::program!(kendall_experiment::fuzzing::TARGETS);
