//! PNG and PDF of an SVG, with the fonts of the machine.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::pdf;

/// Pixels of the image for each of the drawing: 288 to the inch.
pub(super) const SCALE: f64 = 3.0;
/// No side of an image is longer.
const MOST: f64 = 16_000.0;
/// Fonts with serifs, the best first.
const SERIFS: [&str; 4] = ["Liberation Serif", "Times New Roman", "DejaVu Serif", "Noto Serif"];

/// Fonts without, likewise.
const SANS: [&str; 4] = ["Liberation Sans", "Arial", "DejaVu Sans", "Noto Sans"];

/// The reason why there is no image.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum PaintError {
    #[error(
        "this machine has no fonts, so figures cannot be drawn as PNG or PDF; install some (on Debian: apt-get install fonts-liberation), \
         or take the SVG files"
    )]
    NoFonts,
    #[error("a figure of {width:.0} × {height:.0} pixels is too large for a PNG; take its SVG file")]
    TooLarge { width: f64, height: f64 },
    #[error("the figure cannot be drawn: {0}")]
    Drawing(String),
}

/// Draws SVG as PNG or PDF; holds the fonts, which take a while to find.
pub struct Painter {
    options: Options<'static>,
}

impl Painter {
    /// Finds the fonts of the machine.
    ///
    /// # Errors
    /// Fails on a machine without fonts.
    pub fn new() -> Result<Self, PaintError> {
        let mut options = Options::default();
        let fonts = options.fontdb_mut();
        fonts.load_system_fonts();
        let has =
            |name: &str| fonts.faces().any(|face| face.families.iter().any(|(family, _)| family == name));
        let first = fonts.faces().find_map(|face| face.families.first()).map(|(family, _)| family.clone());
        let serif = SERIFS.into_iter().find(|name| has(name)).map(str::to_owned);
        let serif = serif.or(first).ok_or(PaintError::NoFonts)?;
        if let Some(sans) = SANS.into_iter().find(|name| has(name)) {
            fonts.set_sans_serif_family(sans);
        } else {
            fonts.set_sans_serif_family(&serif);
        }
        fonts.set_serif_family(&serif);
        options.font_family = serif;
        Ok(Self { options })
    }

    /// The image of a drawing.
    ///
    /// # Errors
    /// Fails on what is no SVG, and where the image would be too large.
    pub fn png(&self, svg: &str) -> Result<Vec<u8>, PaintError> {
        let tree = self.tree(svg)?;
        let (width, height) =
            (SCALE * f64::from(tree.size().width()), SCALE * f64::from(tree.size().height()));
        if width > MOST || height > MOST {
            return Err(PaintError::TooLarge { width, height });
        }
        let mut image = Pixmap::new(width.ceil() as u32, height.ceil() as u32)
            .ok_or(PaintError::TooLarge { width, height })?;
        resvg::render(&tree, Transform::from_scale(SCALE as f32, SCALE as f32), &mut image.as_mut());
        image.encode_png().map_err(|why| PaintError::Drawing(why.to_string()))
    }

    /// Paints a PDF of one page, in which text is outlines.
    ///
    /// # Errors
    /// Fails on what is no SVG.
    pub fn pdf(&self, svg: &str) -> Result<Vec<u8>, PaintError> {
        Ok(pdf::of(&self.tree(svg)?))
    }

    fn tree(&self, svg: &str) -> Result<Tree, PaintError> {
        Tree::from_str(svg, &self.options).map_err(|why| PaintError::Drawing(why.to_string()))
    }
}
