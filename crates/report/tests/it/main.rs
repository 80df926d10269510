//! The drawings of analysed runs, read back.

mod figures;
mod findings;
mod formats;
mod limits;
mod link;
mod page;
mod renderings;
mod replay;
mod resources;
#[path = "../sample/mod.rs"]
mod sample;
mod traffic;
mod trial_views;
