#![no_main]
kendall_fuzz::program!(kendall_station::fuzzing::TARGETS);
