#![no_main]
kendall_fuzz::program!(kendall_linkmodel::fuzzing::TARGETS);
