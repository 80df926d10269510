//! Tests and intervals of measured numbers.

use super::{BatchError, Inputs, Model};
use kendall_stats::{
    Tested, anderson_darling_exponential, anderson_darling_modified, autocorrelation, conditional_uniform,
    conditional_uniform_lewis, dispersion_index, lilliefors_exponential, ljung_box, mann_kendall, mser,
    quantile_ranks_with, student_t, two_samples,
};

pub(super) const MODELS: &[Model] = &[
    Model {
        name: "anderson_darling_exponential",
        about: "the Anderson-Darling test for an exponential distribution",
        inputs: "x: sample",
        quantities: "A2, A2_star, p_value",
        value: anderson_darling,
    },
    Model {
        name: "lilliefors_exponential",
        about: "Lilliefors' test for an exponential distribution",
        inputs: "x: sample",
        quantities: "D, p_value",
        value: lilliefors,
    },
    Model {
        name: "ljung_box",
        about: "the Ljung-Box test for correlation in time",
        inputs: "x: series, lags",
        quantities: "Q, p_value",
        value: portmanteau,
    },
    Model {
        name: "autocorrelation",
        about: "the autocorrelation of a series",
        inputs: "x: series, lag",
        quantities: "r_k",
        value: correlation,
    },
    Model {
        name: "mann_kendall",
        about: "the Mann-Kendall test for a trend",
        inputs: "x: series",
        quantities: "Z, p_value",
        value: trend,
    },
    Model {
        name: "ks_two_sample",
        about: "the Kolmogorov-Smirnov test of two samples",
        inputs: "x, y",
        quantities: "D, p_value",
        value: between_samples,
    },
    Model {
        name: "dispersion_index_test",
        about: "whether counts vary as those of a Poisson stream",
        inputs: "counts",
        quantities: "IDC, chi2, p_two_sided, p_value",
        value: dispersion,
    },
    Model {
        name: "poisson_conditional_uniform_ks",
        about: "whether arrivals are a Poisson stream: Kolmogorov-Smirnov, given their number",
        inputs: "interarrivals",
        quantities: "D, p_value, D_lewis, p_value_lewis",
        value: conditional,
    },
    Model {
        name: "quantile_ci_ranks",
        about: "the order statistics that bracket a quantile",
        inputs: "n: sample size, p, conf=0.95",
        quantities: "lower_rank, upper_rank",
        value: ranks,
    },
    Model {
        name: "student_t_quantile",
        about: "a quantile of Student's t",
        inputs: "df: degrees of freedom, p",
        quantities: "t",
        value: student,
    },
    Model {
        name: "mser5",
        about: "where the warm-up of a series ends, by MSER",
        inputs: "series: numbers or a formula, batch=5",
        quantities: "truncation_batches, truncation_observations, mser_value",
        value: warmup,
    },
];

/// A test's statistic by its name, and its p-value.
fn tested(found: Option<Tested>, name: &str, quantity: &str) -> Result<Option<f64>, BatchError> {
    let found = found.ok_or_else(|| {
        BatchError::NoAnswer("too few values for the test, or all equal, or some invalid".into())
    })?;
    Ok(match quantity {
        "p_value" => Some(found.p_value),
        _ if quantity == name => Some(found.statistic),
        _ => None,
    })
}

fn anderson_darling(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let values = inputs.numbers("x")?;
    let found = anderson_darling_exponential(&values);
    if quantity == "A2_star" {
        return Ok(
            tested(found, "A2", "A2")?.map(|statistic| anderson_darling_modified(statistic, values.len()))
        );
    }
    tested(found, "A2", quantity)
}

fn lilliefors(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    tested(lilliefors_exponential(&inputs.numbers("x")?), "D", quantity)
}

fn portmanteau(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    tested(ljung_box(&inputs.numbers("x")?, inputs.whole("lags")? as usize), "Q", quantity)
}

fn correlation(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    if quantity != "r_k" {
        return Ok(None);
    }
    let found = autocorrelation(&inputs.numbers("x")?, inputs.whole("lag")? as usize);
    let why = || BatchError::NoAnswer("the series is constant, or not longer than the lag".into());
    found.ok_or_else(why).map(Some)
}

fn trend(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    tested(mann_kendall(&inputs.numbers("x")?), "Z", quantity)
}

fn between_samples(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    tested(two_samples(&inputs.numbers("x")?, &inputs.numbers("y")?), "D", quantity)
}

fn dispersion(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let counts = inputs.numbers("counts")?;
    let found = dispersion_index(&counts);
    match quantity {
        "chi2" => Ok(tested(found, "IDC", "IDC")?.map(|index| index * (counts.len() as f64 - 1.0))),
        "p_two_sided" => tested(found, "IDC", "p_value"),
        _ => tested(found, "IDC", quantity),
    }
}

fn conditional(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let gaps = inputs.numbers("interarrivals")?;
    match quantity {
        "D_lewis" => tested(conditional_uniform_lewis(&gaps), "D", "D"),
        "p_value_lewis" => tested(conditional_uniform_lewis(&gaps), "D", "p_value"),
        _ => tested(conditional_uniform(&gaps), "D", quantity),
    }
}

/// A probability that is neither 0 nor 1.
fn share(inputs: &Inputs, key: &str) -> Result<f64, BatchError> {
    let value = inputs.number(key)?;
    let odd = || BatchError::Odd { key: key.into(), value: value.to_string(), must: "above 0 and below 1" };
    if value > 0.0 && value < 1.0 { Ok(value) } else { Err(odd()) }
}

fn ranks(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let confidence = if inputs.has("conf") { share(inputs, "conf")? } else { 0.95 };
    let found = quantile_ranks_with(inputs.whole("n")?, share(inputs, "p")?, confidence);
    let (lower, upper) = found.ok_or_else(|| {
        BatchError::NoAnswer("there are too few values to bracket it with that confidence".into())
    })?;
    Ok(match quantity {
        "lower_rank" => Some(lower as f64),
        "upper_rank" => Some(upper as f64),
        _ => None,
    })
}

fn student(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let (freedom, p) = (inputs.positive("df")?, share(inputs, "p")?);
    Ok((quantity == "t").then(|| student_t(freedom, p)))
}

fn warmup(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    const MUST: &str = "a text such as \"10-9*exp(-k/8)+0.5*sin(1.7*k), k=0..99\", or a list of numbers";
    let series = match inputs.text("series") {
        Ok(text) => written(text).ok_or_else(|| BatchError::Odd {
            key: "series".into(),
            value: format!("{text:?}"),
            must: MUST,
        })?,
        Err(missing @ BatchError::Missing { .. }) => return Err(missing),
        Err(_) => inputs.numbers("series")?,
    };
    let batch = if inputs.has("batch") { inputs.whole("batch")?.max(1) as usize } else { 5 };
    let cut = mser(&series, batch)
        .ok_or_else(|| BatchError::NoAnswer("the series has fewer than two batches".into()))?;
    Ok(match quantity {
        "truncation_batches" => Some(cut.batches as f64),
        "truncation_observations" => Some((cut.batches * batch) as f64),
        "mser_value" => Some(cut.value),
        _ => None,
    })
}

/// The longest series in text form.
const LONGEST: usize = 10_000_000;

/// The values of a sum of constants, exponentials and waves over a range of k; `None` if the text is not one.
fn written(text: &str) -> Option<Vec<f64>> {
    let text: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    let (sum, range) = text.rsplit_once(",k=")?;
    let (first, last) = range.split_once("..")?;
    let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    if last < first || last - first >= LONGEST {
        return None;
    }
    let terms: Vec<Term> = terms(sum).into_iter().map(Term::read).collect::<Option<_>>()?;
    let at = |k: usize| terms.iter().map(|term| term.at(k as f64)).sum::<f64>();
    let values: Vec<f64> = (first..=last).map(at).collect();
    values.iter().all(|value| value.is_finite()).then_some(values)
}

/// The terms of a sum, each with its sign.
fn terms(sum: &str) -> Vec<&str> {
    let (mut found, mut from, mut depth) = (Vec::new(), 0, 0);
    let mut before = [' ', ' '];
    for (at, letter) in sum.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            // Neither the sign of the first term, nor that of an exponent such as 1e-3.
            '+' | '-' if depth == 0 && at > from && !(before[1] == 'e' && before[0].is_ascii_digit()) => {
                found.push(&sum[from..at]);
                from = at;
            }
            _ => {}
        }
        before = [before[1], letter];
    }
    found.push(&sum[from..]);
    found
}

/// One term of a written series.
struct Term {
    factor: f64,
    of: Function,
}

/// The function of k in a term.
enum Function {
    One,
    Exponential { per_k: f64 },
    Sine { per_k: f64 },
    Cosine { per_k: f64 },
    Line,
}

impl Term {
    fn read(text: &str) -> Option<Self> {
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1.0, rest),
            None => (1.0, text.strip_prefix('+').unwrap_or(text)),
        };
        if let Ok(number) = rest.parse::<f64>() {
            return Some(Self { factor: sign * number, of: Function::One });
        }
        let starts = ["exp(", "sin(", "cos("];
        let at = starts
            .iter()
            .filter_map(|name| rest.find(name))
            .min()
            .or_else(|| rest.ends_with('k').then(|| rest.len() - 1))?;
        let factor = match &rest[..at] {
            "" => 1.0,
            number => number.strip_suffix('*')?.parse::<f64>().ok()?,
        };
        let call = &rest[at..];
        let of = match call.split_once('(') {
            None => Function::Line,
            Some((name, argument)) => {
                let per_k = per_k(argument.strip_suffix(')')?)?;
                match name {
                    "exp" => Function::Exponential { per_k },
                    "sin" => Function::Sine { per_k },
                    _ => Function::Cosine { per_k },
                }
            }
        };
        Some(Self { factor: sign * factor, of })
    }

    fn at(&self, k: f64) -> f64 {
        self.factor
            * match self.of {
                Function::One => 1.0,
                Function::Exponential { per_k } => libm::exp(per_k * k),
                Function::Sine { per_k } => libm::sin(per_k * k),
                Function::Cosine { per_k } => libm::cos(per_k * k),
                Function::Line => k,
            }
    }
}

/// The factor of k in "-k/8", "1.7*k", "k*2", "-3*k/4".
fn per_k(argument: &str) -> Option<f64> {
    let (sign, rest) = match argument.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, argument),
    };
    let (before, after) = rest.split_once('k')?;
    let before = if before.is_empty() { 1.0 } else { before.strip_suffix('*')?.parse().ok()? };
    let after: f64 = match (after.strip_prefix('/'), after.strip_prefix('*')) {
        (Some(number), _) => 1.0 / number.parse::<f64>().ok()?,
        (_, Some(number)) => number.parse().ok()?,
        _ if after.is_empty() => 1.0,
        _ => return None,
    };
    Some(sign * before * after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_series_is_its_formula() {
        let found = written("10-9*exp(-k/8)+0.5*sin(1.7*k), k=0..99").unwrap();
        assert_eq!(found.len(), 100);
        for (k, value) in found.iter().enumerate() {
            let k = k as f64;
            assert!((value - (10.0 - 9.0 * (-k / 8.0).exp() + 0.5 * (1.7 * k).sin())).abs() < 1e-12);
        }
        assert_eq!(written("-1e-3 + k, k=2..3").unwrap(), [-1e-3 + 2.0, -1e-3 + 3.0]);
        assert_eq!(written("5, k=0..1").unwrap(), [5.0, 5.0]);
        assert_eq!(written("-exp(-2*k)+3*cos(k/2)-1, k=0..0").unwrap(), [1.0]);
        assert_eq!(written("2*exp(-k*0.5)+1, k=1..1").unwrap(), [2.0 * (-0.5f64).exp() + 1.0]);
    }

    #[test]
    fn an_invalid_series_is_rejected() {
        for text in [
            "",
            "10",
            "10, k=0",
            "10, k=5..2",
            "x, k=0..9",
            "2*tan(k), k=0..9",
            "exp(k*k), k=0..9",
            "exp(k), k=0..9999",
            "1/0, k=0..1",
            "exp(k/0), k=1..2",
            "((, k=0..1",
            "1, k=0..99999999",
        ] {
            assert_eq!(written(text), None, "{text}");
        }
        let row = |text: &str| super::super::value("mser5", &Inputs::read(text).unwrap(), "mser_value");
        assert!(matches!(row("{\"series\": \"x\"}"), Err(BatchError::Odd { .. })));
        assert!(matches!(row("{}"), Err(BatchError::Missing { .. })));
        assert!(matches!(row("{\"series\": [1, 2, 3]}"), Err(BatchError::NoAnswer(_))));
        assert!(row("{\"series\": [1, 2, 3, 4], \"batch\": 2}").is_ok());
    }
}
