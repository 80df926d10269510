//! Every row of the reference table, by formula, by the statistics, or by simulation.

mod table;

use kendall_solve::statistics::{mser, quantile_ranks, student_t};
use kendall_solve::{
    erlang_b, erlang_c, formula, number_at_least, servers_for_p_wait, servers_for_response, waiting_survival,
};
use kendall_station::{Answer, Arrivals, Discipline, Law, Servers, Station};
use table::{Row, rows};

fn station(row: &Row) -> Station {
    let service = match row.model.as_str() {
        "mg1" => row.law("service"),
        "md1" => Law::Constant { mean_s: row.number("service_time") },
        "mg1_ps" => Law::LogNormal { mean_s: row.number("mean_service"), scv: 2.0 },
        _ => Law::exponential_rate(row.number("mu")),
    };
    let servers = row.optional("m").map_or(1, |m| m as u32);
    let station = Station::new(Arrivals::poisson(row.number("lam")), service, Servers::new(servers).unwrap());
    let discipline = match row.model.as_str() {
        "mg1_ps" | "mm1_ps" => Discipline::ProcessorSharing,
        _ => Discipline::Fifo,
    };
    Station { capacity: row.optional("K").map(|k| k as u64), discipline, ..station }
}

fn of_answer(row: &Row, answer: &Answer) -> f64 {
    let quantile = |p| answer.response.quantile(p).unwrap().value;
    match row.quantity.as_str() {
        "R_mean" => answer.response.mean_s.value,
        "R_var" => answer.response.variance_s2.unwrap(),
        "R_p50" => quantile(0.5),
        "R_p95" => quantile(0.95),
        "R_p99" => quantile(0.99),
        "Wq_mean" => answer.waiting.mean_s.value,
        "Wq_var" => answer.waiting.variance_s2.unwrap(),
        "Wq_p95" => answer.waiting.quantile(0.95).unwrap().value,
        "L" => answer.in_system.value,
        "P_wait" => answer.p_wait.value,
        "P_block" => answer.lost.value,
        "throughput" => answer.throughput_per_s.value,
        "utilisation" => answer.utilisation.value,
        other => panic!("nobody computes {other}"),
    }
}

fn computed(row: &Row) -> f64 {
    match (row.model.as_str(), row.quantity.as_str()) {
        ("erlang_b", _) => erlang_b(row.number("m") as u32, row.number("a")),
        ("erlang_c", _) => erlang_c(row.number("m") as u32, row.number("a")),
        ("erlang_c_inverse", _) => {
            f64::from(servers_for_p_wait(row.number("a"), row.number("target_pwait")).unwrap().get())
        }
        ("mmm_sizing", _) => {
            let service_s = 1.0 / row.number("mu");
            let target_s = row.number("slo_R_p95");
            f64::from(servers_for_response(row.number("lam"), service_s, 0.95, target_s).unwrap().get())
        }
        (_, "Wq_sf_at_t") => waiting_survival(&station(row), row.number("t")).unwrap(),
        (_, "P_N_ge_5") => number_at_least(&station(row), 5).unwrap(),
        // Sharing stretches every size by the same factor.
        (_, "R_mean_given_size") => {
            let answer = formula(&station(row)).unwrap();
            row.number("x") * answer.response.mean_s.value / row.number("mean_service")
        }
        _ => of_answer(row, &formula(&station(row)).unwrap()),
    }
}

#[test]
fn formulas_give_every_row_of_the_table() {
    let models = [
        ("mm1", 19),
        ("mmm", 54),
        ("mmmk", 36),
        ("mg1", 44),
        ("md1", 7),
        ("mg1_ps", 6),
        ("mm1_ps", 3),
        ("erlang_b", 9),
        ("erlang_c", 8),
        ("erlang_c_inverse", 1),
        ("mmm_sizing", 1),
    ];
    let mut wrong = Vec::new();
    for (model, count) in models {
        let rows = rows(model);
        assert_eq!(rows.len(), count, "rows of {model}");
        wrong.extend(rows.iter().filter_map(|row| row.wrong(computed(row))));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn statistics_give_every_row_of_the_table() {
    let mut wrong = Vec::new();
    let t = rows("student_t_quantile");
    let ranks = rows("quantile_ci_ranks");
    let cuts = rows("mser5");
    assert_eq!((t.len(), ranks.len(), cuts.len()), (2, 5, 2));
    for row in &t {
        wrong.extend(row.wrong(student_t(row.number("df"), row.number("p"))));
    }
    for row in &ranks {
        let (lower, upper) = quantile_ranks(row.number("n") as u64, row.number("p")).unwrap();
        wrong.extend(row.wrong(if row.quantity == "lower_rank" { lower } else { upper } as f64));
    }
    let series: Vec<f64> =
        (0..100).map(f64::from).map(|k| 10.0 - 9.0 * (-k / 8.0f64).exp() + 0.5 * (1.7 * k).sin()).collect();
    for row in &cuts {
        assert!(row.text("series").starts_with("10-9*exp(-k/8)+0.5*sin(1.7*k)"));
        let cut = mser(&series, row.number("batch") as usize).unwrap();
        wrong.extend(row.wrong(if row.quantity == "mser_value" { cut.value } else { cut.batches as f64 }));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
