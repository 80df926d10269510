//! The findings of stations of limited capacity.

use super::*;

/// The last of three rates is twice what the servers can do, and a station of capacity 8 rejects half of the requests.
fn limited(report: &mut Report) {
    for point in &mut report.points {
        point.capacity = Some(8);
        point.models[0].notation = "M/M/4/8".to_owned();
    }
    let lossy = |lost: Estimate| Answer {
        lost,
        utilisation: Estimate::exact(0.998),
        ..answer(Estimate::within(17.6e-3, 1e-3))
    };
    let point = &mut report.points[2];
    point.utilisation_offered = Some(2.0);
    point.measured = lossy(Estimate::within(0.498, 0.006));
    point.models[0].formula = Modelling::Answer(Box::new(lossy(Estimate::exact(0.501))));
    point.models[0].simulation = Modelling::Answer(Box::new(lossy(Estimate::within(0.502, 0.002))));
    report.trials[2].counts = Counts { sent: 1000, answered: 502, refused: 498, ..Counts::default() };
}

#[test]
fn a_station_of_limited_capacity_is_stable_and_its_predicted_losses_are_no_doubt() {
    let mut report = calm();
    limited(&mut report);
    let found = findings(&report);
    assert!(found.iter().all(|finding| finding.severity() == Severity::Answer), "{found:#?}");
    assert_eq!(
        found.iter().map(Finding::to_string).collect::<Vec<_>>(),
        [
            "At 120/s, 2.0 times what the servers can do, 50 % of the requests are lost, and the others take 17.6 ms on average.",
            "M/M/4/8: the predicted and the measured share of lost requests agree at the one point.",
            "The mean response time goes from 6.25 ms at 40/s to 17.6 ms at 120/s.",
            "M/M/4/8: formula, simulation and measurement agree at 3 of 3 points, within the interval of measurement or 5 %.",
        ]
    );
    assert_says(
        |report| report.points.iter_mut().for_each(|point| point.capacity = Some(8)),
        "The capacity of the servers is 200/s: no higher rate is answered.",
    );
    assert_eq!((report.points[2].utilisation(), report.points[0].utilisation()), (0.998, 0.5));
}

#[test]
fn losses_that_no_model_predicts_are_a_doubt() {
    let more = |report: &mut Report| {
        limited(report);
        report.points[2].measured.lost = Estimate::within(0.62, 0.006);
        report.trials[2].counts = Counts { sent: 1000, answered: 380, refused: 620, ..Counts::default() };
    };
    assert_says(more, "M/M/4/8 predicts that 50 % of the requests are lost at 120/s, measured 62 %.");
    assert_says(
        more,
        "At 120/s 620 of 1000 requests (62 %) had no answer; response times count only the others.",
    );
    // A request that the server did not reject is a doubt, whatever the model predicts of rejected ones.
    let silent = |report: &mut Report| {
        limited(report);
        report.trials[2].counts =
            Counts { sent: 1000, answered: 500, refused: 490, timed_out: 10, ..Counts::default() };
    };
    assert_says(
        silent,
        "At 120/s 10 of 1000 requests (1.0 %) had no answer; response times count only the others.",
    );
}

#[test]
fn stations_of_several_capacities_are_compared_at_the_highest_load() {
    let several = |report: &mut Report| {
        limited(report);
        let room = |value: &str| ("room".to_owned(), value.to_owned());
        report.factors.push(Factor {
            name: "room".to_owned(),
            unit: String::new(),
            kind: FactorKind::Number,
            is_load: false,
            values: vec![],
        });
        let mut roomy = report.points[2].clone();
        report.points.iter_mut().for_each(|point| point.settings.push(room("8")));
        roomy.settings.push(room("16384"));
        roomy.capacity = Some(16_384);
        roomy.growing = Some(Growth { first_half_s: 1.0, second_half_s: 4.0 });
        roomy.measured = answer(Estimate::within(2.71, 0.3));
        let Modelling::Answer(formula) = &mut roomy.models[0].formula else { unreachable!() };
        formula.response.mean_s = Estimate::exact(41.0);
        report.points.push(roomy);
        for point in &mut report.points {
            point.models[0].notation = "M/M/4/K".to_owned();
        }
    };
    assert_says(
        several,
        "At 120/s, 2.0 times what the servers can do, 50 % of the requests are lost with room 8, and the others take 17.6 ms on average; \
         with room 16384: none, and response times grow while the trials run.",
    );
    // What the sentence says of the growing queue no other one says again, or otherwise.
    let found = sentences(several);
    assert!(!found.iter().any(|sentence| sentence.contains("Measure at a lower rate")), "{found:#?}");
    assert!(!found.iter().any(|sentence| sentence.contains("without bound")), "{found:#?}");
}
