//! The command line and the house as a whole, from outside: one program, so that all of it is linked once. Tests share a process, so
//! none changes its environment, its current directory or its signals.

mod chat;
mod check;
mod compare;
mod contest;
mod curve;
mod curve_copy;
mod curve_shell;
mod docs;
mod export;
mod first_hour;
mod first_hour_scripts;
mod fit;
mod hostile;
mod http;
mod lecture;
mod link;
mod link_relay;
mod load;
mod load_probe;
mod networks;
mod outputs;
mod peak;
mod plan;
mod prediction;
mod push;
mod recover;
mod selfcheck;
mod serve;
mod served;
mod solve;
mod textsearch;
mod transport;
mod trust;
mod web;
mod whole_run;
