//! Nothing but tests of the workspace's structure, in `tests/it`. They link no other crate, so that they run in seconds.
