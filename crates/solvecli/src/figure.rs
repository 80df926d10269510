//! The options to draw what a command found.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use kendall_report::picture::{Picture, Style};

/// The destination of a drawing, and its style.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Draw a figure as well; the name ends in .svg, .png or .pdf
    #[arg(long, value_name = "FILE", help_heading = "Output", value_parser = file)]
    figure: Option<File>,

    /// The medium of the figure
    #[arg(
        long,
        value_name = "STYLE",
        default_value = "screen",
        requires = "figure",
        help_heading = "Output"
    )]
    style: Purpose,
}

/// A file and its format.
#[derive(Clone, Debug, PartialEq)]
struct File {
    path: PathBuf,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Svg,
    Png,
    Pdf,
}

/// The purpose of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Purpose {
    /// Print: on white, with serifs
    Paper,
    /// A screen: SVG light or dark as its owner likes it
    #[default]
    Screen,
    /// A lecture: on white, letters and lines larger
    Slides,
}

fn file(text: &str) -> Result<File, String> {
    let path = PathBuf::from(text);
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_lowercase();
    let format = match ending.as_str() {
        "svg" => Format::Svg,
        "png" => Format::Png,
        "pdf" => Format::Pdf,
        // A device or a pipe has no ending.
        "" if path.metadata().is_ok_and(|it| !it.is_file()) => Format::Svg,
        _ => return Err("a figure's name ends in .svg, .png or .pdf".into()),
    };
    Ok(File { path, format })
}

impl Figure {
    /// Draws the figure, if the user requested it.
    ///
    /// # Errors
    /// Fails where the file cannot be written, and on a machine without fonts where it is no SVG.
    pub fn draw(&self, picture: impl FnOnce() -> Picture) -> anyhow::Result<()> {
        self.try_draw(|| Ok(picture()))
    }

    /// Draws a picture as [`draw`](Self::draw) does, if there is one.
    ///
    /// # Errors
    /// As [`draw`](Self::draw), and where there is no picture.
    pub fn try_draw(&self, picture: impl FnOnce() -> anyhow::Result<Picture>) -> anyhow::Result<()> {
        let Some(File { path, format }) = &self.figure else { return Ok(()) };
        let style = match self.style {
            Purpose::Paper => Style::Paper,
            Purpose::Screen => Style::Screen,
            Purpose::Slides => Style::Slides,
        };
        let picture = picture()?;
        let bytes = match format {
            Format::Svg => picture.svg(style).into_bytes(),
            Format::Png | Format::Pdf => painted(&picture.in_print(style), *format)?,
        };
        write(path, &bytes)
    }

    /// Whether the user requested a figure.
    pub fn is_asked(&self) -> bool {
        self.figure.is_some()
    }
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    kendall_files::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(feature = "png")]
fn painted(svg: &str, format: Format) -> anyhow::Result<Vec<u8>> {
    let painter = kendall_report::Painter::new()?;
    Ok(if format == Format::Pdf { painter.pdf(svg)? } else { painter.png(svg)? })
}

#[cfg(not(feature = "png"))]
fn painted(_: &str, _: Format) -> anyhow::Result<Vec<u8>> {
    anyhow::bail!(
        "this kendall was built without its feature png, and draws SVG only; name a file that ends in .svg"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_says_how_a_figure_is_drawn() {
        let format = |name: &str| file(name).map(|file| file.format);
        assert_eq!(format("a/b.SVG"), Ok(Format::Svg));
        assert_eq!(format("lecture.pdf"), Ok(Format::Pdf));
        for name in ["figure", "figure.jpeg", ".svg", "figure."] {
            assert!(format(name).unwrap_err().contains(".svg, .png or .pdf"), "{name}");
        }
    }
}
