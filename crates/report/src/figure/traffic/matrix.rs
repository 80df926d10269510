//! The matrix of competition: the share of each kind against each other kind, as cells with their numbers.

use kendall_analysis::Table;
use kendall_analysis::traffic::Matrix;
use kendall_stats::number::{NONE, percent, significant};

use crate::figure::{Figure, Key, Panel};
use crate::svg::{Anchor, Svg};

const CELL: (f64, f64) = (96.0, 52.0);
/// Room for the names of the rows, and of the columns.
const EDGE: (f64, f64) = (110.0, 58.0);
/// A letter is about so wide.
const LETTER: f64 = 7.0;
const SHADES: usize = 6;

/// The share of each row's kind against each column's with Jain's index, as a figure; `None` without kinds.
pub fn matrix(matrix: &Matrix) -> Option<Figure> {
    if matrix.kinds.is_empty() {
        return None;
    }
    let key = |at: usize| {
        let mut svg = Svg::new(34.0, 16.0, "");
        svg.rectangle(&format!("share{at}"), (1.0, 2.0), 32.0, 12.0);
        let (low, high) = (at as f64 / SHADES as f64, (at + 1) as f64 / SHADES as f64);
        Key { svg: svg.finish(), label: format!("{} to {}", percent(low), percent(high)) }
    };
    Some(Figure {
        title: "Every kind beside every kind".to_owned(),
        caption: "The share of the goodput that the row's kind gets, beside one flow of the column's kind over the same link. Below it \
                  is Jain's index of both: 1 if they get the same, 0.5 if one gets everything. On the diagonal both flows are of one \
                  kind; their distance from 50 % shows how uneven a single run of equals is."
            .to_owned(),
        legend: (0..SHADES).map(key).collect(),
        panels: vec![Panel { title: String::new(), svg: drawing(matrix), data: String::new() }],
        table: table(matrix),
    })
}

fn shade(share: f64) -> usize {
    ((share * SHADES as f64) as usize).min(SHADES - 1)
}

fn drawing(matrix: &Matrix) -> String {
    let Matrix { kinds, share, jain } = matrix;
    let longest = kinds.iter().map(|kind| kind.chars().count()).max().unwrap_or(0) as f64;
    let left = EDGE.0.max(longest * LETTER + 20.0);
    let n = kinds.len() as f64;
    let title = format!("Shares of the goodput: each of {} kinds beside each", kinds.len());
    let mut svg = Svg::new(left + n * CELL.0 + 8.0, EDGE.1 + n * CELL.1 + 8.0, &title);
    svg.text("title", (left + n * CELL.0 / 2.0, 18.0), Anchor::Middle, "beside");
    svg.text("title", (8.0, EDGE.1 - 12.0), Anchor::Start, "share of");
    for (column, kind) in kinds.iter().enumerate() {
        let x = left + (column as f64 + 0.5) * CELL.0;
        svg.text("title", (x, EDGE.1 - 12.0), Anchor::Middle, kind);
    }
    for (row, kind) in kinds.iter().enumerate() {
        let y = EDGE.1 + row as f64 * CELL.1;
        svg.text("title", (left - 12.0, y + CELL.1 / 2.0 + 4.0), Anchor::End, kind);
        for (column, other) in kinds.iter().enumerate() {
            let x = left + column as f64 * CELL.0;
            let Some(share) = share[row][column] else {
                svg.text("tick", (x + CELL.0 / 2.0, y + CELL.1 / 2.0 + 4.0), Anchor::Middle, NONE);
                continue;
            };
            let index = jain[row][column].map_or_else(|| NONE.to_owned(), |index| significant(index, 3));
            let words = format!("{kind} beside {other}: {}, Jain's index {index}", percent(share));
            let size = (CELL.0 - 2.0, CELL.1 - 2.0);
            svg.titled_rectangle(&format!("share{}", shade(share)), (x + 1.0, y + 1.0), size, &words);
            svg.text("title", (x + CELL.0 / 2.0, y + 23.0), Anchor::Middle, &percent(share));
            svg.text("tick", (x + CELL.0 / 2.0, y + 41.0), Anchor::Middle, &format!("Jain {index}"));
        }
    }
    svg.finish()
}

fn table(matrix: &Matrix) -> Table {
    let Matrix { kinds, share, jain } = matrix;
    let head = ["share of".to_owned()].into_iter().chain(kinds.iter().map(|kind| format!("beside {kind}")));
    let cell = |share: Option<f64>, jain: Option<f64>| match (share, jain) {
        (Some(share), Some(jain)) => format!("{} (Jain {})", percent(share), significant(jain, 3)),
        _ => NONE.to_owned(),
    };
    let row = |at: usize| {
        let cells = share[at].iter().zip(&jain[at]).map(|(share, jain)| cell(*share, *jain));
        [kinds[at].clone()].into_iter().chain(cells).collect()
    };
    Table { head: head.collect(), rows: (0..kinds.len()).map(row).collect() }
}
