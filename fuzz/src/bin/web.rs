#![no_main]
kendall_fuzz::program!(kendall_web::fuzzing::TARGETS);
