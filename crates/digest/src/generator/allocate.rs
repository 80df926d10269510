//! Assigns registers to a turn's operations: the value that is needed last moves to a slot of the frame (Belady).

use super::graph::{Graph, Op, Source, Value};
use super::stages::Staged;

/// A vector register, by number.
pub(crate) type Register = usize;

/// Where an instruction reads or writes a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Register(Register),
    /// A slot of the kernel's frame.
    Slot(usize),
    Source(Source),
}

/// One instruction; at most one of its locations is in memory.
#[derive(Clone, Debug)]
pub(crate) enum Instruction {
    Move {
        to: Location,
        from: Location,
    },
    /// The operands are in the order of the operation's arguments.
    Compute {
        op: Op,
        to: Register,
        from: Vec<Location>,
    },
}

/// The instructions of a turn.
pub(crate) struct Turn {
    pub(crate) instructions: Vec<Instruction>,
    /// The slots that the frame must have.
    pub(crate) slots: usize,
    /// The register with the result at the end.
    pub(crate) result: Register,
}

/// Where a carried value is at the start and at the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Register(Register),
    Slot(usize),
}

/// The vector registers of AVX-512.
pub(crate) const REGISTERS: usize = 32;
/// A value that is used again within this many operations is loaded once instead of read from memory twice.
const KEEP_WITHIN: usize = 40;
/// The number of rounds in which the homes of carried values move to where the turn has left them.
const ROUNDS: usize = 12;

/// Assigns registers to operations in this order.
pub(crate) fn allocate(staged: &Staged, order: &[Value]) -> Turn {
    let uses = Uses::new(staged, order);
    let carried: Vec<Value> = staged.graph.values().filter(|value| uses.is_carried[value.0]).collect();
    let mut homes: Vec<(Value, Home)> = carried.into_iter().zip((0..).map(Home::Slot)).collect();
    let mut best: Option<Turn> = None;
    for _ in 0..ROUNDS {
        let (turn, left) = Allocator::run(staged, order, &uses, &homes);
        if best.as_ref().is_none_or(|best| turn.instructions.len() < best.instructions.len()) {
            best = Some(turn);
        }
        homes = settle(&homes, &left);
    }
    best.expect("there is at least one round")
}

/// Homes in the registers where the values were left, where possible; the last two registers stay free at the
/// turn's end.
fn settle(homes: &[(Value, Home)], left: &[Option<Register>]) -> Vec<(Value, Home)> {
    let usable = REGISTERS - 2;
    let mut free: Vec<Register> = (0..usable).filter(|r| !left.contains(&Some(*r))).collect();
    let mut slots = 0..;
    let place = |(&(value, _), left): (&(Value, Home), &Option<Register>)| {
        let register = left.and_then(|r| if r < usable { Some(r) } else { free.pop() });
        let slot = || Home::Slot(slots.next().expect("slots do not end"));
        (value, register.map_or_else(slot, Home::Register))
    };
    homes.iter().zip(left).map(place).collect()
}

/// The instants at which each value is used.
struct Uses {
    /// The positions in the order, ascending.
    at: Vec<Vec<usize>>,
    /// The place at which the value is computed, if it is.
    made: Vec<Option<usize>>,
    is_carried: Vec<bool>,
    length: usize,
}

impl Uses {
    fn new(staged: &Staged, order: &[Value]) -> Self {
        let count = staged.graph.nodes.len();
        let mut uses = Self {
            at: vec![Vec::new(); count],
            made: vec![None; count],
            is_carried: vec![false; count],
            length: order.len(),
        };
        for (place, &user) in order.iter().enumerate() {
            uses.made[user.0] = Some(place);
            for &value in staged.graph.arguments(user) {
                uses.at[value.0].push(place);
                uses.is_carried[value.0] |= staged.is_carried(value, user);
            }
        }
        uses.at[staged.result.0].push(order.len());
        uses
    }

    /// When the value that exists after `place` is next used; a carried one may be used in the next turn.
    fn next(&self, value: Value, place: usize) -> Option<usize> {
        let at = &self.at[value.0];
        let made = self.made[value.0].filter(|&made| made > place);
        match at.iter().find(|&&at| at > place) {
            Some(&at) => made.is_none_or(|made| at <= made).then_some(at),
            None if made.is_none() && self.is_carried[value.0] => Some(self.length + 1 + at[0]),
            None => None,
        }
    }
}

/// The place of a value while the turn runs.
#[derive(Clone, Copy, Default)]
struct Whereabouts {
    register: Option<Register>,
    slot: Option<usize>,
    /// Whether the slot already holds the value.
    stored: bool,
}

struct Allocator<'a> {
    graph: &'a Graph,
    uses: &'a Uses,
    homes: &'a [(Value, Home)],
    held: Vec<Option<Value>>,
    whereabouts: Vec<Whereabouts>,
    free_slots: Vec<usize>,
    slots: usize,
    instructions: Vec<Instruction>,
}

impl<'a> Allocator<'a> {
    /// The turn, and the register of each carried value before it was brought home.
    fn run(
        staged: &'a Staged,
        order: &[Value],
        uses: &'a Uses,
        homes: &'a [(Value, Home)],
    ) -> (Turn, Vec<Option<Register>>) {
        let mut allocator = Self {
            graph: &staged.graph,
            uses,
            homes,
            held: vec![None; REGISTERS],
            whereabouts: vec![Whereabouts::default(); staged.graph.nodes.len()],
            free_slots: Vec::new(),
            slots: 0,
            instructions: Vec::new(),
        };
        for &(value, home) in homes {
            match home {
                Home::Register(register) => allocator.hold(register, value),
                Home::Slot(slot) => {
                    allocator.slots = allocator.slots.max(slot + 1);
                    allocator.whereabouts[value.0] =
                        Whereabouts { register: None, slot: Some(slot), stored: true };
                }
            }
        }
        for (place, &value) in order.iter().enumerate() {
            allocator.compute(value, place);
        }
        let left = homes.iter().map(|(value, _)| allocator.whereabouts[value.0].register).collect();
        let result = allocator.bring_home(staged.result);
        let Self { instructions, slots, .. } = allocator;
        (Turn { instructions, slots, result }, left)
    }

    fn hold(&mut self, register: Register, value: Value) {
        self.held[register] = Some(value);
        self.whereabouts[value.0].register = Some(register);
    }

    fn compute(&mut self, value: Value, place: usize) {
        let op = self.graph.op(value);
        let arguments = self.graph.arguments(value);
        let folded = self.fold(arguments, place);
        for &argument in arguments {
            if Some(argument) != folded && self.whereabouts[argument.0].register.is_none() {
                self.load(argument, place, arguments);
            }
        }
        let from: Vec<Location> = arguments.iter().map(|&argument| self.place(argument)).collect();

        // Registers of arguments that are not needed again are free for the result; their slots only afterwards,
        // because this instruction may still read one.
        let dying: Vec<Value> =
            arguments.iter().copied().filter(|&argument| self.uses.next(argument, place).is_none()).collect();
        let inherited = dying.iter().find_map(|argument| self.whereabouts[argument.0].register);
        for argument in &dying {
            if let Some(register) = self.whereabouts[argument.0].register.take() {
                self.held[register] = None;
            }
        }
        let to = self.register_for(value, inherited, op, place, arguments);
        self.emit(op, to, from);
        for argument in dying {
            self.release(argument);
        }
        self.whereabouts[value.0].stored = false;
        self.hold(to, value);
    }

    fn emit(&mut self, op: Op, to: Register, mut from: Vec<Location>) {
        let target = Location::Register(to);
        if op == Op::Copy {
            self.instructions.push(Instruction::Move { to: target, from: from[0] });
            return;
        }
        if op.overwrites_an_operand() && !from.contains(&target) {
            // A copy is what is overwritten.
            let operand = from.iter_mut().find(|place| matches!(place, Location::Register(_)));
            let original = std::mem::replace(operand.expect("at most one is folded"), target);
            self.instructions.push(Instruction::Move { to: target, from: original });
        }
        self.instructions.push(Instruction::Compute { op, to, from });
    }

    /// The argument, if any, that the instruction reads from memory without a separate load: the one whose next
    /// use is last.
    fn fold(&self, arguments: &[Value], place: usize) -> Option<Value> {
        let next = |value: Value| self.uses.next(value, place).unwrap_or(usize::MAX);
        let in_memory = |value: &Value| self.whereabouts[value.0].register.is_none();
        let folds = |value: &Value| self.graph.is_read(*value) || next(*value) - place > KEEP_WITHIN;
        arguments.iter().copied().filter(in_memory).filter(folds).max_by_key(|&value| next(value))
    }

    fn place(&self, value: Value) -> Location {
        let whereabouts = self.whereabouts[value.0];
        if let Some(register) = whereabouts.register {
            Location::Register(register)
        } else if let Op::Read(source) = self.graph.op(value) {
            Location::Source(source)
        } else {
            debug_assert!(whereabouts.stored, "{value:?} is nowhere");
            Location::Slot(whereabouts.slot.expect("what is in no register was stored"))
        }
    }

    fn load(&mut self, value: Value, place: usize, locked: &[Value]) {
        let from = self.place(value);
        let register = self.vacate(place, locked);
        self.instructions.push(Instruction::Move { to: Location::Register(register), from });
        self.hold(register, value);
    }

    /// The register for a result: that of an argument no longer needed where this saves a copy, otherwise its
    /// home.
    fn register_for(
        &mut self,
        value: Value,
        inherited: Option<Register>,
        op: Op,
        place: usize,
        locked: &[Value],
    ) -> Register {
        let home = self.homes.iter().find_map(|&(of, home)| match home {
            Home::Register(register) if of == value && self.held[register].is_none() => Some(register),
            _ => None,
        });
        let preferred = if op.overwrites_an_operand() { inherited.or(home) } else { home.or(inherited) };
        preferred.unwrap_or_else(|| self.vacate(place, locked))
    }

    /// A free register, if necessary freed by storing the value that is needed last.
    fn vacate(&mut self, place: usize, locked: &[Value]) -> Register {
        if let Some(free) = self.held.iter().position(Option::is_none) {
            return free;
        }
        let distance = |value: Value| {
            let next = self.uses.next(value, place).unwrap_or(usize::MAX / 2);
            let costs_a_store = !self.graph.is_read(value) && !self.whereabouts[value.0].stored;
            if costs_a_store { next } else { next + KEEP_WITHIN }
        };
        let (register, value) = self
            .held
            .iter()
            .enumerate()
            .filter_map(|(register, value)| value.map(|value| (register, value)))
            .filter(|(_, value)| !locked.contains(value))
            .max_by_key(|&(_, value)| distance(value))
            .expect("an instruction has fewer operands than there are registers");
        self.store(value);
        self.held[register] = None;
        self.whereabouts[value.0].register = None;
        register
    }

    /// Stores a value that is in a register, unless memory has it.
    fn store(&mut self, value: Value) {
        let Whereabouts { register: Some(register), slot, stored } = self.whereabouts[value.0] else {
            return;
        };
        if stored || self.graph.is_read(value) {
            return;
        }
        let slot = slot.or_else(|| self.free_slots.pop()).unwrap_or(self.slots);
        self.slots = self.slots.max(slot + 1);
        self.whereabouts[value.0] = Whereabouts { register: Some(register), slot: Some(slot), stored: true };
        let (to, from) = (Location::Slot(slot), Location::Register(register));
        self.instructions.push(Instruction::Move { to, from });
    }

    /// Forgets a value that is not needed again. The slot that is its home stays reserved.
    fn release(&mut self, value: Value) {
        self.whereabouts[value.0].stored = false;
        let has_home = self.homes.iter().any(|&(of, home)| of == value && matches!(home, Home::Slot(_)));
        if !has_home {
            self.free_slots.extend(self.whereabouts[value.0].slot.take());
        }
    }

    /// Brings carried values to their homes, and the result into the last register, which is returned.
    fn bring_home(&mut self, result: Value) -> Register {
        let (last, spare) = (REGISTERS - 1, REGISTERS - 2);
        let mut moves = Vec::new();
        let mut loads = Vec::new();
        let to_registers = self.homes.iter().filter_map(|&(value, home)| match home {
            Home::Register(register) => Some((value, register)),
            Home::Slot(_) => None,
        });
        for (value, home) in to_registers.chain([(result, last)]) {
            match self.place(value) {
                Location::Register(from) if from == home => {}
                Location::Register(from) => moves.push((home, from)),
                place => loads.push((home, place)),
            }
        }
        for &(value, home) in self.homes {
            if matches!(home, Home::Slot(_)) {
                self.store(value);
            }
        }
        for (to, from) in in_turn(moves, spare) {
            let (to, from) = (Location::Register(to), Location::Register(from));
            self.instructions.push(Instruction::Move { to, from });
        }
        for (to, from) in loads {
            self.instructions.push(Instruction::Move { to: Location::Register(to), from });
        }
        last
    }
}

/// Converts simultaneous moves, `(to, from)`, into successive ones.
fn in_turn(mut moves: Vec<(Register, Register)>, spare: Register) -> Vec<(Register, Register)> {
    let mut done = Vec::new();
    // What is in the spare register leaves it first, so that it can hold one of a circle.
    while !moves.is_empty() {
        let ready = moves.iter().position(|&(to, _)| moves.iter().all(|&(_, from)| from != to));
        if let Some(ready) = ready {
            done.push(moves.swap_remove(ready));
        } else {
            let (_, from) = moves[0];
            done.push((spare, from));
            moves[0].1 = spare;
        }
    }
    done
}
