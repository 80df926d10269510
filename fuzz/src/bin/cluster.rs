#![no_main]
kendall_fuzz::program!(kendall_cluster::fuzzing::TARGETS);
