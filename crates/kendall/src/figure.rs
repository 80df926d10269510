//! The option to draw what a command found.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use kendall_report::picture::Picture;

/// Where to draw.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct Figure {
    /// Draw it as well: a picture that stands alone, as SVG
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    figure: Option<PathBuf>,
}

impl Figure {
    /// Draws, if that is asked for.
    ///
    /// # Errors
    /// Fails where the file cannot be written.
    pub(crate) fn draw(&self, picture: impl FnOnce() -> Picture) -> anyhow::Result<()> {
        let Some(path) = &self.figure else { return Ok(()) };
        kendall_files::write(path, picture().svg())
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Whether a figure is asked for.
    pub(crate) fn is_asked(&self) -> bool {
        self.figure.is_some()
    }
}
