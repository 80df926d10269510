#![no_main]
kendall_fuzz::program!(kendall_record::fuzzing::TARGETS);
