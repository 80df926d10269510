//! The command line and the house as a whole, from outside: one program, so that all of it is linked once. Tests share a process, so
//! none changes its environment, its current directory or its signals.

mod browser;
mod check;
mod compare;
mod docs;
mod export;
mod fit;
mod floors;
mod http;
mod link;
mod link_relay;
mod load;
mod load_probe;
mod module_cycles;
mod networks;
mod page;
mod peak;
mod plan;
mod push;
mod recover;
mod selfcheck;
mod serve;
mod served;
mod solve;
mod textsearch;
mod web;
mod whole_run;
