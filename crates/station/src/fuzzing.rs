//! What must hold for stations, laws, times and networks as users write them.

use kendall_stats::quantity;
use kendall_testbed::fuzz::Target;

use crate::{Arrivals, Discipline, Law, Network, Notation};

/// The parsers of this crate, and of the times and rates below it.
pub const TARGETS: &[Target] = &[
    Target { name: "station-notation", seeds: notation_seeds, run: notation },
    Target { name: "station-quantities", seeds: quantity_seeds, run: quantities },
    Target { name: "station-law", seeds: law_seeds, run: law },
    Target { name: "station-network", seeds: network_seeds, run: network },
];

/// A notation is read again as it is shown.
fn notation(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(notation) = text.parse::<Notation>() {
        let again = notation.to_string().parse::<Notation>();
        assert_eq!(again.as_ref(), Ok(&notation), "{notation}");
    }
    if let Ok(discipline) = text.parse::<Discipline>() {
        assert_eq!(discipline.name().parse(), Ok(discipline));
    }
}

fn notation_seeds() -> Vec<Vec<u8>> {
    ["M/G/1/PS", "E2/H2/3/10/∞/priority", "m/d/2//5", "LN/Pa/1/*/7/lifo", "GI/U/1"].map(Vec::from).to_vec()
}

/// Times and rates are finite and not negative, and a trace ascends.
fn quantities(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let quantities = [quantity::time_s(text), quantity::rate_per_s(text)].into_iter().flatten();
    for quantity in quantities.chain(quantity::seconds(text)).chain(quantity::rate(text)) {
        assert!(quantity.is_finite() && quantity >= 0.0);
    }
    assert!(
        quantity::positive_seconds(text).is_ok_and(|time_s| time_s > 0.0)
            || quantity::positive_seconds(text).is_err()
    );
    if let Ok(Arrivals::Trace { instants_s }) = Arrivals::trace(text) {
        assert!(instants_s.is_sorted() && instants_s.iter().all(|at_s| at_s.is_finite() && *at_s >= 0.0));
    }
}

fn quantity_seeds() -> Vec<Vec<u8>> {
    ["250ms", "1.5 s", "600/min", "1.5M/s", "12µs", "# seconds\n0.5\n1\n\n1e3"].map(Vec::from).to_vec()
}

/// Probabilities of a valid law are probabilities, and a quantile is a time.
fn law(input: &[u8]) {
    let Ok(law) = serde_json::from_slice::<Law>(input) else { return };
    if law.validate().is_err() {
        return;
    }
    for t_s in [0.0, 1e-9, 0.5, 1e9] {
        assert!((-1e-9..=1.0 + 1e-9).contains(&law.survival(t_s)), "{law:?} at {t_s}");
        assert!(law.limited_mean_s(t_s) <= t_s * (1.0 + 1e-9) + law.mean_s() * 1e-12, "{law:?} at {t_s}");
    }
    assert!(law.quantile_s(0.5) >= 0.0 && law.moment(2) >= 0.0 && law.scv() >= 0.0, "{law:?}");
    assert!(!law.letter().is_empty());
}

fn law_seeds() -> Vec<Vec<u8>> {
    let exponential = || Law::Exponential { mean_s: 0.5 };
    let part = |probability, of| crate::Part { probability, of };
    let laws = [
        exponential(),
        Law::Constant { mean_s: 0.1 },
        Law::Erlang { shape: 3, mean_s: 0.1 },
        Law::Hyperexponential { parts: vec![(0.4, 1.0), (0.6, 2.0)] },
        Law::Uniform { low_s: 0.1, high_s: 0.3 },
        Law::LogNormal { mean_s: 0.1, scv: 2.0 },
        Law::Pareto { shape: 2.5, mean_s: 0.1 },
        Law::Mixture { parts: vec![part(0.5, exponential()), part(0.5, Law::Constant { mean_s: 1.0 })] },
        Law::empirical(vec![0.1, 0.2]).expect("there are samples"),
    ];
    laws.iter().map(|law| serde_json::to_vec(law).expect("it is plain data")).collect()
}

/// A network that is valid has flows that are not negative, and is read again as it is written.
fn network(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(network) = toml::from_str::<Network>(text) else { return };
    if network.validate().is_err() {
        return;
    }
    assert!(network.flows().iter().flatten().all(|flow| *flow >= -1e-6), "{network:?}");
}

fn network_seeds() -> Vec<Vec<u8>> {
    vec![
        b"[[station]]\nname = \"web\"\nservers = 4\nservice = { law = \"exponential\", mean_s = 0.02 }\n          arrivals = { rate_per_s = 80 }\n[[station]]\nname = \"db\"\nservice = { law = \"constant\", mean_s = 0.01 }\n          capacity = 50\nwhen_full = \"block\"\nconditions.patience = { law = \"constant\", mean_s = 1.0 }\n          [routing]\nweb = { db = 0.7 }\ndb = { web = 0.5 }\n"
            .to_vec(),
        b"users = { count = 5, think = { law = \"exponential\", mean_s = 1 } }\n[[station]]\nname = \"a\"\n          service = { law = \"erlang\", shape = 2, mean_s = 0.1 }\ndiscipline = \"ps\"\n"
            .to_vec(),
    ]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
