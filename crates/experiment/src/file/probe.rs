//! `[probe]`: how trials are watched.

use toml::Spanned;
use toml::de::DeValue;

use super::Reader;
use super::items::in_order;
use crate::fault::Fault;
use crate::probing::Probing;
use kendall_system::{Kind, Value};

const KEYS: [&str; 2] = ["every", "profile"];
/// The shortest interval: shorter ones cost more than they add.
const LEAST_US: u128 = 1_000;
/// The most samples per second: they cost some 3 % of the sampled time.
const MOST_HZ: u64 = 1_000;

impl Reader<'_> {
    pub(super) fn probe(&self, item: &Spanned<DeValue<'_>>) -> Result<Probing, Fault> {
        let mut probing = Probing::default();
        for (key, place, value) in in_order(self.table("probe", item)?) {
            match (key, value.get_ref()) {
                ("every", DeValue::String(word)) if word == "off" => probing.every = None,
                ("every", _) => {
                    let Value::Time(every) = self.value("every", &Kind::Time, value)? else {
                        unreachable!("a time is a time")
                    };
                    if every.as_micros() < LEAST_US {
                        return Err(self.fault(value.span(), "every must be 1ms or longer, or \"off\""));
                    }
                    probing.every = Some(every);
                }
                ("profile", DeValue::Boolean(false)) => probing.profile_hz = None,
                ("profile", DeValue::Boolean(true)) => probing.profile_hz = probing.with_profile().profile_hz,
                ("profile", DeValue::Integer(_)) => {
                    let kind = Kind::Whole { least: 1, most: MOST_HZ };
                    let Value::Whole(hz) = self.value("profile", &kind, value)? else {
                        unreachable!("a whole number is one")
                    };
                    probing.profile_hz = Some(hz as u32);
                }
                ("profile", _) => {
                    let message = "profile must be true, false, or how often a second stacks are sampled";
                    return Err(self.fault(value.span(), message));
                }
                _ => return Err(self.unknown(key, &place, "in [probe]", KEYS)),
            }
        }
        if let (None, Some(_)) = (probing.every, probing.profile_hz) {
            let message = "a profile is taken while the trial is watched; set every to a time";
            return Err(self.fault(item.span(), message));
        }
        Ok(probing)
    }
}
