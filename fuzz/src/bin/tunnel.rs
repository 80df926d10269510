#![no_main]
kendall_fuzz::program!(kendall_tunnel::fuzzing::TARGETS);
