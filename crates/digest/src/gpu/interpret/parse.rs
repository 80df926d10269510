//! Parses the text of a module and rejects everything that is not exactly right.

use std::collections::HashMap;

use super::{Instruction, Kernel, Opcode, Source, Special};
use crate::gpu::launch::BLOCK_THREADS;

/// The kind of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A register that is set, by type.
    To(Type),
    /// A register that is read, by type.
    From(Type),
    /// A 32-bit register or a number.
    Word,
    /// A number less than this.
    Below(u32),
    Special,
    /// `[launch+n]`, of a value of this many bytes.
    Parameter(usize),
    /// `[%register+n]`.
    Address,
    Label,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Predicate,
    Bits32,
    Bits64,
}

/// The operands that an instruction has.
fn form(opcode: &str) -> Option<(Opcode, &'static [Kind])> {
    use Kind::{Address, Below, From, Label, Parameter, To, Word};
    use Type::{Bits32, Bits64, Predicate};
    Some(match opcode {
        "mov.u32" => (Opcode::Move, &[To(Bits32), Kind::Special]),
        "add.u32" => (Opcode::Add, &[To(Bits32), Word, Word]),
        "mul.lo.u32" => (Opcode::Multiply, &[To(Bits32), Word, Word]),
        "mad.lo.u32" => (Opcode::MultiplyAdd, &[To(Bits32), Word, Word, Word]),
        "min.u32" => (Opcode::Minimum, &[To(Bits32), Word, Word]),
        "shf.r.wrap.b32" => (Opcode::FunnelRight, &[To(Bits32), Word, Word, Below(32)]),
        "shr.u32" => (Opcode::ShiftRight, &[To(Bits32), Word, Below(32)]),
        "lop3.b32" => (Opcode::Logic3, &[To(Bits32), Word, Word, Word, Below(256)]),
        "prmt.b32" => (Opcode::Permute, &[To(Bits32), Word, Word, Below(0x1_0000)]),
        "setp.eq.u32" => (Opcode::Equal, &[To(Predicate), Word, Word]),
        "setp.eq.or.u32" => (Opcode::EqualOr, &[To(Predicate), Word, Word, From(Predicate)]),
        "setp.ne.u32" => (Opcode::NotEqual, &[To(Predicate), Word, Word]),
        "setp.lt.u32" => (Opcode::Less, &[To(Predicate), Word, Word]),
        "setp.ge.u32" => (Opcode::NotLess, &[To(Predicate), Word, Word]),
        "ld.param.u32" => (Opcode::LoadParameter32, &[To(Bits32), Parameter(4)]),
        "ld.param.u64" => (Opcode::LoadParameter64, &[To(Bits64), Parameter(8)]),
        "cvta.to.global.u64" => (Opcode::ToGlobal, &[To(Bits64), From(Bits64)]),
        "ld.volatile.global.u32" => (Opcode::Load, &[To(Bits32), Address]),
        "atom.global.min.u32" => (Opcode::AtomicMinimum, &[To(Bits32), Address, From(Bits32)]),
        "bra" => (Opcode::Branch, &[Label]),
        "ret" => (Opcode::Return, &[]),
        _ => return None,
    })
}

/// The kernels of a module, or an error.
pub(in crate::gpu) fn parse(text: &str) -> Result<Vec<Kernel>, String> {
    let mut tokens = Tokens { left: text };
    for expected in [".version", "7.0", ".target", "sm_70", ".address_size", "64"] {
        tokens.expect(expected)?;
    }
    let mut kernels: Vec<Kernel> = Vec::new();
    while !tokens.peek().is_empty() {
        let kernel = Reader::default().kernel(&mut tokens)?;
        if kernels.iter().any(|other| other.name == kernel.name) {
            return Err(format!("there are two kernels {}", kernel.name));
        }
        kernels.push(kernel);
    }
    Ok(kernels)
}

/// Words and single marks.
struct Tokens<'a> {
    left: &'a str,
}

impl<'a> Tokens<'a> {
    fn peek(&self) -> &'a str {
        let left = self.left.trim_start();
        let in_word = |c: char| c.is_ascii_alphanumeric() || "_.%$".contains(c);
        let length = left.find(|c| !in_word(c)).unwrap_or(left.len());
        let length = if length == 0 { left.chars().next().map_or(0, char::len_utf8) } else { length };
        &left[..length]
    }

    fn next(&mut self) -> &'a str {
        let token = self.peek();
        self.left = &self.left.trim_start()[token.len()..];
        token
    }

    fn takes(&mut self, mark: &str) -> bool {
        let found = self.peek() == mark;
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, expected: &str) -> Result<(), String> {
        match self.next() {
            token if token == expected => Ok(()),
            token => Err(format!("found {token:?} instead of {expected:?}, before {:.40?}", self.left)),
        }
    }

    fn number(&mut self) -> Result<u32, String> {
        let token = self.next();
        let number = match token.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => token.parse(),
        };
        number.map_err(|_| format!("{token:?} is not a number"))
    }

    fn name(&mut self) -> Result<&'a str, String> {
        let token = self.next();
        let starts_well = token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '%');
        let goes_on_well = token.chars().skip(1).all(|c| c.is_ascii_alphanumeric() || c == '_');
        if starts_well && goes_on_well && token != "%" {
            Ok(token)
        } else {
            Err(format!("{token:?} is not a name"))
        }
    }
}

/// A kernel while it is read.
#[derive(Default)]
struct Reader {
    parameter_bytes: usize,
    registers: Vec<(String, Type)>,
    places: HashMap<String, usize>,
    /// The target of each label.
    labels: HashMap<String, usize>,
    /// The branches to resolve: instruction and label.
    branches: Vec<(usize, String)>,
    instructions: Vec<Instruction>,
}

impl Reader {
    fn kernel(mut self, tokens: &mut Tokens<'_>) -> Result<Kernel, String> {
        tokens.expect(".visible")?;
        tokens.expect(".entry")?;
        let name = tokens.name()?.to_owned();
        for expected in ["(", ".param", ".align", "8", ".b8", "launch", "["] {
            tokens.expect(expected)?;
        }
        self.parameter_bytes = tokens.number()? as usize;
        if self.parameter_bytes > 4096 {
            return Err("the parameter is larger than all cards take".into());
        }
        for expected in ["]", ")", ".maxntid", &BLOCK_THREADS.to_string(), ",", "1", ",", "1", "{"] {
            tokens.expect(expected)?;
        }
        while !tokens.takes("}") {
            if tokens.takes(".reg") {
                self.declare(tokens)?;
            } else {
                self.statement(tokens)?;
            }
        }
        self.end(name)
    }

    fn declare(&mut self, tokens: &mut Tokens<'_>) -> Result<(), String> {
        let kind = match tokens.next() {
            ".pred" => Type::Predicate,
            ".b32" => Type::Bits32,
            ".b64" => Type::Bits64,
            other => return Err(format!("{other:?} is not a type of registers")),
        };
        loop {
            let name = tokens.name()?;
            let names: Vec<String> = if tokens.takes("<") {
                let count = tokens.number()?;
                tokens.expect(">")?;
                (0..count).map(|number| format!("{name}{number}")).collect()
            } else {
                vec![name.into()]
            };
            for name in names {
                if !name.starts_with('%') || self.places.insert(name.clone(), self.registers.len()).is_some()
                {
                    return Err(format!("{name} is not a valid name, or is declared twice"));
                }
                self.registers.push((name, kind));
            }
            if !tokens.takes(",") {
                return tokens.expect(";");
            }
        }
    }

    /// A label or an instruction.
    fn statement(&mut self, tokens: &mut Tokens<'_>) -> Result<(), String> {
        let guard = match tokens.takes("@") {
            true => Some(self.register(tokens, Type::Predicate)?),
            false => None,
        };
        let word = tokens.next();
        if guard.is_none() && tokens.takes(":") {
            return match self.labels.insert(word.into(), self.instructions.len()) {
                None => Ok(()),
                Some(_) => Err(format!("there are two labels {word}")),
            };
        }
        let (opcode, kinds) = form(word).ok_or_else(|| format!("{word:?} is not a known instruction"))?;
        let mut instruction = Instruction { opcode, guard, to: None, sources: [Source::Absent; 4] };
        for (place, kind) in kinds.iter().enumerate() {
            if place > 0 {
                tokens.expect(",")?;
            }
            self.operand(*kind, tokens, &mut instruction).map_err(|why| format!("{word}: {why}"))?;
        }
        tokens.expect(";")?;
        self.instructions.push(instruction);
        Ok(())
    }

    fn operand(&mut self, kind: Kind, tokens: &mut Tokens<'_>, into: &mut Instruction) -> Result<(), String> {
        let source = match kind {
            Kind::To(kind) => {
                into.to = Some(self.register(tokens, kind)?);
                return Ok(());
            }
            Kind::From(kind) => Source::Register(self.register(tokens, kind)?),
            Kind::Word if tokens.peek().starts_with('%') => {
                Source::Register(self.register(tokens, Type::Bits32)?)
            }
            Kind::Word => Source::Number(tokens.number()?.into()),
            Kind::Below(limit) => match tokens.number()? {
                number if number < limit => Source::Number(number.into()),
                number => return Err(format!("{number} is not below {limit}")),
            },
            Kind::Special => Source::Special(match tokens.next() {
                "%tid.x" => Special::Thread,
                "%ntid.x" => Special::Threads,
                "%ctaid.x" => Special::Block,
                "%nctaid.x" => Special::Blocks,
                other => return Err(format!("{other} is not a special register")),
            }),
            Kind::Parameter(bytes) => {
                tokens.expect("[")?;
                tokens.expect("launch")?;
                let offset = offset(tokens)?;
                if !offset.is_multiple_of(bytes) || offset + bytes > self.parameter_bytes {
                    return Err(format!("no {bytes} bytes at {offset} of the parameter"));
                }
                Source::Number(offset as u64)
            }
            Kind::Address => {
                tokens.expect("[")?;
                into.push(Source::Register(self.register(tokens, Type::Bits64)?));
                Source::Number(offset(tokens)? as u64)
            }
            Kind::Label => {
                self.branches.push((self.instructions.len(), tokens.name()?.into()));
                return Ok(());
            }
        };
        into.push(source);
        Ok(())
    }

    fn register(&self, tokens: &mut Tokens<'_>, kind: Type) -> Result<usize, String> {
        let name = tokens.name()?;
        let place = *self.places.get(name).ok_or_else(|| format!("{name} is not declared"))?;
        let (_, declared) = self.registers[place];
        if declared == kind { Ok(place) } else { Err(format!("{name} is {declared:?}, not {kind:?}")) }
    }

    /// Resolves the branches, and rejects unused labels and registers.
    fn end(mut self, name: String) -> Result<Kernel, String> {
        for (at, label) in &self.branches {
            let target = *self.labels.get(label).ok_or_else(|| format!("there is no label {label}"))?;
            self.instructions[*at].push(Source::Number(target as u64));
        }
        // A label without a jump could serve the reader; the kernels have none.
        if let Some(label) =
            self.labels.keys().find(|label| !self.branches.iter().any(|(_, to)| to == *label))
        {
            return Err(format!("nothing jumps to {label}"));
        }
        for (place, (register, _)) in self.registers.iter().enumerate() {
            if !self.instructions.iter().any(|instruction| instruction.to == Some(place)) {
                return Err(format!("{register} is never set"));
            }
        }
        match self.instructions.last() {
            Some(Instruction { opcode: Opcode::Return, guard: None, .. }) => {}
            _ => return Err("the kernel does not end with ret".into()),
        }
        let registers = self.registers.into_iter().map(|(name, _)| name).collect();
        Ok(Kernel { name, parameter_bytes: self.parameter_bytes, registers, instructions: self.instructions })
    }
}

/// The rest of an address: `+n]` or `]`.
fn offset(tokens: &mut Tokens<'_>) -> Result<usize, String> {
    let offset = if tokens.takes("+") { tokens.number()? as usize } else { 0 };
    tokens.expect("]")?;
    Ok(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::ptx::{Sums, module};

    #[test]
    fn it_accepts_the_kernels_and_rejects_each_error() {
        let text = module(Sums::Multiplier);
        let names: Vec<_> = parse(&text).unwrap().into_iter().map(|kernel| kernel.name).collect();
        assert_eq!(names, ["kendall_sha256_1", "kendall_sha256_8", "kendall_sha256_64"]);
        for (right, wrong, objection) in [
            (".target sm_70", ".target sm_99", "instead of"),
            ("kendall_sha256_8(", "kendall_sha256_1(", "two kernels"),
            (".reg .pred %test", ".reg .b16 %test", "not a type"),
            ("%stride, %until", "%stride, %stride", "declared twice"),
            (" %seen,", " %seen, %spare,", "%spare is never set"),
            ("LOOK:", "LOOKS:", "no label LOOK"),
            ("DONE:", "LOOK:", "two labels LOOK"),
            ("NEXT:", "NEXT: AGAIN:", "nothing jumps to AGAIN"),
            ("mov.u32 %index, %tid.x", "mov.u32 %index, %tid.w", "not a special register"),
            ("min.u32 %until, %until, %count", "min.u32 %until, %stop, %count", "is Bits64, not Bits32"),
            ("@%test bra LOOK", "@%index bra LOOK", "is Bits32, not Predicate"),
            ("prmt.b32", "prmt.u32", "not a known instruction"),
            ("%low, 0, 0x0123;", "%low, 0, 0x0123", "instead of \";\""),
            ("%low, 0, 0x0123;", "%low, 0, 0x10123;", "is not below"),
            ("%low, 0, 0x0123;", "%low, 0x0123;", "instead of \",\""),
            ("%low, 0, 0x0123;", "%low, zero, 0x0123;", "not a number"),
            ("0x96", "0x196", "is not below 256"),
            ("[launch+16]", "[launch+18]", "no 4 bytes at 18"),
            ("[launch+8]", "[launch+460]", "no 8 bytes at 460"),
            ("%index, %until;", "%indx, %until;", "%indx is not declared"),
            ("%index;\nret;\n}", "%index;\n}", "does not end with ret"),
        ] {
            assert!(text.contains(right), "{right}");
            let Err(why) = parse(&text.replacen(right, wrong, 1)) else { panic!("it accepts {wrong}") };
            assert!(why.contains(objection), "{wrong}: {why}");
        }
    }
}
