//! `--class`: a class of requests in one option.

use std::str::FromStr;

use anyhow::{Context, bail};
use kendall_station::{Class, Kind, Law};

use crate::written::{self, number, positive, positive_rate, positive_time_s};

/// A class as the user wrote it; missing parts are those of the station.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClassOption {
    name: String,
    share: f64,
    weight: f64,
    service_s: Option<f64>,
    service_scv: Option<f64>,
    service: Option<Kind>,
}

const KEYS: &str = "name, share, weight, service-time, service-rate, service-scv and service";

impl FromStr for ClassOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut name, mut share) = (None, None);
        let mut class = Self {
            name: String::new(),
            share: 0.0,
            weight: 1.0,
            service_s: None,
            service_scv: None,
            service: None,
        };
        for pair in written::pairs(text) {
            let (key, value) = pair?;
            match key {
                "name" => name = Some(value.to_owned()),
                "share" => share = Some(positive(key, value)?),
                "weight" => class.weight = positive(key, value)?,
                "service-time" => class.service_s = Some(positive_time_s(key, value)?),
                "service-rate" => class.service_s = Some(1.0 / positive_rate(key, value)?),
                "service-scv" => class.service_scv = Some(number(key, value)?),
                "service" => class.service = Some(value.parse().map_err(|error| format!("{error}"))?),
                _ => return Err(format!("a class has no {key:?}; it has {KEYS}")),
            }
        }
        let lacks = |what| format!("it has no {what}; write for example name=urgent,share=0.2,weight=10");
        Ok(Self {
            name: name.ok_or_else(|| lacks("name"))?,
            share: share.ok_or_else(|| lacks("share"))?,
            ..class
        })
    }
}

impl ClassOption {
    /// Whether the class sets a service time.
    pub(crate) fn has_service(&self) -> bool {
        self.service_s.is_some()
    }

    /// The class at a station whose notation has this kind of service, and whose options this variation.
    pub(crate) fn class(&self, kind: Kind, scv: Option<f64>) -> anyhow::Result<Class> {
        if self.service_s.is_none() && (self.service.is_some() || self.service_scv.is_some()) {
            bail!("class {:?} has a distribution of service but no service-time; give one", self.name);
        }
        let law = |mean_s| -> anyhow::Result<Law> {
            let kind = self.service.unwrap_or(kind);
            let scv = self.service_scv.or_else(|| scv.filter(|_| self.service.is_none()));
            kind.law(mean_s, scv).with_context(|| format!("see service-scv of class {:?}", self.name))
        };
        Ok(Class {
            name: self.name.clone(),
            share: self.share,
            weight: self.weight,
            service: self.service_s.map(law).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_reads_with_what_the_station_leaves_to_it() {
        let class: ClassOption = "name=urgent, share=0.2,weight=10,service-rate=100".parse().unwrap();
        let urgent = class.class(Kind::Exponential, None).unwrap();
        assert_eq!((urgent.name.as_str(), urgent.share, urgent.weight), ("urgent", 0.2, 10.0));
        assert_eq!(urgent.service, Some(Law::Exponential { mean_s: 0.01 }));
        let constant: ClassOption = "name=a,share=1,service=D,service-time=2".parse().unwrap();
        assert_eq!(
            constant.class(Kind::General, Some(3.0)).unwrap().service,
            Some(Law::Constant { mean_s: 2.0 })
        );
        let plain: ClassOption = "name=b,share=0.5".parse().unwrap();
        assert_eq!(plain.class(Kind::Exponential, None).unwrap().service, None);
    }

    #[test]
    fn faults_are_named() {
        for (text, part) in [
            ("share=1", "no name"),
            ("name=a", "no share"),
            ("name=a,share", "key=value"),
            ("name=a,share=0", "above zero"),
            ("name=a,share=NaN", "a number"),
            ("name=a,share=1,color=red", "no \"color\""),
            ("name=a,share=1,service=Q", "not a law"),
        ] {
            let why = text.parse::<ClassOption>().unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
        let lawless: ClassOption = "name=a,share=1,service=D".parse().unwrap();
        assert!(lawless.class(Kind::Exponential, None).unwrap_err().to_string().contains("no service-time"));
    }
}
