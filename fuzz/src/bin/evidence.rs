#![no_main]
kendall_fuzz::program!(kendall_evidence::fuzzing::TARGETS);
