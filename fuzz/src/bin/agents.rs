#![no_main]
kendall_fuzz::program!(kendall_agents::fuzzing::TARGETS);
