//! The public face of the laboratory.

mod experiment_file;
