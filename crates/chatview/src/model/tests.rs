mod files;

use kendall_talk::FileId;
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::*;
use crate::action::{Action, Edit};
use crate::draw::{Theme, draw};

fn setup(name: &str) -> Setup {
    Setup {
        name: name.to_owned(),
        server: "127.0.0.1:5011".to_owned(),
        number: "12345".to_owned(),
        zone: TimeZone::UTC,
        receipts: true,
        first_talk: 100,
    }
}

/// A program of ann that is online at this time.
fn online(now_ms: u64) -> Model {
    let mut model = Model::new(setup("ann"), Vec::new());
    assert_eq!(model.update(Event::Tick { now_ms }), [Effect::Connect]);
    model.update(Event::Online);
    model
}

fn enter(model: &mut Model, line: &str) -> Vec<Effect> {
    model.update(Event::Paste(line.to_owned()));
    model.update(Event::Action(Action::Submit))
}

fn talk(model: &mut Model, name: &str, event: TalkEvent) -> Vec<Effect> {
    let talk = model.contact(name).and_then(|it| it.talk.as_ref()).map_or(0, |talk| talk.id);
    model.update(Event::Talk { name: name.to_owned(), talk, event })
}

fn deliveries(model: &Model, name: &str) -> Vec<Delivery> {
    let own = |it: &Message| if let From::Own(delivery) = it.from { Some(delivery) } else { None };
    model.contact(name).unwrap().messages().filter_map(own).collect()
}

/// A program of ann that talks with bob, whose first message is on its way.
fn talking() -> Model {
    let mut model = online(1000);
    enter(&mut model, "/open bob");
    enter(&mut model, "lunch?");
    talk(&mut model, "bob", TalkEvent::Connected { is_relayed: false });
    model
}

#[test]
fn a_message_calls_its_contact_and_is_followed_until_it_is_read() {
    let mut model = online(1000);
    assert_eq!(enter(&mut model, "/open Bob"), [Effect::Save, Effect::Watch("bob".into())]);
    let effects = enter(&mut model, "lunch?");
    let [
        Effect::Record { .. },
        Effect::Begin { talk: begun, .. },
        Effect::Send { text, .. },
        Effect::Call { talk: called, .. },
    ] = effects.as_slice()
    else {
        panic!("{effects:?}")
    };
    assert_eq!((begun, text.as_str()), (called, "lunch?"));
    assert_eq!(deliveries(&model, "bob"), [Delivery::Waiting]);
    talk(&mut model, "bob", TalkEvent::Connected { is_relayed: false });
    let delivered = talk(&mut model, "bob", TalkEvent::Delivered(1));
    assert_eq!(delivered, [Effect::Record { name: "bob".into(), entry: Entry::Delivered { at_ms: 1000 } }]);
    assert_eq!(deliveries(&model, "bob"), [Delivery::Delivered]);
    talk(&mut model, "bob", TalkEvent::Read(1));
    assert_eq!(deliveries(&model, "bob"), [Delivery::Read]);
}

#[test]
fn a_call_rings_until_the_user_takes_or_refuses_it() {
    let mut model = online(0);
    let rung = model.update(Event::Incoming { call: 7, name: "bob".into(), talk: 5 });
    assert!(rung.contains(&Effect::Bell), "{rung:?}");
    assert!(model.banners()[0].1.contains("bob calls"));
    let taken = model.update(Event::Action(Action::Accept));
    assert_eq!(
        taken,
        [
            Effect::Begin { name: "bob".into(), talk: 5 },
            Effect::Answer { call: 7, name: "bob".into(), talk: 5 }
        ]
    );
    model.update(Event::Incoming { call: 8, name: "carl".into(), talk: 6 });
    assert_eq!(enter(&mut model, "/refuse"), [Effect::Refuse { call: 8 }]);
    enter(&mut model, "/open carl");
    enter(&mut model, "/block");
    let refused = model.update(Event::Incoming { call: 9, name: "carl".into(), talk: 6 });
    assert_eq!(refused, [Effect::Refuse { call: 9 }]);
}

#[test]
fn of_two_calls_that_cross_one_is_taken() {
    let crossing = |own: &str, other: &str| {
        let mut model = Model::new(setup(own), Vec::new());
        model.update(Event::Tick { now_ms: 0 });
        model.update(Event::Online);
        enter(&mut model, &format!("/call {other}"));
        model.update(Event::Incoming { call: 3, name: other.into(), talk: 5 })
    };
    assert_eq!(crossing("bob", "ann"), []);
    let taken = crossing("ann", "bob");
    assert_eq!(taken.first(), Some(&Effect::Cancel { name: "bob".into() }));
    assert!(matches!(taken.last(), Some(Effect::Answer { call: 3, talk: 5, .. })), "{taken:?}");
}

#[test]
fn a_lost_contact_is_called_again_later_and_later_for_the_same_talk() {
    let mut model = talking();
    let id = model.contact("bob").unwrap().talk.as_ref().unwrap().id;
    talk(&mut model, "bob", TalkEvent::Lost("silence".into()));
    let (mut now_ms, mut calls) = (1000, Vec::new());
    while calls.len() < 9 {
        now_ms += 100;
        for effect in model.update(Event::Tick { now_ms }) {
            assert_eq!(effect, Effect::Call { name: "bob".into(), talk: id });
            calls.push(now_ms);
            let why = "no way".to_owned();
            model.update(Event::CallFailed { name: "bob".into(), talk: id, why, is_refusal: false });
        }
    }
    let waits: Vec<u64> = calls.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.is_sorted() && waits[0] >= 2000 && waits[7] <= 76_000, "{waits:?}");
    assert!(waits[7] >= 60_000, "{waits:?}");
    // What was not acknowledged is not given twice to the same talk.
    assert_eq!(deliveries(&model, "bob"), [Delivery::Waiting]);
}

#[test]
fn a_contact_that_begins_a_new_talk_gets_what_waits_and_repeats_are_dropped() {
    let mut model = talking();
    let said = |number| TalkEvent::Message { number, at_ms: 900, text: "yes".into() };
    talk(&mut model, "bob", said(1));
    talk(&mut model, "bob", TalkEvent::Lost("silence".into()));
    let effects = model.update(Event::Incoming { call: 2, name: "bob".into(), talk: 77 });
    let send = Effect::Send { name: "bob".into(), at_ms: 1000, text: "lunch?".into() };
    assert!(effects.contains(&send) && matches!(effects.last(), Some(Effect::Answer { call: 2, .. })));
    talk(&mut model, "bob", said(1));
    let contact = model.contact("bob").unwrap();
    assert_eq!(contact.messages().filter(|it| it.from == From::Peer).count(), 1);
}

#[test]
fn the_directory_is_dialled_again_with_back_off_and_then_all_are_watched() {
    let mut model = talking();
    let mut now_ms = 1000;
    let mut connects = Vec::new();
    for _ in 0..8 {
        model.update(Event::Offline { why: "refused".into() });
        while model.directory != (Directory::Connecting { attempts: connects.len() as u32 }) {
            now_ms += 100;
            model.update(Event::Tick { now_ms });
        }
        connects.push(now_ms);
    }
    let waits: Vec<u64> = connects.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.is_sorted() && waits[0] >= 2000 && *waits.last().unwrap() >= 60_000, "{waits:?}");
    assert_eq!(model.update(Event::Online), [Effect::Watch("bob".into())]);
    // The talk has gone on without the directory.
    assert_eq!(model.contact("bob").unwrap().link, Link::Connected { is_relayed: false });
}

#[test]
fn a_changed_key_stops_everything_until_it_is_trusted() {
    let mut model = talking();
    model.update(Event::ChangedKey { name: "bob".into(), number: "99999".into() });
    let (urgency, text) = model.banners().remove(0);
    assert!(urgency == Urgency::Alarm && text.contains("99999") && text.contains("another key"), "{text}");
    let quiet = enter(&mut model, "secret");
    assert!(quiet.iter().all(|effect| matches!(effect, Effect::Record { .. })), "{quiet:?}");
    assert_eq!(
        model.update(Event::Incoming { call: 1, name: "bob".into(), talk: 5 }),
        [Effect::Refuse { call: 1 }]
    );
    assert_eq!(model.update(Event::Tick { now_ms: 900_000 }), []);
    let trusted = enter(&mut model, "/trust");
    assert_eq!(trusted[0], Effect::Trust { name: "bob".into() });
    let sent = trusted.iter().filter(|effect| matches!(effect, Effect::Send { .. })).count();
    assert_eq!(sent, 2);
    assert!(matches!(trusted.last(), Some(Effect::Call { .. })), "{trusted:?}");
}

#[test]
fn what_comes_while_the_user_reads_elsewhere_is_counted_and_marked() {
    let mut model = talking();
    model.update(Event::Resize { columns: 40, rows: 10 });
    enter(&mut model, "/open carl");
    let text = |number: u64| TalkEvent::Message { number, at_ms: number, text: format!("line {number}") };
    for number in 1..=30 {
        talk(&mut model, "bob", text(number));
    }
    assert_eq!(model.contact("bob").unwrap().unread, 30);
    let read = enter(&mut model, "/open bob");
    assert_eq!(read, [Effect::Read { name: "bob".into(), through: 30 }]);
    assert!(model.contact("bob").unwrap().new_from.is_some());
    // Scrolled back, the screen stays where it is.
    model.update(Event::Action(Action::PageUp));
    let before = model.contact("bob").unwrap().scroll;
    assert!(before > 0);
    assert_eq!(talk(&mut model, "bob", text(31)).len(), 1);
    assert_eq!(model.contact("bob").unwrap().scroll, before + 1);
    assert_eq!(model.contact("bob").unwrap().unread, 1);
    model.update(Event::Action(Action::Escape));
    assert_eq!((model.contact("bob").unwrap().scroll, model.contact("bob").unwrap().unread), (0, 0));
}

#[test]
fn a_search_goes_back_and_on_through_the_places() {
    let mut model = talking();
    model.update(Event::Resize { columns: 80, rows: 8 });
    for number in 1..=20 {
        let text = if number % 10 == 0 { "the Word" } else { "other" }.to_owned();
        talk(&mut model, "bob", TalkEvent::Message { number, at_ms: number, text });
    }
    enter(&mut model, "/search word");
    let newest = model.search.clone().unwrap().at.unwrap();
    model.update(Event::Action(Action::FindBack));
    assert_eq!(model.search.clone().unwrap().at, Some(newest - 10));
    assert!(model.contact("bob").unwrap().scroll > 0);
    model.update(Event::Action(Action::FindOn));
    assert_eq!(model.search.clone().unwrap().at, Some(newest));
    enter(&mut model, "/search nowhere");
    assert_eq!(model.notice.as_deref(), Some("\"nowhere\" is not in this conversation"));
}

#[test]
fn messages_of_an_earlier_run_that_have_not_arrived_are_sent_with_the_next_talk() {
    let said = |at_ms, text: &str| Entry::Said { own: true, at_ms, text: text.into() };
    let history = vec![said(1, "arrived"), Entry::Delivered { at_ms: 1 }, said(2, "waits")];
    let remembered = Remembered { name: "bob".into(), is_blocked: false, history };
    let mut model = Model::new(setup("ann"), vec![remembered]);
    model.update(Event::Tick { now_ms: 10 });
    model.update(Event::Online);
    model.update(Event::Presence { name: "bob".into(), is_there: true });
    let effects = model.update(Event::Tick { now_ms: 1000 });
    assert!(effects.contains(&Effect::Send { name: "bob".into(), at_ms: 2, text: "waits".into() }));
    assert_eq!(effects.iter().filter(|it| matches!(it, Effect::Send { .. })).count(), 1);
}

fn names() -> impl Strategy<Value = String> {
    proptest::sample::select(vec!["bob", "carl", "日本", "ann"]).prop_map(str::to_owned)
}

fn actions() -> impl Strategy<Value = Action> {
    use Action::*;
    prop_oneof![
        any::<char>().prop_map(Type),
        proptest::sample::select(vec![
            Newline,
            Submit,
            Submit,
            Up,
            Down,
            PageUp,
            PageDown,
            Complete,
            NextContact,
            PreviousContact,
            Escape,
            FindBack,
            FindOn,
            Accept,
            Refuse,
            Interrupt,
            DeleteOrEnd,
            Redraw,
            Edit(self::Edit::KillWordBack),
        ]),
    ]
}

fn talk_events() -> impl Strategy<Value = TalkEvent> {
    prop_oneof![
        any::<bool>().prop_map(|is_relayed| TalkEvent::Connected { is_relayed }),
        (any::<u64>(), any::<u64>(), ".{0,80}").prop_map(|(number, at_ms, text)| TalkEvent::Message {
            number,
            at_ms,
            text
        }),
        any::<u64>().prop_map(TalkEvent::Delivered),
        (0_u64..9).prop_map(TalkEvent::Read),
        Just(TalkEvent::Typing),
        Just(TalkEvent::Bye),
        Just(TalkEvent::Lost("lost\u{1b}[2J".into())),
        Just(TalkEvent::Broken("broken".into())),
        Just(TalkEvent::Over),
        ((1_u64..4, any::<bool>()), file_events()).prop_map(|((file, is_own), event)| TalkEvent::File {
            file: if is_own { FileId::Own(file) } else { FileId::Peer(file) },
            event
        }),
    ]
}

fn file_events() -> impl Strategy<Value = FileEvent> {
    prop_oneof![
        3 => (".{0,80}", any::<u64>()).prop_map(|(name, size)| FileEvent::Offered { name, size }),
        3 => any::<u64>().prop_map(FileEvent::Progress),
        1 => Just(FileEvent::Whole { place: Some("/a\n/b".into()) }),
        1 => Just(FileEvent::Dropped),
        1 => ".{0,20}".prop_map(FileEvent::Failed),
    ]
}

fn events() -> impl Strategy<Value = Event> {
    let commands = proptest::sample::select(vec![
        "/help",
        "/open bob",
        "/call carl",
        "/bye",
        "/search a",
        "/file x",
        "/take",
        "/decline",
        "/cancel a",
        "/safety",
        "/trust",
        "/block",
        "/remove",
        "/top",
        "/bottom",
        "/who",
        "/open 日本",
        "/receipts off",
        "\t\u{202e}x\ny",
        "hello there",
    ]);
    prop_oneof![
        4 => actions().prop_map(Event::Action),
        3 => commands.prop_map(|text| Event::Paste(text.to_owned())),
        1 => any::<String>().prop_map(Event::Paste),
        2 => (0_u16..140, 0_u16..50).prop_map(|(columns, rows)| Event::Resize { columns, rows }),
        1 => any::<u64>().prop_map(|now_ms| Event::Tick { now_ms: now_ms >> 20 }),
        1 => Just(Event::Online),
        1 => Just(Event::Offline { why: "why\n".into() }),
        1 => (names(), any::<bool>()).prop_map(|(name, is_there)| Event::Presence { name, is_there }),
        1 => (0_u64..3, names(), 99_u128..105).prop_map(|(call, name, talk)| Event::Incoming { call, name, talk }),
        1 => (0_u64..3).prop_map(|call| Event::RingingEnded { call }),
        1 => (names(), 99_u128..105, any::<bool>()).prop_map(|(name, talk, is_refusal)|
            Event::CallFailed { name, talk, why: "no".into(), is_refusal }),
        1 => names().prop_map(|name| Event::ChangedKey { name, number: "1".into() }),
        4 => (names(), 99_u128..105, talk_events()).prop_map(|(name, talk, event)| Event::Talk { name, talk, event }),
        1 => proptest::collection::vec(names(), 0..3).prop_map(Event::There),
    ]
}

fn cells(model: &Model, (width, height): (u16, u16)) -> Buffer {
    let mut buffer = Buffer::empty(Rect { x: 0, y: 0, width, height });
    let cursor = draw(model, &mut buffer, Theme::new(true));
    assert!(cursor.is_none_or(|at| at.x < width && at.y < height), "{cursor:?}");
    buffer
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Whatever happens in whatever order: no panic at any size, and no control character on the screen.
    #[test]
    fn no_event_breaks_the_state_or_the_screen(events in proptest::collection::vec(events(), 0..120)) {
        let mut model = online(1000);
        enter(&mut model, "/open bob");
        for event in events {
            model.update(event);
            // Events of a terminal that has just changed its size come in any order.
            for size in [model.size, (1, 1), (40, 3)] {
                let buffer = cells(&model, size);
                let mut symbols = buffer.content.iter().flat_map(|cell| cell.symbol().chars());
                let is_safe = symbols.all(|it| !it.is_control() && it != '\u{202e}');
                prop_assert!(is_safe);
            }
        }
    }

    #[test]
    fn every_size_has_the_cursor_where_there_is_space(columns in 1_u16..200, rows in 1_u16..60, text: String) {
        let mut model = talking();
        model.update(Event::Resize { columns, rows });
        model.update(Event::Paste(text));
        let mut buffer = Buffer::empty(Rect { x: 0, y: 0, width: columns, height: rows });
        let cursor = draw(&model, &mut buffer, Theme::new(false)).expect("the input has the focus");
        prop_assert!(cursor.x < columns && cursor.y < rows);
    }
}
