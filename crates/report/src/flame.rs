//! A flame graph: how CPU time is spread over stacks of functions, after Gregg, "The Flame Graph" (CACM 59/6, 2016).
//!
//! It reads without script: each frame that is wide enough shows its name, and each has a title that browsers show when it is pointed
//! at. Frames too narrow to be seen are left out, which keeps it small.

use std::collections::BTreeMap;

use crate::svg::Svg;
use kendall_stats::number::percent;

const WIDTH: f64 = 1180.0;
const ROW: f64 = 17.0;
/// A frame narrower than this cannot be seen, nor can what stands on it.
const NARROWEST: f64 = 0.4;
/// About the width of a character.
const CHARACTER: f64 = 6.6;
/// Deeper frames are left out.
const DEEPEST: usize = 96;

/// A function, and how many samples were in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// In itself.
    pub(crate) own: u64,
    /// In itself and in what it calls.
    pub(crate) all: u64,
}

/// The functions of folded stacks, those that used most by themselves first.
pub(crate) fn functions(folded: &[(String, u64)]) -> Vec<Function> {
    let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (stack, count) in folded {
        let frames: Vec<&str> = stack.split(';').collect();
        // A profile without stacks has threads only; otherwise the thread is not a function.
        let frames = if frames.len() > 1 { &frames[1..] } else { &frames[..] };
        for (at, frame) in frames.iter().enumerate() {
            // A function that calls itself is counted once.
            if !frames[..at].contains(frame) {
                sums.entry(frame).or_default().1 += count;
            }
        }
        if let Some(leaf) = frames.last() {
            sums.entry(leaf).or_default().0 += count;
        }
    }
    let function = |(name, (own, all)): (&str, (u64, u64))| Function { name: name.into(), own, all };
    let mut functions: Vec<Function> = sums.into_iter().map(function).collect();
    functions.sort_by(|a, b| (b.own, b.all, &a.name).cmp(&(a.own, a.all, &b.name)));
    functions
}

/// A frame with all that stands on it.
#[derive(Default)]
struct Node<'a> {
    count: u64,
    above: BTreeMap<&'a str, Self>,
}

impl<'a> Node<'a> {
    fn of(folded: &'a [(String, u64)]) -> Self {
        let mut root = Self::default();
        for (stack, count) in folded {
            root.count += count;
            let mut node = &mut root;
            for frame in stack.split(';').take(DEEPEST) {
                node = node.above.entry(frame).or_default();
                node.count += count;
            }
        }
        root
    }

    /// Rows that are wide enough to be seen.
    fn depth(&self, pixels: f64) -> usize {
        let seen = self.above.values().filter(|node| node.count as f64 * pixels >= NARROWEST);
        seen.map(|node| 1 + node.depth(pixels)).max().unwrap_or(0)
    }
}

/// The flame graph of folded stacks: the threads at the bottom, what they call above.
pub fn flame(folded: &[(String, u64)], title: &str) -> String {
    draw(folded, Svg::new, title)
}

/// The flame graph as a separate file.
pub fn standalone(folded: &[(String, u64)], title: &str) -> String {
    let svg = |width, height, title: &str| {
        let mut svg = Svg::standalone(width, height, title, crate::figure::STYLE);
        svg.text("title", (8.0, 18.0), crate::svg::Anchor::Start, title);
        svg
    };
    draw(folded, svg, title)
}

fn draw(folded: &[(String, u64)], new: impl Fn(f64, f64, &str) -> Svg, title: &str) -> String {
    let root = Node::of(folded);
    let pixels = WIDTH / root.count.max(1) as f64;
    let height = (root.depth(pixels).max(1) + 1) as f64 * ROW + 12.0;
    let mut svg = new(WIDTH, height, title);
    stand(&mut svg, &root, (0.0, height - ROW - 4.0), pixels, root.count);
    svg.finish()
}

/// Draws what stands on a node, from a place at the left.
fn stand(svg: &mut Svg, node: &Node<'_>, (mut x, y): (f64, f64), pixels: f64, all: u64) {
    for (name, above) in &node.above {
        let width = above.count as f64 * pixels;
        if width >= NARROWEST {
            let share = percent(above.count as f64 / all as f64);
            let count = above.count;
            svg.titled_rectangle(
                &format!("flame f{}", shade(name)),
                (x, y),
                (width - 0.3, ROW - 1.0),
                &format!("{name}: {share}, {count} samples"),
            );
            let characters = ((width - 6.0) / CHARACTER) as usize;
            if characters >= 4 {
                svg.text(
                    "frame",
                    (x + 3.0, y + 12.0),
                    crate::svg::Anchor::Start,
                    &shortened(name, characters),
                );
            }
            stand(svg, above, (x, y - ROW), pixels, all);
        }
        x += width;
    }
}

/// One of four shades, the same for the same name everywhere.
fn shade(name: &str) -> u32 {
    name.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte))) >> 8 & 3
}

/// As much of a name as fits: without the part in angle brackets, then only the end of a path, its most specific part.
fn shortened(name: &str, characters: usize) -> String {
    let fits = |text: &str| text.chars().count() <= characters;
    if fits(name) {
        return name.to_owned();
    }
    let plain = without_generics(name).unwrap_or_else(|| name.to_owned());
    let segments: Vec<&str> = plain.split("::").collect();
    let ends = (0..segments.len()).map(|from| segments[from..].join("::"));
    ends.clone().find(|end| fits(end)).unwrap_or_else(|| {
        let last = segments.last().copied().unwrap_or_default();
        last.chars().take(characters - 1).chain(['…']).collect()
    })
}

/// A name without its parameters: `poll` of `poll<A, B>`, and `Vec::push` of `<Vec<u8> as Sink>::push`. `None` where the brackets
/// do not pair, as in the names of C++'s operators.
fn without_generics(name: &str) -> Option<String> {
    let mut plain = String::new();
    let mut depth = 0u32;
    let mut before = ' ';
    // Of a qualified path, the type is kept and the trait is not.
    let mut is_type = name.starts_with('<');
    let mut rest = name;
    while let Some(next) = rest.chars().next() {
        match next {
            '<' => depth += 1,
            // Not the arrow of a function's type.
            '>' if before != '-' => {
                depth = depth.checked_sub(1)?;
                is_type = is_type && depth > 0;
            }
            _ if depth == 0 => plain.push(next),
            _ if depth == 1 && is_type => {
                is_type = !rest.starts_with(" as ");
                plain.extend(is_type.then_some(next));
            }
            _ => {}
        }
        before = next;
        rest = &rest[next.len_utf8()..];
    }
    let plain = plain.replace("::::", "::");
    let plain = plain.trim_end_matches("::");
    (depth == 0 && !plain.is_empty()).then(|| plain.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks() -> Vec<(String, u64)> {
        [
            ("worker;main;serve;parse", 10),
            ("worker;main;serve;search;search", 85),
            ("worker;main;serve", 4),
            ("accept;main", 1),
        ]
        .map(|(stack, count)| (stack.to_owned(), count))
        .to_vec()
    }

    #[test]
    fn a_function_is_counted_by_itself_and_once_with_what_it_calls() {
        let functions = functions(&stacks());
        let of = |name: &str| functions.iter().find(|function| function.name == name).unwrap();
        assert_eq!(functions[0].name, "search");
        assert_eq!((of("search").own, of("search").all), (85, 85));
        assert_eq!((of("serve").own, of("serve").all), (4, 99));
        assert_eq!(of("main").all, 100);
        assert_eq!(functions.iter().map(|function| function.own).sum::<u64>(), 100);
    }

    #[test]
    fn short_names_are_of_the_function_and_not_of_its_parameters() {
        for (name, plain) in [
            ("poll<tokio::Task<T>, alloc::Global>", "poll"),
            ("<alloc::vec::Vec<u8> as std::io::Write>::flush", "alloc::vec::Vec::flush"),
            ("<std::thread::Thread>::new::start", "std::thread::Thread::new::start"),
            ("catch::do_call::<fn() -> Result<A, B>, i32>", "catch::do_call"),
            ("core::FnOnce<(), Output = ()>::call", "core::FnOnce::call"),
        ] {
            assert_eq!(without_generics(name).as_deref(), Some(plain), "{name}");
        }
        assert_eq!(without_generics("Point::operator<"), None);
        assert_eq!(without_generics("Point::operator>"), None);
        assert_eq!(shortened("serve::run<A, B<C>>", 12), "serve::run");
        assert_eq!(shortened("serve::run<A, B<C>>", 5), "run");
        assert_eq!(shortened("serve::long_name_of_it", 6), "long_…");
    }

    #[test]
    fn widths_are_shares_and_every_frame_has_a_title() {
        let svg = flame(&stacks(), "a server");
        let tree = roxmltree::Document::parse(&svg).expect("well-formed");
        let frames: Vec<_> = tree.descendants().filter(|node| node.has_tag_name("rect")).collect();
        let of = |title: &str| {
            let titled =
                |node: &&roxmltree::Node<'_, '_>| node.children().any(|child| child.text() == Some(title));
            let frame = frames.iter().find(|node| titled(node)).unwrap_or_else(|| panic!("{title} in {svg}"));
            frame.attribute("width").unwrap().parse::<f64>().unwrap()
        };
        assert!((of("search: 85 %, 85 samples") / WIDTH - 0.85).abs() < 0.001);
        assert!((of("accept: 1.0 %, 1 samples") / WIDTH - 0.01).abs() < 0.001);
        assert_eq!(frames.len(), 8);
    }

    #[test]
    fn hostile_names_and_no_samples_make_well_formed_drawings() {
        let hostile = [("<a>&\"';</svg>;\u{0}x".to_owned(), 3), (String::new(), 1)];
        for folded in [&hostile[..], &[]] {
            for svg in [flame(folded, "<"), standalone(folded, "<")] {
                roxmltree::Document::parse(&svg).expect("well-formed");
            }
        }
    }

    #[test]
    fn a_large_profile_makes_a_small_drawing() {
        let stack = |at: u64| (format!("worker;main;f{};g{at}", at % 300), 1 + at % 3);
        let folded: Vec<_> = (0..50_000).map(stack).collect();
        let bytes = flame(&folded, "large").len();
        assert!(bytes < 200_000, "{bytes}");
    }
}
