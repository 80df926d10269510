//! The keys of a station that a file shares with the command line: `notation = "M/M/4"`, `arrival-rate`, `service-time`, …
//!
//! They are written out as the keys of the network's own form before it is read.

use anyhow::{Context, bail};
use kendall_station::{Law, Notation};
use kendall_stats::quantity::{positive_seconds, rate};
use toml::{Table, Value};

/// The keys, and what else they may be called.
const KEYS: [(&str, &str); 5] = [
    ("arrival-rate", "lambda"),
    ("service-rate", "mu"),
    ("service-time", ""),
    ("service-scv", ""),
    ("arrival-scv", ""),
];

/// Writes the keys of all stations out. Returns whether there were any.
///
/// # Errors
/// Says which station has which key wrong.
pub(crate) fn write_out(network: &mut Table) -> anyhow::Result<bool> {
    let mut any = false;
    let stations = network.get_mut("station").and_then(Value::as_array_mut);
    for (place, station) in stations.into_iter().flatten().enumerate() {
        let Some(station) = station.as_table_mut() else { continue };
        let name = station
            .get("name")
            .and_then(Value::as_str)
            .map_or_else(|| format!("{}", place + 1), str::to_owned);
        any |= write_out_station(station).with_context(|| format!("station {name:?}"))?;
    }
    Ok(any)
}

fn write_out_station(station: &mut Table) -> anyhow::Result<bool> {
    let notation = station.remove("notation");
    let mut given = KEYS.map(|(key, other)| station.remove(key).or_else(|| station.remove(other)));
    if notation.is_none() && given.iter().all(Option::is_none) {
        return Ok(false);
    }
    let notation: Notation = match &notation {
        Some(Value::String(text)) => text.parse().with_context(|| format!("notation is {text:?}"))?,
        Some(_) => bail!("notation must be a text such as \"M/M/4\""),
        // Without one it is as in most textbooks.
        None => "M/M/1".parse()?,
    };
    if notation.population.is_some() {
        bail!("the notation {notation} has a closed population; write it as [users], for the whole network");
    }
    let mut quantity = |place: usize, read: fn(&str) -> Result<f64, String>| -> anyhow::Result<Option<f64>> {
        let Some(value) = given[place].take() else { return Ok(None) };
        let text = match &value {
            Value::String(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => bail!("{} must be a number, or a text with a unit", KEYS[place].0),
        };
        match read(&text) {
            Ok(value) => Ok(Some(value)),
            Err(must) => bail!("{} is {text:?}; it {must}", KEYS[place].0),
        }
    };
    let arrival_rate = quantity(0, rate)?;
    let service_rate = quantity(1, rate)?;
    let service_time = quantity(2, positive_seconds)?;
    let service_scv = quantity(3, variation)?;
    let arrival_scv = quantity(4, variation)?;
    let mut put = |key: &str, value: Value| {
        if station.contains_key(key) {
            bail!("{key} is given twice: as {key}, and by the keys of the command line");
        }
        station.insert(key.to_owned(), value);
        Ok(())
    };
    let service_s = match (service_rate, service_time) {
        (Some(_), Some(_)) => bail!("service-rate and service-time have the same meaning; give one of them"),
        (Some(per_s), None) => Some(1.0 / per_s),
        (None, time) => time,
    };
    if let Some(mean_s) = service_s {
        put("service", law(&notation.service.law(mean_s, service_scv).context("see service-scv")?)?)?;
    }
    if let Some(rate_per_s) = arrival_rate {
        let gap = notation.arrivals.law(1.0 / rate_per_s, arrival_scv).context("see arrival-scv")?;
        put("arrivals", Value::try_from(kendall_station::Arrivals::Open { gap })?)?;
    }
    if notation.servers.get() > 1 {
        put("servers", Value::from(i64::from(notation.servers.get())))?;
    }
    if let Some(capacity) = notation.capacity {
        put("capacity", Value::try_from(capacity)?)?;
    }
    if let Some(discipline) = notation.discipline {
        put("discipline", Value::try_from(discipline)?)?;
    }
    Ok(true)
}

fn law(law: &Law) -> anyhow::Result<Value> {
    Ok(Value::try_from(law)?)
}

fn variation(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1e6).contains(&value) => Ok(value),
        _ => Err("must be a number from 0 to 1e6".into()),
    }
}

#[cfg(test)]
mod tests {
    use kendall_station::Network;

    use super::*;

    fn network(text: &str) -> anyhow::Result<Network> {
        let mut table: Table = text.parse()?;
        write_out(&mut table)?;
        Ok(table.try_into()?)
    }

    #[test]
    fn keys_of_the_command_line_say_the_same_as_those_of_the_file() {
        let short = "[[station]]\nname = \"web\"\nnotation = \"M/E3/4/50/PS\"\narrival-rate = \"2k/s\"\nservice-time = \"1ms\"\n";
        let long = "[[station]]\nname = \"web\"\nservers = 4\ncapacity = 50\ndiscipline = \"processor-sharing\"\n\
                    service = { law = \"erlang\", shape = 3, mean_s = 0.001 }\narrivals = { rate_per_s = 2000 }\n";
        assert_eq!(network(short).unwrap(), network(long).unwrap());
        let letters = "[[station]]\nname = \"web\"\nlambda = 3\nmu = 4\n";
        let words = "[[station]]\nname = \"web\"\narrival-rate = 3\nservice-rate = 4\n";
        assert_eq!(network(letters).unwrap(), network(words).unwrap());
    }

    #[test]
    fn what_is_wrong_names_the_station_and_the_key() {
        for (keys, part) in [
            ("notation = \"M/M\"\nmu = 1", "notation is \"M/M\""),
            ("notation = 4\nmu = 1", "must be a text"),
            ("notation = \"M/M/1/∞/5\"\nmu = 1", "[users]"),
            ("arrival-rate = \"fast\"\nmu = 1", "arrival-rate is \"fast\"; it must be a positive rate"),
            ("service-time = -1", "must be a time"),
            ("notation = \"M/G/1\"\nmu = 1", "see service-scv"),
            ("notation = \"M/M/2\"\nservers = 2\nmu = 1", "servers is given twice"),
            ("mu = 1\nservice-time = 1", "have the same meaning"),
        ] {
            let why =
                format!("{:#}", network(&format!("[[station]]\nname = \"web\"\n{keys}\n")).unwrap_err());
            assert!(why.contains("station \"web\"") && why.contains(part), "{keys}: {why}");
        }
    }
}
