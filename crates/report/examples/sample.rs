//! Writes a sample page to the path given, and prints the same report as text:
//! `cargo run -p kendall-report --example sample -- report.html`. A second argument,
//! `grouped`, adds a second factor; `categories` makes both factors words.

#[path = "../tests/sample/mod.rs"]
mod sample;

use kendall_report::{page, terminal};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, report) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [path] => (path, sample::report()),
        [path, "grouped"] => (path, sample::grouped()),
        [path, "categories"] => (path, sample::categories()),
        _ => {
            eprintln!("Say where to write the page: sample PATH [grouped|categories]");
            std::process::exit(2);
        }
    };
    std::fs::write(path, page(&report))?;
    print!("{}", terminal::render(&report, 100, terminal::Style::Plain));
    println!("The page is {path}.");
    Ok(())
}
