//! The public face of experiments.

mod experiment_file;
