#![no_main]
kendall_fuzz::program!(kendall_curve::fuzzing::TARGETS);
