//! Closed populations: N = X(R + Z) in each row, and rows that are one under two labels.

use super::agreement::{agreement, apart};
use super::{COMPUTED, DIGITS, Known};
use crate::check::{AssumptionVerdict, Check, Finding};
use kendall_stats::number::{significant, time};

/// The interactive response-time law (Denning and Buzen 1978, section 4).
pub(super) fn interactive_law(known: &Known<'_>) -> Option<Finding> {
    let row = known.row;
    let (users, throughput_per_s, response_s) = (row.users?, row.throughput_per_s?, row.response_mean_s?);
    let product = throughput_per_s * (response_s + row.think_s.unwrap_or(0.0));
    let effect = apart(product, users);
    let (shown, expected_s) =
        (significant(product, 3), users / throughput_per_s - row.think_s.unwrap_or(0.0));
    let holds = format!("Throughput × (response + think time) is {shown}, for {users} users.");
    let expected = if expected_s > 0.0 {
        format!(
            "at that throughput {users} users have responses of {}, not {}",
            time(expected_s),
            time(response_s)
        )
    } else {
        "users, throughput and think time contradict each other".to_owned()
    };
    let broken =
        format!("Throughput × (response + think time) is {shown}, but there are {users} users: {expected}.");
    Some(agreement(Check::InteractiveLaw, effect, COMPUTED, "users", holds, broken))
}

/// Neighbouring rows of which one has only a throughput and the other only a response time: where the two make the users
/// of one of them, they are one measurement under two labels.
pub(super) fn labels(rows: &[Known<'_>]) -> Vec<Finding> {
    let mut closed: Vec<&Known<'_>> = rows.iter().filter(|known| known.row.users.is_some()).collect();
    closed.sort_by(|a, b| a.row.users.unwrap_or(0.0).total_cmp(&b.row.users.unwrap_or(0.0)));
    closed.windows(2).filter_map(|pair| one_of_two(pair[0], pair[1])).collect()
}

fn one_of_two(first: &Known<'_>, second: &Known<'_>) -> Option<Finding> {
    let only_throughput =
        |known: &Known<'_>| known.row.throughput_per_s.filter(|_| known.row.response_mean_s.is_none());
    let only_response =
        |known: &Known<'_>| known.row.response_mean_s.filter(|_| known.row.throughput_per_s.is_none());
    let (throughput, response) =
        if only_throughput(first).is_some() { (first, second) } else { (second, first) };
    let (throughput_per_s, response_s) = (only_throughput(throughput)?, only_response(response)?);
    let product = throughput_per_s * (response_s + throughput.row.think_s.unwrap_or(0.0));
    let (of_throughput, of_response) = (throughput.row.users?, response.row.users?);
    let users =
        [of_throughput, of_response].into_iter().find(|users| apart(product, *users).abs() <= DIGITS)?;
    let sentence = format!(
        "{of_throughput} users have a throughput and no response time, {of_response} users a response time and no throughput. By N = XR \
         the two make {} users: they look like one measurement of {users} users under two labels.",
        significant(product, 3)
    );
    let place = format!("{} and {}", throughput.row.place(), response.row.place());
    let effect = apart(of_throughput, of_response);
    Some(
        Finding::new(Check::InteractiveLaw, AssumptionVerdict::Broken, sentence)
            .effect("users", effect)
            .at(place),
    )
}
