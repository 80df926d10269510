#![no_main]
kendall_fuzz::program!(kendall_transport::fuzzing::TARGETS);
