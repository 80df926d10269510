//! A drawing as a PDF of one page: its paths, colours and opacities. Text is outlines, so that it looks the same everywhere.
//!
//! Gradients, images and clips are left out: no drawing of ours has any but the clip at the edge of a panel, within which it stays.

use std::collections::BTreeMap;

use pdf_writer::types::{LineCapStyle, LineJoinStyle};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref};
use resvg::tiny_skia::{PathSegment, Point, Transform};
use resvg::usvg::{FillRule, Group, LineCap, LineJoin, Node, Opacity, Paint, PaintOrder, Path, Tree};

/// A pixel is a 96th of an inch, a point a 72nd.
const POINTS: f32 = 0.75;
/// How hard the page is compressed, up to 10.
const EFFORT: u8 = 6;

/// The file.
pub(super) fn of(tree: &Tree) -> Vec<u8> {
    let (width, height) = (tree.size().width() * POINTS, tree.size().height() * POINTS);
    let mut page = Page { content: Content::new(), opacities: BTreeMap::new() };
    page.content.transform([POINTS, 0.0, 0.0, -POINTS, 0.0, height]);
    page.group(tree.root(), Transform::identity());
    let Page { content, opacities } = page;
    let [catalog, pages, sheet, stream] = [1, 2, 3, 4].map(Ref::new);
    let state = |place: usize| Ref::new(5 + place as i32);
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([sheet]).count(1);
    let mut written = pdf.page(sheet);
    written.media_box(Rect::new(0.0, 0.0, width, height)).parent(pages).contents(stream);
    let mut resources = written.resources();
    let mut states = resources.ext_g_states();
    for (place, name) in opacities.values().enumerate() {
        states.pair(Name(name.as_bytes()), state(place));
    }
    states.finish();
    resources.finish();
    written.finish();
    for (place, per_mille) in opacities.keys().enumerate() {
        let opacity = f32::from(*per_mille) / 1000.0;
        pdf.ext_graphics(state(place)).non_stroking_alpha(opacity).stroking_alpha(opacity);
    }
    let content = miniz_oxide::deflate::compress_to_vec_zlib(&content.finish(), EFFORT);
    pdf.stream(stream, &content).filter(Filter::FlateDecode);
    pdf.finish()
}

struct Page {
    content: Content,
    /// The opacities in use, in thousandths, by the names of their states.
    opacities: BTreeMap<u16, String>,
}

impl Page {
    fn group(&mut self, group: &Group, placed: Transform) {
        let placed = placed.pre_concat(group.transform());
        for node in group.children() {
            match node {
                Node::Group(group) => self.group(group, placed),
                Node::Path(path) => self.path(path, placed),
                Node::Text(text) => self.group(text.flattened(), placed),
                Node::Image(_) => {}
            }
        }
    }

    fn path(&mut self, path: &Path, placed: Transform) {
        if !path.is_visible() {
            return;
        }
        match path.paint_order() {
            PaintOrder::FillAndStroke => {
                self.fill(path, placed);
                self.stroke(path, placed);
            }
            PaintOrder::StrokeAndFill => {
                self.stroke(path, placed);
                self.fill(path, placed);
            }
        }
    }

    fn fill(&mut self, path: &Path, placed: Transform) {
        let Some(fill) = path.fill() else { return };
        let Some((r, g, b)) = colour(fill.paint()) else { return };
        self.begin(fill.opacity());
        self.content.set_fill_rgb(r, g, b);
        self.trace(path, placed);
        match fill.rule() {
            FillRule::NonZero => self.content.fill_nonzero(),
            FillRule::EvenOdd => self.content.fill_even_odd(),
        };
        self.content.restore_state();
    }

    fn stroke(&mut self, path: &Path, placed: Transform) {
        let Some(stroke) = path.stroke() else { return };
        let Some((r, g, b)) = colour(stroke.paint()) else { return };
        let (across, along) = placed.get_scale();
        let scale = (across * along).abs().sqrt();
        self.begin(stroke.opacity());
        self.content
            .set_stroke_rgb(r, g, b)
            .set_line_width(stroke.width().get() * scale)
            .set_miter_limit(stroke.miterlimit().get())
            .set_line_cap(match stroke.linecap() {
                LineCap::Butt => LineCapStyle::ButtCap,
                LineCap::Round => LineCapStyle::RoundCap,
                LineCap::Square => LineCapStyle::ProjectingSquareCap,
            })
            .set_line_join(match stroke.linejoin() {
                LineJoin::Miter | LineJoin::MiterClip => LineJoinStyle::MiterJoin,
                LineJoin::Round => LineJoinStyle::RoundJoin,
                LineJoin::Bevel => LineJoinStyle::BevelJoin,
            });
        if let Some(dashes) = stroke.dasharray() {
            let dashes = dashes.iter().map(|dash| dash * scale);
            self.content.set_dash_pattern(dashes, stroke.dashoffset() * scale);
        }
        self.trace(path, placed);
        self.content.stroke();
        self.content.restore_state();
    }

    /// What is drawn until the state is restored has this opacity.
    fn begin(&mut self, opacity: Opacity) {
        self.content.save_state();
        let per_mille = (opacity.get() * 1000.0).round() as u16;
        if per_mille < 1000 {
            let name = self.opacities.entry(per_mille).or_insert_with(|| format!("a{per_mille}"));
            self.content.set_parameters(Name(name.as_bytes()));
        }
    }

    fn trace(&mut self, path: &Path, placed: Transform) {
        let at = |mut point: Point| {
            placed.map_point(&mut point);
            point
        };
        let mut last = Point::zero();
        for segment in path.data().segments() {
            match segment {
                PathSegment::MoveTo(to) => {
                    let to = at(to);
                    self.content.move_to(to.x, to.y);
                    last = to;
                }
                PathSegment::LineTo(to) => {
                    let to = at(to);
                    self.content.line_to(to.x, to.y);
                    last = to;
                }
                // PDF has cubic curves only.
                PathSegment::QuadTo(control, to) => {
                    let (control, to) = (at(control), at(to));
                    let third = |end: Point| {
                        Point::from_xy(
                            end.x + (control.x - end.x) * 2.0 / 3.0,
                            end.y + (control.y - end.y) * 2.0 / 3.0,
                        )
                    };
                    self.cubic(third(last), third(to), to);
                    last = to;
                }
                PathSegment::CubicTo(first, second, to) => {
                    let to = at(to);
                    self.cubic(at(first), at(second), to);
                    last = to;
                }
                PathSegment::Close => {
                    self.content.close_path();
                }
            }
        }
    }

    fn cubic(&mut self, first: Point, second: Point, to: Point) {
        self.content.cubic_to(first.x, first.y, second.x, second.y, to.x, to.y);
    }
}

/// What is painted with, as shares of red, green and blue.
fn colour(paint: &Paint) -> Option<(f32, f32, f32)> {
    match paint {
        Paint::Color(colour) => {
            let share = |part: u8| f32::from(part) / 255.0;
            Some((share(colour.red), share(colour.green), share(colour.blue)))
        }
        Paint::LinearGradient(_) | Paint::RadialGradient(_) | Paint::Pattern(_) => None,
    }
}
