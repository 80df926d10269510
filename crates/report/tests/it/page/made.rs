//! Pages made by hand, with plots whose data a test knows to the last digit.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kendall_report::{figure, script};
use serde_json::{Value, json};

const PAGE_STYLE: &str = include_str!("../../../templates/page.css");

/// A whole page of these figures.
pub(crate) fn page(figures: &str) -> String {
    format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <meta name=color-scheme content='light dark'><meta http-equiv=Content-Security-Policy content=\"{}\">\
         <title>made</title><style>{PAGE_STYLE}{}{}</style></head><body><main>{figures}</main><script>{}</script></body></html>",
        script::POLICY,
        figure::STYLE,
        script::STYLE,
        script::SCRIPT
    )
}

/// A figure of plots, with a legend of their labels.
pub(crate) fn figure(plots: &[Value]) -> String {
    let mut labels: Vec<&str> = Vec::new();
    for layer in plots.iter().flat_map(|plot| plot["layers"].as_array().unwrap()) {
        let label = layer["label"].as_str().unwrap();
        if !label.is_empty() && !labels.contains(&label) {
            labels.push(label);
        }
    }
    let legend: String =
        labels.iter().map(|label| format!("<li><svg><title>{label}</title></svg>{label}</li>")).collect();
    let panels: String = plots.iter().map(panel).collect();
    format!(
        "<section><figure class=chart><h2>made</h2><ul class=legend>{legend}</ul><div class=panels>{panels}</div></figure></section>"
    )
}

fn panel(plot: &Value) -> String {
    let (width, height) = (&plot["size"][0], &plot["size"][1]);
    format!(
        "<div class=panel><svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' \
         role=img><title>{}</title><rect class='shade4' x='10' y='10' width='100' height='50'/></svg>\
         <script type='application/json' class='plot'>{}</script></div>",
        plot["title"].as_str().unwrap(),
        plot.to_string().replace('<', "\\u003c")
    )
}

/// A plot over x from 0 to 10 and y from 0 to 1, plain numbers.
pub(crate) fn plot(title: &str, layers: &[Value]) -> Value {
    json!({"title": title, "x": axis((0.0, 10.0)), "y": axis((0.0, 1.0)), "layers": layers, "size": [420, 260]})
}

/// An axis of plain numbers.
pub(crate) fn axis(range: (f64, f64)) -> Value {
    json!({"title": "value [u]", "quantity": "number", "law": "linear", "range": range})
}

/// A layer; `marks` has the rest of its members.
pub(crate) fn layer(label: &str, class: &str, mark: &str, marks: Value) -> Value {
    let mut layer = marks;
    layer["label"] = json!(label);
    layer["class"] = json!(class);
    layer["mark"] = json!(mark);
    layer
}

/// A list of numbers as plots have it.
pub(crate) fn numbers(values: impl IntoIterator<Item = f64>) -> String {
    let bytes: Vec<u8> = values.into_iter().flat_map(f64::to_le_bytes).collect();
    format!("f64:{}", STANDARD.encode(bytes))
}

/// A list of numbers in half the room.
pub(crate) fn short_numbers(values: impl IntoIterator<Item = f32>) -> String {
    let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
    format!("f32:{}", STANDARD.encode(bytes))
}
