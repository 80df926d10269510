//! Series along time, in bins that become twice as wide when there are too many bins.

use kendall_record::{Outcome, RequestRow};
use serde::{Deserialize, Serialize};

use crate::seconds::seconds;
use kendall_stats::histogram::{Grid, Histogram};

/// No more bins than this.
const MOST: usize = 2048;
/// The width of the bins at first, in nanoseconds.
const FINEST_NS: i64 = 1_000_000;
/// What is handed out has no more bins than this, and none narrower than a tenth of a second where there are enough.
const SHOWN_AT_MOST: usize = 600;
const SHOWN_NS: i64 = 100_000_000;
const ENOUGH: usize = 40;
/// Response times below this are reported as zero, in seconds.
const LEAST_S: f64 = 1e-6;

#[derive(Clone, Debug)]
pub(super) struct Bin {
    /// The counts of the requests that were due in the bin, by outcome.
    ended: [u64; Outcome::ALL.len()],
    /// Response times of the requests that were due in it and answered.
    response: Histogram,
    response_s: f64,
    answered: u64,
    longest_s: f64,
    /// Answers completed in the bin, whenever their requests were due.
    completed: u64,
    /// Requests that came in it, and went.
    came: Edge,
    went: Edge,
}

/// How many instants a bin has, and how long before its end they were in all.
#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    count: f64,
    before_end_s: f64,
}

impl Edge {
    /// The edge in a bin that ends later.
    fn extended(self, by_s: f64) -> Self {
        Self { before_end_s: self.before_end_s + self.count * by_s, ..self }
    }

    fn plus(self, other: Self) -> Self {
        Self { count: self.count + other.count, before_end_s: self.before_end_s + other.before_end_s }
    }
}

impl Bin {
    fn new() -> Self {
        Self {
            ended: [0; Outcome::ALL.len()],
            response: Histogram::new(Grid::Coarse, LEAST_S),
            response_s: 0.0,
            answered: 0,
            longest_s: 0.0,
            completed: 0,
            came: Edge::default(),
            went: Edge::default(),
        }
    }

    /// Takes the next bin in, which is as wide as this one.
    fn absorb(&mut self, next: &Self, width_s: f64) {
        self.ended.iter_mut().zip(next.ended).for_each(|(mine, theirs)| *mine += theirs);
        self.response.absorb(&next.response);
        self.response_s += next.response_s;
        self.answered += next.answered;
        self.longest_s = self.longest_s.max(next.longest_s);
        self.completed += next.completed;
        self.came = self.came.extended(width_s).plus(next.came);
        self.went = self.went.extended(width_s).plus(next.went);
    }

    pub(super) fn completed(&self) -> u64 {
        self.completed
    }

    /// The mean response time of the requests that were due in it.
    pub(super) fn mean_s(&self) -> Option<f64> {
        (self.answered > 0).then(|| self.response_s / self.answered as f64)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Bins {
    width_ns: i64,
    bins: Vec<Bin>,
}

impl Bins {
    pub(super) fn new() -> Self {
        Self { width_ns: FINEST_NS, bins: Vec::new() }
    }

    pub(super) fn add(&mut self, row: &RequestRow) {
        // An answer comes when its request has ended, so that all bins of a request can be reached at once.
        let due = self.at(row.scheduled);
        due.ended[row.outcome as usize] += 1;
        if let Some(response_ns) = row.response_ns() {
            let response_s = seconds(response_ns.max(0));
            due.response.add(response_s);
            due.response_s += response_s;
            due.longest_s = due.longest_s.max(response_s);
            due.answered += 1;
        }
        self.edge(row.scheduled, |bin| &mut bin.came);
        if let Some(completed) = row.completed {
            self.edge(completed.max(row.scheduled), |bin| &mut bin.went);
            if row.response_ns().is_some() {
                self.at(completed).completed += 1;
            }
        }
    }

    fn edge(&mut self, at_ns: i64, of: fn(&mut Bin) -> &mut Edge) {
        let bin = self.at(at_ns);
        let edge = of(bin);
        edge.count += 1.0;
        let place = at_ns.max(0) / self.width_ns;
        let before_end_s = seconds((place + 1) * self.width_ns - at_ns.max(0));
        of(self.at(at_ns)).before_end_s += before_end_s;
    }

    fn at(&mut self, at_ns: i64) -> &mut Bin {
        let at_ns = at_ns.max(0);
        while at_ns / self.width_ns >= MOST as i64 {
            self.bins = doubled(std::mem::take(&mut self.bins), seconds(self.width_ns));
            self.width_ns *= 2;
        }
        let place = (at_ns / self.width_ns) as usize;
        if place >= self.bins.len() {
            self.bins.resize_with(place + 1, Bin::new);
        }
        &mut self.bins[place]
    }

    /// The width of a bin, in seconds.
    pub(super) fn width_s(&self) -> f64 {
        seconds(self.width_ns)
    }

    /// The bins that lie wholly between two instants, and the mean number of requests present in each.
    pub(super) fn within(&self, from_ns: i64, to_ns: i64) -> Vec<(&Bin, f64)> {
        let first = (from_ns.max(0) as u64).div_ceil(self.width_ns as u64) as usize;
        let last = (to_ns.max(0) / self.width_ns) as usize;
        let present = present(&self.bins, self.width_s());
        let both = self.bins.iter().zip(present).take(last);
        both.skip(first).collect()
    }

    /// As wide bins as are worth showing.
    fn shown(&self) -> (Vec<Bin>, i64) {
        let (mut bins, mut width_ns) = (self.bins.clone(), self.width_ns);
        while bins.len() > SHOWN_AT_MOST || (width_ns < SHOWN_NS && bins.len() > 2 * ENOUGH) {
            bins = doubled(bins, seconds(width_ns));
            width_ns *= 2;
        }
        (bins, width_ns)
    }

    pub(super) fn series(&self) -> Series {
        let (bins, width_ns) = self.shown();
        let width_s = seconds(width_ns);
        let bin = |((place, bin), in_flight): ((usize, &Bin), f64)| {
            let quantile_s = |p| (bin.answered > 0).then(|| bin.response.quantile_s(p));
            SeriesBin {
                at_s: place as f64 * width_s,
                ended: bin.ended,
                completed: bin.completed,
                in_flight,
                response_mean_s: bin.mean_s(),
                response_p50_s: quantile_s(0.5),
                response_p90_s: quantile_s(0.9),
                response_p99_s: quantile_s(0.99),
                response_longest_s: (bin.answered > 0).then_some(bin.longest_s),
            }
        };
        let present = present(&bins, width_s);
        Series { width_s, bins: bins.iter().enumerate().zip(present).map(bin).collect() }
    }

    /// When each bin begins, and itself: as many as may be shown, however narrow. Among few bins a part looks steady at random.
    pub(super) fn starts(&self) -> Vec<(i64, Bin)> {
        let (mut bins, mut width_ns) = (self.bins.clone(), self.width_ns);
        while bins.len() > SHOWN_AT_MOST {
            bins = doubled(bins, seconds(width_ns));
            width_ns *= 2;
        }
        bins.into_iter().enumerate().map(|(place, bin)| (place as i64 * width_ns, bin)).collect()
    }
}

impl SeriesBin {
    /// Requests that were due in the bin.
    pub fn due(&self) -> u64 {
        self.ended.iter().sum()
    }
}

fn doubled(bins: Vec<Bin>, width_s: f64) -> Vec<Bin> {
    let mut pairs = bins.into_iter();
    let mut wider = Vec::new();
    while let Some(mut one) = pairs.next() {
        one.absorb(&pairs.next().unwrap_or_else(Bin::new), width_s);
        wider.push(one);
    }
    wider
}

/// The mean number of requests that are due and not over, in each bin.
fn present(bins: &[Bin], width_s: f64) -> Vec<f64> {
    let mut before = 0.0;
    let mut of = |bin: &Bin| {
        let present = before + (bin.came.before_end_s - bin.went.before_end_s) / width_s;
        before += bin.came.count - bin.went.count;
        present.max(0.0)
    };
    bins.iter().map(&mut of).collect()
}

/// A series along time, in bins of equal width.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The width of a bin, in seconds.
    pub width_s: f64,
    /// The bins, one after the other, from the start.
    pub bins: Vec<SeriesBin>,
}

/// One bin of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesBin {
    /// The beginning of the bin, in seconds since the start.
    pub at_s: f64,
    /// The counts of the requests that were due in the bin, in the order of [`Outcome::ALL`].
    pub ended: [u64; Outcome::ALL.len()],
    /// Answers completed in the bin, whenever their requests were due.
    pub completed: u64,
    /// The mean number of requests that were due and not over.
    pub in_flight: f64,
    /// The mean response time of the requests that were due in the bin, in seconds, where any was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_mean_s: Option<f64>,
    /// The median response time, within 1 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_p50_s: Option<f64>,
    /// The 90th percentile of the response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_p90_s: Option<f64>,
    /// The 99th percentile of the response time; of fewer than a hundred requests, the longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_p99_s: Option<f64>,
    /// The longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_longest_s: Option<f64>,
}
