//! The answer of a trial from its rows: the part of its `answer.json` that is computed from them.

use kendall_archive::series::Series;
use kendall_evidence::streamed::Warmup;
use kendall_evidence::{ClientSide, Trial, calibrated, client_side, measured, trend};
use kendall_load::RequestClass;
use kendall_record::RequestRow;
use kendall_station::Servers;

use crate::report::trial::LeftOut;
use crate::trial_result::{Measured, row_classes};
use crate::unstamped::Unstamped;
use crate::warmup;

/// The data of a trial besides its rows.
#[derive(Clone, Copy, Debug)]
pub struct TrialSetting<'a> {
    /// The warm-up that the load leaves out.
    pub warmup: Warmup,
    /// The server's processor time over time, if it was watched.
    pub readings: Option<&'a Series>,
    /// How many servers the station has.
    pub servers: Servers,
    /// The classes of its requests.
    pub classes: &'a [RequestClass],
    /// The result of the server's calibration, if the server does not stamp.
    pub unstamped: Option<&'a Unstamped>,
}

/// The answer of a trial from its rows.
#[derive(Clone, Debug)]
pub struct TrialAnswer {
    /// The measurement by the server's stamps, or the reason for its absence.
    pub measured: Measured,
    /// The measurement of the clients alone.
    pub clients: Option<ClientSide>,
    /// Whether the number of requests in the station grew through the trial.
    pub grows: bool,
    /// The warm-up that the answer leaves out.
    pub left_out: LeftOut,
    /// Where MSER-5 ends the warm-up, in seconds since the start.
    pub warmup_suggested_s: Option<f64>,
}

impl TrialAnswer {
    /// Computes the answer from the rows of a trial that is over, matched with the server's stamps.
    pub fn of(rows: &[RequestRow], setting: TrialSetting<'_>) -> Self {
        let suggested_ns = warmup::suggested_ns(rows, setting.readings);
        let left_out = warmup::left_out(rows, setting.warmup, suggested_ns);
        let view = Trial { rows, warmup_ns: left_out.until_ns };
        let classes = row_classes(setting.classes);
        let answer = match setting.unstamped {
            Some(known) => calibrated(&[view], setting.servers, &classes, known.calibrated()),
            None => measured(&[view], setting.servers, &classes),
        };
        Self {
            measured: match answer {
                Ok(answer) => Measured::Answer(Box::new(answer)),
                Err(why) => Measured::NoAnswer(why.to_string()),
            },
            clients: client_side(&[view]).ok(),
            grows: trend(rows, view.warmup_ns).is_some_and(|trend| trend.grows),
            left_out,
            warmup_suggested_s: suggested_ns.map(|cut_ns| cut_ns as f64 / 1e9),
        }
    }
}
