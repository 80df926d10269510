//! Writes a synthetic database: `generate FILE ROWS`.

use std::fs::File;
use std::io::BufWriter;

use kendall_textsearch::{Generate, Size, generate};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let rows = arguments[2].parse().expect("the number of rows is a number");
    let mut out = BufWriter::new(File::create(&arguments[1]).expect("the file can be made"));
    let what = Generate { size: Size::Rows(rows), types: 5, seed: 1, threads: 2 };
    println!("{:?}", generate(&what, &mut out).expect("it can be written"));
}
