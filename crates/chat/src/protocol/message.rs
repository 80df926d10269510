//! Kinds of messages as enums: one declaration gives the type, its numbers on the wire, and how it is written and read.

/// Declares an enum of messages. Each variant has the number of its kind, and fields that are written one after the other.
macro_rules! messages {
    (
        $(#[$about:meta])*
        $name:ident {
            $( $(#[$doc:meta])* $kind:literal => $variant:ident $({ $( $(#[$field_doc:meta])* $field:ident: $type:ty, )* })?, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $( $(#[$doc])* $variant $({ $( $(#[$field_doc])* $field: $type, )* })?, )*
        }

        impl $name {
            /// How many kinds there are.
            #[cfg(test)]
            pub(crate) const KINDS: usize = [$($kind),*].len();

            /// The number of its kind.
            pub(crate) fn kind(&self) -> u8 {
                match self { $( Self::$variant { .. } => $kind, )* }
            }

            /// Appends its fields.
            pub(crate) fn put(&self, bytes: &mut Vec<u8>) {
                let _ = &bytes;
                match self {
                    $( Self::$variant $({ $($field,)* })? => { $( $( $crate::protocol::field::Field::put($field, bytes); )* )? } )*
                }
            }

            /// Reads the fields of a kind from the beginning of some bytes.
            pub(crate) fn take(kind: u8, from: &mut &[u8]) -> Option<Self> {
                let _ = &from;
                match kind {
                    $( $kind => Some(Self::$variant $({ $($field: $crate::protocol::field::Field::take(from)?,)* })?), )*
                    _ => None,
                }
            }

            /// A message of a kind, for tests.
            #[cfg(test)]
            pub(crate) fn draw(kind: u8, draw: &mut dyn FnMut() -> u8) -> Option<Self> {
                let _ = &draw;
                match kind {
                    $( $kind => Some(Self::$variant $({ $($field: $crate::protocol::field::Field::draw(draw),)* })?), )*
                    _ => None,
                }
            }
        }
    };
}

/// Declares an enum without fields that is one byte on the wire.
macro_rules! codes {
    ( $(#[$about:meta])* $name:ident { $( $(#[$doc:meta])* $code:literal => $variant:ident, )* } ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[$doc])* $variant, )* }

        impl $crate::protocol::field::Field for $name {
            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.push(match self { $( Self::$variant => $code, )* });
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                match u8::take(from)? {
                    $( $code => Some(Self::$variant), )*
                    _ => None,
                }
            }

            #[cfg(test)]
            fn draw(draw: &mut dyn FnMut() -> u8) -> Self {
                let all = [$( Self::$variant, )*];
                all[usize::from(draw()) % all.len()]
            }
        }
    };
}

pub(super) use {codes, messages};
