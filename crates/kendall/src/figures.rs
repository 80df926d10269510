//! Figures of a report as files: SVG, and PNG of the same.

use std::fs;
use std::path::Path;

use anyhow::Context;
use kendall_report::figure::Named;

use crate::print;

/// Writes each figure as SVG and, with fonts to draw its text, as PNG.
///
/// # Errors
/// Fails where the folder cannot be written, and on a machine without fonts once all SVG files are there.
pub(crate) fn write(figures: &[Named], folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let drawings: Vec<(&Named, String)> =
        figures.iter().map(|named| (named, kendall_report::paper(&named.figure))).collect();
    for (named, svg) in &drawings {
        keep(&folder.join(format!("{}.svg", named.name)), svg.as_bytes())?;
    }
    #[cfg(feature = "png")]
    {
        let painter = kendall_report::Painter::new()?;
        for (named, svg) in &drawings {
            keep(&folder.join(format!("{}.png", named.name)), &painter.png(svg)?)?;
        }
    }
    print::note(&format!("Figures: {} in {}", figures.len(), folder.display()));
    Ok(())
}

fn keep(file: &Path, content: &[u8]) -> anyhow::Result<()> {
    kendall_files::write(file, content).with_context(|| format!("cannot write {}", file.display()))
}
