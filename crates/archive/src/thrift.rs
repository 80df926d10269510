//! The structures in the headers of Parquet files: the compact protocol of Thrift
//! (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>), as far as Parquet uses it.

/// A value, with what the checks of a Parquet file need of it.
#[derive(Debug)]
pub(crate) enum Value {
    Bool,
    /// A number of up to 64 bits.
    Whole(i64),
    List(Vec<Self>),
    Fields(Fields),
    Other,
}

/// The fields of a structure, in their order.
#[derive(Debug, Default)]
pub(crate) struct Fields(pub(crate) Vec<(i16, Value)>);

impl Fields {
    /// The last value of a field, which is the one that counts.
    pub(crate) fn get(&self, id: i16) -> Option<&Value> {
        self.0.iter().rfind(|(field, _)| *field == id).map(|(_, value)| value)
    }

    pub(crate) fn whole(&self, id: i16) -> Option<i64> {
        if let Value::Whole(number) = self.get(id)? { Some(*number) } else { None }
    }
}

/// Structures within structures; Parquet has seven.
const MOST_DEPTH: usize = 16;

/// The rest of the bytes.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// A structure; `None` where the bytes are no such one.
    pub(crate) fn fields(&mut self) -> Option<Fields> {
        self.fields_at(MOST_DEPTH)
    }

    fn fields_at(&mut self, depth: usize) -> Option<Fields> {
        let depth = depth.checked_sub(1)?;
        let mut fields = Fields::default();
        let mut id = 0i16;
        loop {
            let header = self.byte()?;
            let kind = header & 0x0f;
            if kind == 0 {
                return Some(fields);
            }
            id = match header >> 4 {
                0 => i16::try_from(self.whole()?).ok()?,
                step => id.checked_add(step.into())?,
            };
            // A field has its truth in its kind, an element of a list in a byte.
            let value = if kind <= 2 { Value::Bool } else { self.value(kind, depth)? };
            fields.0.push((id, value));
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Option<Value> {
        Some(match kind {
            1 | 2 => self.bytes(1).map(|_| Value::Bool)?,
            3 => self.bytes(1).map(|_| Value::Other)?,
            4..=6 => Value::Whole(self.whole()?),
            7 => self.bytes(8).map(|_| Value::Other)?,
            8 => {
                let length = usize::try_from(self.number()?).ok()?;
                self.bytes(length).map(|_| Value::Other)?
            }
            9 | 10 => self.list(depth)?,
            12 => Value::Fields(self.fields_at(depth)?),
            _ => return None,
        })
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        let header = self.byte()?;
        let length = match header >> 4 {
            15 => usize::try_from(self.number()?).ok()?,
            length => length.into(),
        };
        // Each element has a byte or more, so a length beyond the bytes ends at their end.
        (0..length).map(|_| self.value(header & 0x0f, depth)).collect::<Option<_>>().map(Value::List)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Seven bits in a byte, the lowest first.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// A number with a sign, which alternate.
    fn whole(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}
