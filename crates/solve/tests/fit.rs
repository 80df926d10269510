use kendall_solve::fit::*;
use kendall_solve::table::Table;
#[test]
fn look() {
    for name in ["chat-mysql", "chat-redis"] {
        let text = std::fs::read_to_string(format!("../../examples/{name}.csv")).unwrap();
        let points = Observation::of_table(&Table::read(&text).unwrap());
        let t = std::time::Instant::now();
        let fit = fit(&points, Given { servers: Some(4), ..Given::default() }).unwrap();
        println!("{name} {:?}", t.elapsed());
        println!("{:#?} {:#?} {:#?}", fit.split, fit.doubts, fit.left_out);
        for c in &fit.candidates {
            println!(
                "{} held {:?} in {:.4} aicc {:?}",
                c.name,
                c.held_out.as_ref().map(|h| (h.error, h.worst)),
                c.error,
                c.aicc
            );
            for p in &c.parameters {
                println!("   {} {:.6} {:?}", p.quantity.symbol(), p.value, p.interval);
            }
            println!("   {:?}", c.notes);
        }
        let t = std::time::Instant::now();
        println!("{:?}", fit.forecast(Load::Closed { users: 200, think_s: 0.0 }, None));
        println!("{:?}", fit.highest("mean<300ms".parse().unwrap(), None));
        println!("{:?}", t.elapsed());
    }
}
