use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::*;
use crate::plot::Numbers;

fn plot(law: ScaleLaw, range: (f64, f64), layers: Vec<Layer>) -> Plot {
    let axis = |title: &str| Axis::numbers(title, law, range);
    Plot { title: "a < b".to_owned(), x: axis("across"), y: axis("upwards"), layers, size: (480.0, 320.0) }
}

fn parsed(svg: &str) -> roxmltree::Document<'_> {
    roxmltree::Document::parse(svg).expect("well-formed")
}

/// The value of an attribute of every element with this class.
fn attributes(svg: &str, class: &str, name: &str) -> Vec<f64> {
    let tree = parsed(svg);
    let ours = tree.descendants().filter(|node| node.attribute("class") == Some(class));
    ours.map(|node| node.attribute(name).expect("has it").parse().expect("a number")).collect()
}

/// The numbers of a string of the data of a page.
fn decoded(text: &str) -> Vec<f64> {
    let (width, coded) = text.split_once(':').expect("names its width");
    let bytes = STANDARD.decode(coded).expect("base64");
    match width {
        "f32" => {
            bytes.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect()
        }
        "f64" => bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
        other => panic!("{other} is no width"),
    }
}

#[test]
fn data_and_drawing_carry_the_same_numbers() {
    let points = [(0.5, 7.0), (2.5, 1.25), (9.75, 3.125)];
    let layers = vec![Layer::new("measured", "measured", Marks::points(Marker::Disc, points))];
    for (law, range) in [(ScaleLaw::Linear, (0.0, 10.0)), (ScaleLaw::Log, (0.4, 12.0))] {
        let plot = plot(law, range, layers.clone());
        let data: serde_json::Value = serde_json::from_str(&plot.json()).expect("JSON");
        let layer = &data["layers"][0];
        let [x, y] = ["x", "y"].map(|name| decoded(layer[name].as_str().expect("numbers are a string")));
        assert_eq!(x.iter().copied().zip(y.iter().copied()).collect::<Vec<_>>(), points);
        let svg = plot.svg();
        let (cx, cy) = (attributes(&svg, "measured", "cx"), attributes(&svg, "measured", "cy"));
        // Two marks fix the scale; the third must lie where they say.
        let along = |values: &[f64], i: usize| match law {
            ScaleLaw::Log => (values[i] / values[0]).ln() / (values[2] / values[0]).ln(),
            _ => (values[i] - values[0]) / (values[2] - values[0]),
        };
        for (pixels, values) in [(&cx, &x), (&cy, &y)] {
            let there = (pixels[1] - pixels[0]) / (pixels[2] - pixels[0]);
            assert!((there - along(values, 1)).abs() < 2e-3, "{there}");
        }
    }
}

#[test]
fn a_measurement_beyond_the_range_stands_at_its_edge_with_its_value() {
    let far = [(5.0, 1234.0)];
    let layers = vec![
        Layer::new("measured", "measured", Marks::points(Marker::Disc, far)),
        Layer::new("simulated", "simulation model0", Marks::points(Marker::Square, far)),
    ];
    let svg = plot(ScaleLaw::Linear, (0.0, 10.0), layers).svg();
    assert_eq!(attributes(&svg, "measured rising", "cx").len(), 1);
    assert!(svg.contains(">1234</text>") && !svg.contains("simulation"), "{svg}");
}

#[test]
fn names_stand_in_place_of_numbers() {
    let mut plot = plot(ScaleLaw::Linear, (0.0, 3.0), vec![]);
    plot.x.names = vec![(1.0, "fifo & co".to_owned()), (2.0, "lifo".to_owned()), (9.0, "outside".to_owned())];
    let svg = plot.svg();
    let tree = parsed(&svg);
    let labels: Vec<&str> = tree
        .descendants()
        .filter(|node| {
            node.attribute("text-anchor") == Some("middle") && node.attribute("class") == Some("tick")
        })
        .filter_map(|node| node.text())
        .collect();
    assert_eq!(labels, ["fifo & co", "lifo"]);
}

#[test]
fn cells_that_look_alike_are_one_rectangle() {
    let (x_edges, y_edges) = (Numbers(vec![0.0, 1.0, 2.0, 3.0, 4.0]), Numbers(vec![0.0, 5.0, 10.0]));
    let counts = Numbers(vec![9.0, 9.0, 9.0, 0.0, 1.0, 9.0, 9.0, 1.0]);
    let heat = Layer::new("requests", "heat", Marks::Heat { x_edges, y_edges, counts });
    let svg = plot(ScaleLaw::Linear, (0.0, 10.0), vec![heat]).svg();
    let tree = parsed(&svg);
    let cells = |class: &str| {
        let path = tree.descendants().find(|node| node.attribute("class") == Some(class)).expect("drawn");
        path.attribute("d").expect("a path").matches('M').count()
    };
    assert_eq!((cells("heat shade5"), cells("heat shade0")), (2, 2));
}

/// Bars drawn beside each other stand on 0 and are as high as their values.
#[test]
fn bars_are_as_high_as_their_values() {
    let bars = Marks::Bars {
        from: Numbers(vec![0.0, 2.0]),
        to: Numbers(vec![2.0, 4.0]),
        y: Numbers(vec![10.0, 5.0]),
    };
    let svg = plot(ScaleLaw::Linear, (0.0, 10.0), vec![Layer::new("seen", "bars", bars)]).svg();
    let tree = parsed(&svg);
    let path = tree.descendants().find(|node| node.attribute("class") == Some("bars")).expect("drawn");
    let heights: Vec<f64> = path
        .attribute("d")
        .expect("a path")
        .split('v')
        .skip(1)
        .map(|rest| rest.split('h').next().expect("then back").parse().expect("a number"))
        .collect();
    assert!((heights[0] - 2.0 * heights[1]).abs() <= 0.1, "{heights:?}");
}

/// Any number at all: small, huge, none.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -20.0..20.0, 1 => any::<f64>(), 1 => Just(0.0), 1 => Just(f64::NAN), 1 => Just(f64::INFINITY)]
}

fn numbers() -> impl Strategy<Value = Numbers> {
    prop::collection::vec(number(), 0..12).prop_map(Numbers)
}

fn marks() -> impl Strategy<Value = Marks> {
    let shapes = prop::sample::select(vec![
        Marker::Disc,
        Marker::Ring,
        Marker::Rising,
        Marker::Dot,
        Marker::Square,
        Marker::Triangle,
        Marker::Diamond,
        Marker::Cross,
    ]);
    let which = prop::sample::select(vec![Which::X, Which::Y]);
    let two = || (numbers(), numbers());
    let three = || (numbers(), numbers(), numbers());
    prop_oneof![
        two().prop_map(|(x, y)| Marks::Line { x, y }),
        two().prop_map(|(x, y)| Marks::Step { x, y }),
        (shapes, two()).prop_map(|(shape, (x, y))| Marks::Points { shape, x, y }),
        three().prop_map(|(x, low, high)| Marks::Intervals { x, low, high }),
        three().prop_map(|(x, low, high)| Marks::Band { x, low, high }),
        three().prop_map(|(from, to, y)| Marks::Bars { from, to, y }),
        three().prop_map(|(x_edges, y_edges, counts)| Marks::Heat { x_edges, y_edges, counts }),
        three().prop_map(|(lane, from, to)| Marks::Spans { lane, from, to }),
        (which, number()).prop_map(|(axis, at)| Marks::Rule { axis, at, note: "a rule".to_owned() }),
        (number(), number()).prop_map(|(from, to)| Marks::Area { from, to, note: String::new() }),
    ]
}

fn axis() -> impl Strategy<Value = Axis> {
    let law = prop::sample::select(vec![ScaleLaw::Linear, ScaleLaw::Log, ScaleLaw::Tail]);
    let quantity = prop::sample::select(vec![Quantity::Time, Quantity::Share, Quantity::Number]);
    let names =
        prop_oneof![3 => Just(vec![]), 1 => Just(vec![(1.0, "one".to_owned()), (2.0, "two".to_owned())])];
    (law, quantity, number(), number(), names).prop_map(|(law, quantity, low, high, names)| Axis {
        title: "an axis".to_owned(),
        quantity,
        law,
        range: (low, high),
        names,
    })
}

/// All coordinates of an SVG: of attributes, and of paths and polylines point by point.
fn coordinates(svg: &str) -> Vec<(String, f64)> {
    let tree = parsed(svg);
    let mut all = Vec::new();
    for attribute in tree.descendants().flat_map(|node| node.attributes()) {
        let across = matches!(attribute.name(), "x" | "x1" | "x2" | "cx");
        if across || matches!(attribute.name(), "y" | "y1" | "y2" | "cy") {
            all.push((
                attribute.name()[..1].replace('c', if across { "x" } else { "y" }),
                attribute.value().parse().expect("a number"),
            ));
        }
        if matches!(attribute.name(), "d" | "points") {
            let moves = attribute.value().replace(['M', 'L'], " ");
            for pair in moves.split_whitespace() {
                let absolute = pair.split(|c: char| c.is_ascii_lowercase()).next().expect("a pair");
                let (x, y) = absolute.split_once(',').expect("a pair");
                all.push(("x".to_owned(), x.parse().expect("a number")));
                all.push(("y".to_owned(), y.parse().expect("a number")));
            }
        }
    }
    all
}

proptest! {
    /// Whatever the numbers: what is drawn is well-formed, finite and within the drawing.
    #[test]
    fn any_plot_draws_finite_coordinates_inside(x in axis(), y in axis(), marks in prop::collection::vec(marks(), 0..4)) {
        let layers = marks.into_iter().map(|marks| Layer::new("a layer", "measured", marks)).collect();
        let plot = Plot { title: "any".to_owned(), x, y, layers, size: (480.0, 320.0) };
        for (way, at) in coordinates(&plot.svg()) {
            let most = if way == "x" { 480.0 } else { 320.0 };
            prop_assert!((0.0..=most).contains(&at), "{} = {}", way, at);
        }
    }

    /// What a page holds reads back as it was, to a millionth of what it spans.
    #[test]
    fn numbers_read_back(values in numbers()) {
        let text: String = serde_json::from_value(serde_json::to_value(&values).unwrap()).unwrap();
        let (low, high) = values.0.iter().filter(|v| v.is_finite()).fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
        let back = decoded(&text);
        prop_assert_eq!(back.len(), values.0.len());
        for (ours, theirs) in values.0.iter().zip(back) {
            let same = ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan());
            prop_assert!(same || (ours - theirs).abs() <= 1e-6 * (high - low), "{} {}", ours, theirs);
        }
    }
}
