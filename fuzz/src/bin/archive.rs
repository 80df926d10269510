#![no_main]
kendall_fuzz::program!(kendall_archive::fuzzing::TARGETS);
