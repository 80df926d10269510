//! Several stations next to each other, and stations along a range: one table, one figure.
//!
//! A formula answers where one is known, and the simulation elsewhere; the table marks who answered.

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, ensure};
use kendall_report::picture::{self, Compared, Picture};
use kendall_station::{Answer, By, Kind, Notation, Station};
use kendall_theory::{Along, NoFormula, formula, sweep};
use serde_json::{Value, json};

use crate::ask::{AnswerMethod, Solve};
use crate::beside;
use crate::column::{Column, StationAnswer};
use crate::shown::{answer_json, status};
use crate::values::{Quantities, Sweep};

/// Places of a line by formula between the ends of a range.
const LINE: u32 = 60;

/// Answers the stations that these words name.
///
/// # Errors
/// Fails on text that is not a station, and on options that only a single station takes.
pub(crate) fn solve(words: &[&str], sweep: Option<&Sweep>, options: &Solve) -> anyhow::Result<ExitCode> {
    let notations = words.iter().map(|word| read(word)).collect::<anyhow::Result<Vec<_>>>()?;
    ensure!(
        !options.approximations && !options.bounds,
        "--approximations and --bounds need one station without a range"
    );
    options.run.refuse_trace()?;
    let mut columns = columns(words, &notations, sweep, options)?;
    answer(&mut columns, options)?;
    options.figure.try_draw(|| picture(&columns, sweep, &notations, options))?;
    if options.json {
        kendall_stdio::json(&json(&columns, sweep))?;
    } else {
        kendall_stdio::out(&(beside::text(&columns, sweep).join("\n") + "\n"))?;
    }
    for shortfall in shortfalls(&columns, sweep, options) {
        kendall_stdio::note(&format!("kendall: {shortfall}"));
    }
    let unstable = columns
        .iter()
        .flat_map(|column| &column.found)
        .all(|found| matches!(found, StationAnswer::Unstable(_)));
    Ok(status(unstable))
}

/// A notation from a word.
pub(crate) fn read(word: &str) -> anyhow::Result<Notation> {
    word.parse().with_context(|| format!("{word:?} is not a station"))
}

fn columns(
    words: &[&str],
    notations: &[Notation],
    sweep: Option<&Sweep>,
    options: &Solve,
) -> anyhow::Result<Vec<Column>> {
    let station = &options.station;
    let column = |(place, (word, notation)): (usize, (&&str, &Notation))| {
        let at = |value| station.station_at(notation, &own(place, notations, value, options)?);
        let stations = match sweep {
            None => vec![at(None)?],
            Some(sweep) => {
                sweep.values.iter().map(|value| at(Some(*value))).collect::<anyhow::Result<_>>()?
            }
        };
        let name = format!("{word}{}", station.quantities.distinction(place));
        Ok(Column { name, stations, found: Vec::new() })
    };
    words.iter().zip(notations).enumerate().map(column).collect()
}

/// The quantities of the station at this place. A variation is of the stations whose letters leave it open, if there are any.
fn own(
    place: usize,
    notations: &[Notation],
    value: Option<f64>,
    options: &Solve,
) -> anyhow::Result<Quantities> {
    let mut own = options.station.quantities.at(place, notations.len(), value)?;
    let others_take = |of: fn(&Notation) -> Kind| {
        !of(&notations[place]).takes_scv() && notations.iter().any(|notation| of(notation).takes_scv())
    };
    if others_take(|notation| notation.service) {
        own.service_scv = None;
    }
    if others_take(|notation| notation.arrivals) {
        own.arrival_scv = None;
    }
    Ok(own)
}

/// Answers all stations, as many at a time as there are processors.
fn answer(columns: &mut [Column], options: &Solve) -> anyhow::Result<()> {
    let all: Vec<&Station> = columns.iter().flat_map(|column| &column.stations).collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(vec![None; all.len()]));
    let work = || -> anyhow::Result<()> {
        while let Some((place, station)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, all.get(i)?)))
        {
            let one = answer_one(station, options)?;
            found.lock().expect("no thread panics while it holds the answers")[place] = Some(one);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(all.len());
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    let mut found =
        found.into_inner().expect("no thread panics while it holds the answers").into_iter().flatten();
    for column in columns {
        column.found = found.by_ref().take(column.stations.len()).collect();
    }
    Ok(())
}

fn answer_one(station: &Station, options: &Solve) -> anyhow::Result<StationAnswer> {
    if options.asks(AnswerMethod::Formula) {
        match formula(station) {
            Ok(answer) => return Ok(StationAnswer::Answer(Box::new(answer))),
            Err(why @ (NoFormula::Unstable { .. } | NoFormula::UnstableClasses { .. })) => {
                return Ok(StationAnswer::without(&why, true));
            }
            Err(why) if !options.asks(AnswerMethod::Simulation) => {
                return Ok(StationAnswer::without(&why, false));
            }
            Err(_) => {}
        }
    }
    Ok(match options.run.simulate_any(station)? {
        Ok(answer) => StationAnswer::Answer(Box::new(answer)),
        Err(why) => {
            StationAnswer::without(&why, matches!(why, kendall_simulation::SimulationError::Unstable { .. }))
        }
    })
}

/// What is wanting where simulated stations are not as precise as was asked for.
fn shortfalls(columns: &[Column], sweep: Option<&Sweep>, options: &Solve) -> Vec<String> {
    let mut shortfalls = Vec::new();
    for column in columns {
        for (place, answer) in column.found.iter().map(StationAnswer::answer).enumerate() {
            let simulated = answer.filter(|answer| matches!(answer.by, By::Simulation { .. }));
            let Some(shortfall) = simulated.and_then(|answer| options.run.shortfall(answer)) else {
                continue;
            };
            let at = sweep.map(|sweep| format!(" at {} {}", sweep.quantity.title(), sweep.values[place]));
            shortfalls.push(format!("{}{}: {shortfall}", column.name, at.unwrap_or_default()));
        }
    }
    shortfalls
}

/// The stations as lines over the range, or over the load without a range.
fn picture(
    columns: &[Column],
    sweep: Option<&Sweep>,
    notations: &[Notation],
    options: &Solve,
) -> anyhow::Result<Picture> {
    let title = columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
    let Some(range) = sweep else { return over_load(title, columns) };
    let mut compared = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        let mut line = Compared { label: column.name.clone(), ..Compared::default() };
        for (&value, found) in range.values.iter().zip(&column.found) {
            let Some(answer) = found.answer() else { continue };
            if matches!(answer.by, By::Simulation { .. }) {
                line.simulated_mean.push((value, answer.response.mean_s));
                line.simulated_p99.extend(answer.response.quantile(0.99).map(|time| (value, time)));
            }
        }
        if line.simulated_mean.is_empty() && options.asks(AnswerMethod::Formula) {
            for value in range.finely(LINE) {
                let station = &options.station;
                let quantities = own(place, notations, Some(value), options)?;
                if let Ok(answer) = formula(&station.station_at(&notations[place], &quantities)?) {
                    add(&mut line, value, &answer);
                }
            }
        }
        compared.push(line);
    }
    Ok(picture::compared(title, range.quantity.title(), &compared))
}

fn over_load(title: String, columns: &[Column]) -> anyhow::Result<Picture> {
    let mut compared = Vec::new();
    let mut across = None;
    for column in columns {
        let mut line = Compared { label: column.name.clone(), ..Compared::default() };
        if let Some(over) = sweep(&column.stations[0]).filter(|over| !over.points.is_empty()) {
            ensure!(
                across.replace(over.along).is_none_or(|along| along == over.along),
                "some of the stations are open and others have users, so one figure cannot show both; draw them separately"
            );
            over.points.iter().for_each(|(load, answer)| add(&mut line, *load, answer));
        }
        compared.push(line);
    }
    let across = match across.context(
        "there is no formula for these stations under other loads; give a range, such as --rho 0.1..0.9",
    )? {
        Along::Rate => "arrival rate [1/s]",
        Along::Users => "users",
    };
    Ok(picture::compared(title, across, &compared))
}

fn add(line: &mut Compared, value: f64, answer: &Answer) {
    line.mean.push((value, answer.response.mean_s.value));
    line.p99.extend(answer.response.quantile(0.99).map(|time| (value, time.value)));
}

fn json(columns: &[Column], sweep: Option<&Sweep>) -> Value {
    let answers = |column: &Column| -> Vec<Value> {
        let one = |(place, (station, found)): (usize, (&Station, &StationAnswer))| {
            let mut one = match found {
                StationAnswer::Answer(answer) => {
                    answer_json(station, &json!({ "station": station, "answer": answer }))
                }
                StationAnswer::Unstable(why) | StationAnswer::NoAnswer(why) => {
                    json!({ "station": station, "no_answer": why })
                }
            };
            if let Some(sweep) = sweep {
                one["at"] = json!(sweep.values[place]);
            }
            one
        };
        column.stations.iter().zip(&column.found).enumerate().map(one).collect()
    };
    json!({
        "along": sweep.map(|sweep| sweep.quantity.title()),
        "stations": columns.iter().map(|column| json!({ "name": column.name, "answers": answers(column) })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    #[test]
    fn each_simulated_station_that_misses_the_precision_is_named() {
        let words = "solve M/M/1 M/D/1 --rho 0.2,0.4 --service-time 1 --only simulation --customers 10000 --precision p99.9=5%";
        let matches =
            Solve::augment_args(Command::new("solve")).try_get_matches_from(words.split(' ')).unwrap();
        let options = Solve::from_arg_matches(&matches).unwrap();
        let stations = ["M/M/1", "M/D/1"];
        let notations = stations.map(|word| read(word).unwrap());
        let mut columns = columns(&stations, &notations, None, &options).unwrap();
        answer(&mut columns, &options).unwrap();
        let all = shortfalls(&columns, None, &options);
        assert_eq!(all.len(), 2, "{all:?}");
        for (shortfall, column) in all.iter().zip(&columns) {
            let start = format!("{}: the p99.9 of the response time is not known", column.name);
            assert!(shortfall.starts_with(&start), "{shortfall}");
        }
    }
}
