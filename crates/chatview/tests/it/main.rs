//! The full-screen program of the chat from outside: what it draws, and whole programs on pseudo-terminals.

mod commands;
mod programs;
mod screens;
mod terminal;
