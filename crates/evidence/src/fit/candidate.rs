//! Fits one family of models to points: its parameters by least squares, its servers one by one.

use super::model::{Family, Model, Scaling, Served};
use super::sample::{Prior, Sample, SampleQuantity};
use kendall_stats::least_squares::{Minimum, Noise, Problem, aicc};
use kendall_stats::student_t;

/// A family, and what of it is held. What is not held is fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spec {
    pub(super) family: Family,
    pub(super) servers: Option<u32>,
    pub(super) capacity: Option<u64>,
    pub(super) delay_s: Option<f64>,
    pub(super) scv: Option<f64>,
}

/// A family with everything held that is counted rather than measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    spec: Spec,
    pub(super) servers: u32,
    capacity: Option<u64>,
}

/// More servers than this cannot be distinguished from this number.
const MOST_SERVERS: u32 = 512;
/// Where the search for the number of servers looks first.
const SERVERS: [u32; 16] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512];
/// Intervals are computed for at most about this many of the numbers of servers that fit equally well.
const MOST_PROFILES: usize = 6;
/// Waiting room beyond the servers, where the search for it looks first.
const ROOM: [u64; 14] = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// The parameters that are measured, in the order in which they are fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Free {
    Service,
    Delay,
    Scv,
    Serial,
    Alone,
    Contention,
    Coherency,
}

impl Spec {
    /// The parameters to fit in addition to the counts.
    pub(super) fn free(&self) -> Vec<Free> {
        match self.family {
            Family::Scalability => return vec![Free::Alone, Free::Contention, Free::Coherency],
            Family::Amdahl => return vec![Free::Alone, Free::Contention],
            _ => (),
        }
        let mut free = vec![Free::Service];
        free.extend(self.delay_s.is_none().then_some(Free::Delay));
        free.extend((self.family == Family::General && self.scv.is_none()).then_some(Free::Scv));
        free.extend((self.family == Family::Serial).then_some(Free::Serial));
        free
    }

    /// How many parameters are fitted, counts included.
    pub(super) fn parameters(&self) -> usize {
        let counted = usize::from(self.fits_servers()) + usize::from(self.fits_room());
        self.free().len() + counted
    }

    pub(super) fn fits_servers(&self) -> bool {
        self.servers.is_none() && self.has_servers()
    }

    fn has_servers(&self) -> bool {
        !matches!(self.family, Family::Scalability | Family::Amdahl)
    }

    fn fits_room(&self) -> bool {
        self.family == Family::Room && self.capacity.is_none()
    }

    fn shape(self, servers: u32, room: u64) -> Shape {
        let capacity = (self.family == Family::Room)
            .then(|| self.capacity.unwrap_or_else(|| u64::from(servers) + room).max(u64::from(servers)));
        Shape { spec: self, servers, capacity }
    }
}

impl Shape {
    /// The model that these parameters make.
    pub(super) fn model(&self, at: &[f64]) -> Model {
        let free = self.spec.free();
        let of = |which| free.iter().position(|free| *free == which).map(|i| at[i]);
        match of(Free::Alone) {
            Some(alone_per_s) => Model::Scaling(Scaling {
                alone_per_s,
                contention: of(Free::Contention).unwrap_or_default(),
                coherency: of(Free::Coherency).unwrap_or_default(),
            }),
            None => Model::Served(Served {
                family: self.spec.family,
                servers: self.servers,
                service_s: of(Free::Service).unwrap_or_default(),
                scv: of(Free::Scv).or(self.spec.scv).unwrap_or(1.0),
                delay_s: of(Free::Delay).or(self.spec.delay_s).unwrap_or_default(),
                serial_s: of(Free::Serial).unwrap_or_default(),
                capacity: self.capacity,
            }),
        }
    }

    /// Places from which the search for the parameters begins: much of the lowest response time is service, or little; and
    /// the serial part is what limits the throughput, or it is not.
    fn starts(&self, data: &Data<'_>) -> Vec<Vec<f64>> {
        let scales = self.scales(data);
        let shares: &[f64] = if data.prior.is_some() { &[1.0] } else { &[0.9, 0.4] };
        let serial: &[f64] = if self.spec.family == Family::Serial { &[0.9, 0.3] } else { &[0.9] };
        let start = |(share, serial): (&f64, &f64)| {
            let value = |(free, scale): (&Free, &f64)| match free {
                Free::Service => match data.prior {
                    Some(prior) => prior.service_s.min(0.999 * *scale),
                    None => share * scale,
                },
                Free::Delay => 0.5 * scale * (1.0 - share),
                Free::Scv => *share,
                Free::Serial => serial * scale,
                Free::Alone => *scale,
                Free::Contention => 0.1 * share,
                Free::Coherency => 1e-3 * share * share,
            };
            self.spec.free().iter().zip(&scales).map(value).collect()
        };
        shares.iter().flat_map(|share| serial.iter().map(move |serial| (share, serial))).map(start).collect()
    }

    /// What counts as large for each parameter.
    fn scales(&self, data: &Data<'_>) -> Vec<f64> {
        let lowest_s = data.samples.iter().map(Sample::response_s).fold(f64::INFINITY, f64::min);
        let most_per_s = data.samples.iter().map(Sample::throughput_per_s).fold(0.0, f64::max);
        let alone_per_s = data.samples.first().map_or(1.0, |first| 1.0 / first.response_s());
        let servers = f64::from(self.servers);
        let service_s = match self.capacity {
            Some(_) => lowest_s,
            None => lowest_s.min(0.98 * servers / most_per_s),
        };
        let scale = |free: &Free| match free {
            Free::Service => service_s,
            Free::Delay => lowest_s,
            Free::Serial => 1.0 / most_per_s,
            Free::Alone => alone_per_s,
            Free::Scv => 1.0,
            Free::Contention => 0.1,
            Free::Coherency => 1e-3,
        };
        self.spec.free().iter().map(scale).collect()
    }

    /// What is missing between the model and the samples, each in units of its noise.
    fn residuals(&self, data: &Data<'_>, at: &[f64]) -> Vec<f64> {
        let model = self.model(at);
        let mut residuals: Vec<f64> =
            data.samples.iter().map(|sample| sample.residual(&model) / data.noise).collect();
        if let Model::Served(Served { capacity: Some(_), .. }) = model {
            residuals.extend(data.samples.iter().map(|sample| sample.lost_residual(&model)));
        }
        if let (Some(prior), Model::Served(served)) = (data.prior, &model) {
            residuals.push(libm::log(served.service_s / prior.service_s) / prior.relative_error);
        }
        residuals
    }

    fn with_problem<T>(&self, data: &Data<'_>, ask: impl FnOnce(&Problem<'_>) -> T) -> T {
        let residuals = |at: &[f64]| self.residuals(data, at);
        let scale = self.scales(data);
        let least = |(free, scale): (&Free, &f64)| match free {
            Free::Service | Free::Alone => 1e-9 * scale,
            _ => 0.0,
        };
        let low = self.spec.free().iter().zip(&scale).map(least).collect();
        ask(&Problem { residuals: &residuals, low, scale })
    }

    fn fitted(&self, data: &Data<'_>) -> Option<Minimum> {
        let starts = self.starts(data);
        self.with_problem(data, |problem| problem.minimise_from(&starts))
    }

    /// The fit that is found from a fit of nearly the same samples.
    pub(super) fn refitted(&self, data: &Data<'_>, from: &[f64]) -> Minimum {
        self.with_problem(data, |problem| problem.minimise(from))
    }
}

/// What a family is fitted to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Data<'a> {
    /// In ascending order of load.
    pub(super) samples: &'a [Sample],
    /// What is known of the service time from elsewhere.
    pub(super) prior: Option<Prior>,
    /// The size of the samples' noise in units of what each says its own is.
    pub(super) noise: f64,
}

/// A family as it fits best.
#[derive(Clone, Debug)]
pub(super) struct Fitted {
    pub(super) spec: Spec,
    pub(super) shape: Shape,
    pub(super) minimum: Minimum,
    /// The noise in units of which the sum of squares is.
    pub(super) noise: f64,
    /// All numbers of servers that the samples do not refute at 95 %, the best among them, as they fit.
    pub(super) alternatives: Vec<(Shape, Minimum)>,
    /// Whether more servers than were tried fit as well.
    pub(super) endless: bool,
    /// The number of samples and of prior values, less the fitted parameters.
    pub(super) freedom: f64,
}

impl Fitted {
    /// Fits a family; `None` where there are fewer samples than parameters, or where nothing fits.
    pub(super) fn of(spec: Spec, samples: &[Sample], prior: Option<Prior>) -> Option<Self> {
        let prior = prior.filter(|_| spec.has_servers());
        let mut data = Data { samples, prior, noise: 1.0 };
        let known = samples.iter().all(|sample| sample.noise_is_known);
        let known_points =
            samples.len() * (1 + usize::from(spec.family == Family::Room)) + usize::from(prior.is_some());
        let freedom = known_points as f64 - spec.parameters() as f64;
        if freedom < 0.0 || samples.len() < 2 {
            return None;
        }
        let mut best = best(spec, &data)?;
        // What is known beside samples of unknown noise weighs as much as that noise turns out to be small.
        if !known && prior.is_some() {
            for noise in [0.05, f64::NAN, f64::NAN] {
                let spread = (raw_squares(&best, &data) / (samples.len() as f64)).sqrt();
                data.noise = if noise.is_nan() { spread.clamp(1e-4, 1.0) } else { noise };
                best = self::best(spec, &data)?;
            }
        }
        let (shape, minimum) = best;
        let mut fitted = Self {
            spec,
            shape,
            noise: data.noise,
            alternatives: vec![(shape, minimum.clone())],
            minimum,
            endless: false,
            freedom,
        };
        if spec.fits_servers() && spec.family != Family::Room {
            fitted.walk(&data);
        }
        Some(fitted)
    }

    /// Adds the numbers of servers on both sides of the best, until the samples refute them.
    fn walk(&mut self, data: &Data<'_>) {
        let limit = self.limit(data);
        let mut at = self.shape.servers;
        while at > 1 {
            at = (at - 1).min(at - at / 10);
            match self.spec.shape(at, 0).fitted(data).filter(|minimum| minimum.sum <= limit) {
                Some(minimum) => self.alternatives.insert(0, (self.spec.shape(at, 0), minimum)),
                None => break,
            }
        }
        at = self.shape.servers;
        loop {
            at += 1 + at / 10;
            if at > MOST_SERVERS {
                self.endless = true;
                break;
            }
            match self.spec.shape(at, 0).fitted(data).filter(|minimum| minimum.sum <= limit) {
                Some(minimum) => self.alternatives.push((self.spec.shape(at, 0), minimum)),
                None => break,
            }
        }
    }

    /// The sum of squares beyond which samples refute a model at 95 % (Bates and Watts 1988, section 6.1).
    fn limit(&self, data: &Data<'_>) -> f64 {
        if self.freedom <= 0.0 {
            return f64::INFINITY;
        }
        let t = student_t(self.freedom, 0.975);
        let variance = self.variance(data.samples);
        self.minimum.sum + variance * t * t
    }

    /// The noise of the samples in units of what they say it is: as found, but not less than they say.
    pub(super) fn variance(&self, samples: &[Sample]) -> f64 {
        let found = self.minimum.sum / self.freedom.max(1.0);
        let known = samples.iter().all(|sample| sample.noise_is_known);
        if known { found.max(1.0) } else { found }
    }

    pub(super) fn model(&self) -> Model {
        self.shape.model(&self.minimum.at)
    }

    /// The 95 % interval of each measured parameter by profile likelihood, over all numbers of servers that are not
    /// refuted. `None` without a sample to spare.
    pub(super) fn intervals(&self, samples: &[Sample], prior: Option<Prior>) -> Option<Vec<(f64, f64)>> {
        if self.freedom < 1.0 {
            return None;
        }
        let data = self.data(samples, prior);
        // As in `limit`: where the noise is known to be larger than it looks, its variance is, but not the least sum.
        let (least, variance) = (self.minimum.sum, self.variance(samples));
        let noise = Noise { least, variance, freedom: self.freedom };
        let of = |(shape, minimum): &(Shape, Minimum)| {
            shape.with_problem(&data, |problem| {
                let errors = problem.standard_errors(minimum, self.freedom);
                let side = |i: usize| problem.interval(minimum, i, errors[i], noise);
                // An end that is negligible relative to the value is the bound, which keeps divisions possible.
                let whole =
                    |(low, high): (f64, f64), value: f64| (if low < 1e-6 * value { 0.0 } else { low }, high);
                (0..minimum.at.len()).map(|i| whole(side(i), minimum.at[i])).collect::<Vec<_>>()
            })
        };
        let join = |all: Vec<(f64, f64)>, one: Vec<(f64, f64)>| {
            all.iter().zip(one).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))).collect()
        };
        self.some_alternatives().map(of).reduce(join)
    }

    /// The best, the fewest servers and the most, and some between: intervals change little from one number to the next.
    fn some_alternatives(&self) -> impl Iterator<Item = &(Shape, Minimum)> {
        let last = self.alternatives.len() - 1;
        let step = last.div_ceil(MOST_PROFILES).max(1);
        let is_chosen = move |&(i, (shape, _)): &(usize, &(Shape, Minimum))| {
            i.is_multiple_of(step) || i == last || *shape == self.shape
        };
        self.alternatives.iter().enumerate().filter(is_chosen).map(|(_, one)| one)
    }

    pub(super) fn data<'a>(&self, samples: &'a [Sample], prior: Option<Prior>) -> Data<'a> {
        let prior = prior.filter(|_| self.spec.has_servers());
        Data { samples, prior, noise: self.noise }
    }

    /// Fewest and most servers that are not refuted; `None` for the most if there is no end.
    pub(super) fn servers_interval(&self) -> Option<(u32, Option<u32>)> {
        let (first, last) = (self.alternatives.first()?, self.alternatives.last()?);
        self.spec.fits_servers().then_some((first.0.servers, (!self.endless).then_some(last.0.servers)))
    }

    /// Akaike's criterion for few samples.
    pub(super) fn aicc(&self, samples: &[Sample]) -> Option<f64> {
        let data = Data { samples, prior: None, noise: 1.0 };
        let squares = raw_squares(&(self.shape, self.minimum.clone()), &data);
        let value = aicc(squares, samples.len(), self.spec.parameters() + 1);
        value.is_finite().then_some(value)
    }
}

/// The sum of squares of the samples' own residuals, as far as each says its noise is.
fn raw_squares((shape, minimum): &(Shape, Minimum), data: &Data<'_>) -> f64 {
    let model = shape.model(&minimum.at);
    data.samples.iter().map(|sample| sample.residual(&model).powi(2)).sum()
}

/// The counts that fit best, with their parameters: a coarse search over servers and room, then a fine one.
fn best(spec: Spec, data: &Data<'_>) -> Option<(Shape, Minimum)> {
    let fit = |servers: u32, room: u64| {
        let shape = spec.shape(servers, room);
        shape.fitted(data).map(|minimum| (shape, minimum))
    };
    let least = |fits: Vec<Option<(Shape, Minimum)>>| {
        fits.into_iter().flatten().min_by(|a, b| a.1.sum.total_cmp(&b.1.sum))
    };
    let rooms: &[u64] = if spec.fits_room() { &ROOM } else { &ROOM[..1] };
    let servers: &[u32] = match (&spec.servers, spec.fits_servers()) {
        (Some(servers), _) => std::slice::from_ref(servers),
        (None, false) => &SERVERS[..1],
        (None, true) if spec.family == Family::Room => &SERVERS[..8],
        (None, true) => &SERVERS,
    };
    let coarse = servers.iter().flat_map(|&servers| rooms.iter().map(move |&room| fit(servers, room)));
    let mut found = least(coarse.collect())?;
    // Between the neighbours of the best of a grid that doubles, steps are halved until they are one.
    let (mut by_servers, mut by_room) = (0, 0);
    if spec.fits_servers() {
        by_servers = found.0.servers / 4;
    }
    let room_of = |shape: &Shape| shape.capacity.map_or(0, |capacity| capacity - u64::from(shape.servers));
    if spec.fits_room() {
        by_room = room_of(&found.0) / 2;
    }
    while by_servers > 0 || by_room > 0 {
        let (m, room) = (found.0.servers, room_of(&found.0));
        let around = [
            fit(m.saturating_sub(by_servers).max(1), room),
            fit(m + by_servers, room),
            fit(m, room.saturating_sub(by_room)),
            fit(m, room + by_room),
        ];
        let next = least(around.into_iter().collect()).filter(|next| next.1.sum < found.1.sum);
        match next {
            Some(next) => found = next,
            None => (by_servers, by_room) = (by_servers / 2, by_room / 2),
        }
    }
    Some(found)
}

/// What a sample says it saw, and what a model says of it.
pub(super) fn predicted(model: &Model, sample: &Sample) -> Option<f64> {
    match sample.seen {
        SampleQuantity::Response { .. } => model.response_s(&sample.load),
        SampleQuantity::Throughput { .. } => model.throughput_per_s(&sample.load),
    }
}
