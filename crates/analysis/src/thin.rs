//! Fewer of many values, for the eye: evenly, and in order.

/// At most `most` of the values, evenly by rank, with both extremes.
pub fn thinned(sorted: &[f64], most: usize) -> Vec<f64> {
    if sorted.len() <= most {
        return sorted.to_vec();
    }
    (0..most).map(|i| sorted[i * (sorted.len() - 1) / (most - 1)]).collect()
}

/// The given number of places out of `all`, at even distances; all of them if there are no more.
pub(crate) fn evenly(all: usize, most: usize) -> impl Iterator<Item = usize> {
    let kept = all.min(most);
    (0..kept).map(move |at| if all > most { (2 * at + 1) * all / (2 * kept) } else { at })
}

/// Values in ascending order.
pub fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_extremes_and_the_order() {
        let values: Vec<f64> = (0..1001).map(f64::from).collect();
        let few = thinned(&values, 11);
        assert_eq!(few, [0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0, 1000.0]);
        assert_eq!(thinned(&values[..5], 11).len(), 5);
    }
}
