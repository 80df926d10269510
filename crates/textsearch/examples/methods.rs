//! Times patterns against a database, by the plan's choice or by each method in turn: `methods FILE [--each]
//! [PATTERN…]`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kendall_textsearch::{Backtracking, Database, OpenOptions, Query, SearchMethod, Semantics, TIMED};
use rustix::time::{ClockId, clock_gettime};

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let each = arguments.iter().position(|word| word == "--each").map(|at| arguments.remove(at)).is_some();
    let file = arguments.remove(0);
    let database = Database::open(Path::new(&file), &OpenOptions::default()).expect("the database opens");
    println!("{:#?}", database.contents());
    let database = Arc::new(database);
    let semantics =
        Semantics { backtracking: Backtracking::Within { steps: 1_000_000 }, ..Semantics::default() };
    let own: Vec<&str> = if arguments.is_empty() {
        TIMED.map(|one| one.1).to_vec()
    } else {
        arguments.iter().map(|a| &a[..]).collect()
    };
    for pattern in own {
        for request in [format!(";{pattern}"), format!("1;{pattern}")] {
            let query = Arc::new(Query::parse(&request, &semantics).expect("the pattern is taken"));
            let plan = || database.search(&query);
            let (time, rows) = best(&plan);
            println!("{request:45} {rows:9} {time:9.3?}  {}", plan().plan());
            if each && request.starts_with(';') {
                for method in SearchMethod::ALL {
                    if database.search_by(&query, method).is_some() {
                        let (time, _) = best(&|| database.search_by(&query, method).expect("it can be done"));
                        println!("    {method:20} {time:9.3?}");
                    }
                }
            }
        }
    }
}

/// The processor time of this thread.
fn cpu() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("it is not negative")
}

/// The least processor time of several runs, with the plan, and the rows found.
fn best(search: &dyn Fn() -> kendall_textsearch::Search) -> (Duration, u64) {
    let mut least = Duration::MAX;
    let mut rows = 0;
    for _ in 0..5 {
        let begun = cpu();
        let search = search();
        search.run().expect("it does not fail");
        least = least.min(cpu() - begun);
        rows = search.rows_found();
    }
    (least, rows)
}
