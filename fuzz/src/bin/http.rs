#![no_main]
kendall_fuzz::program!(kendall_http::fuzzing::TARGETS);
