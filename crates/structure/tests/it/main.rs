//! What holds for the sources as such.

mod adding;
mod doctests;
mod floors;
mod fuzz_targets;
mod licences;
mod module_cycles;
mod plain_words;
mod type_names;
mod versions;
