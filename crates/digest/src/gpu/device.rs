//! The choice of where to search.

use std::fmt;
use std::str::FromStr;

/// The device to search on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Device {
    /// On the processor, and on a graphics card if one is found.
    #[default]
    Auto,
    /// On the processor alone.
    Cpu,
    /// On a graphics card and the processor; it is an error if no card is found.
    Gpu,
}

impl Device {
    /// All choices.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Cpu, Self::Gpu];

    /// The device's name, as written after `--device`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for an unknown name of a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown device {0:?}; known are auto, cpu and gpu")]
pub struct UnknownDevice(pub String);

impl FromStr for Device {
    type Err = UnknownDevice;

    fn from_str(name: &str) -> Result<Self, UnknownDevice> {
        Self::ALL.into_iter().find(|device| device.name() == name).ok_or_else(|| UnknownDevice(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_they_are_written() {
        for device in Device::ALL {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        let error = "cuda".parse::<Device>().unwrap_err();
        assert_eq!(error.to_string(), "unknown device \"cuda\"; known are auto, cpu and gpu");
    }
}
