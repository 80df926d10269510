#![no_main]
kendall_fuzz::program!(kendall_textsearch::fuzzing::TARGETS);
