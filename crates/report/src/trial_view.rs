//! Figures of one trial: along time, request by request, by law, by quantile.

mod laws;
mod over_time;
mod quantiles;
mod requests;
mod section;

pub(crate) use section::Section;
pub use section::{figures, first_of};
