//! Files of talks.

use super::*;

fn file(model: &mut Model, file: FileId, event: FileEvent) -> Vec<Effect> {
    talk(model, "bob", TalkEvent::File { file, event })
}

fn offered(name: &str) -> FileEvent {
    FileEvent::Offered { name: name.to_owned(), size: 3_000_000 }
}

/// The lines of this program, but those of the talk.
fn lines(model: &Model) -> Vec<&str> {
    let messages = model.contact("bob").unwrap().messages();
    let lines = messages.filter(|it| it.from == From::Program).map(|it| it.text.as_str());
    lines.filter(|line| !line.starts_with("connected")).collect()
}

#[test]
fn an_offered_file_is_taken_followed_and_there() {
    let mut model = talking();
    file(&mut model, FileId::Peer(1), offered("../../a\u{1b}.pdf"));
    file(&mut model, FileId::Peer(2), offered("b.txt"));
    assert_eq!(lines(&model)[0], "bob offers a_.pdf (3.0 MB): /take or /decline");
    let taken = enter(&mut model, "/take b");
    assert_eq!(taken, [Effect::Take { name: "bob".into(), file: 2, title: "b.txt".into() }]);
    file(&mut model, FileId::Peer(2), FileEvent::Progress(100_000));
    assert_eq!(lines(&model)[1], "b.txt: 3 % of 3.0 MB");
    model.update(Event::Tick { now_ms: 3000 });
    file(&mut model, FileId::Peer(2), FileEvent::Progress(1_100_000));
    assert_eq!(lines(&model)[1], "b.txt: 36 % of 3.0 MB, 500.0 kB/s, 4 s left");
    file(&mut model, FileId::Peer(2), FileEvent::Whole { place: Some("/home/ann/b.txt".into()) });
    assert_eq!(lines(&model)[1], "b.txt (3.0 MB) is there: /home/ann/b.txt");
    let refused = enter(&mut model, "/decline");
    assert_eq!(refused, [Effect::CancelFile { name: "bob".into(), file: FileId::Peer(1) }]);
    assert_eq!(lines(&model)[0], "a_.pdf: refused");
    enter(&mut model, "/take");
    assert_eq!(model.notice.as_deref(), Some("there is no such file here"));
}

#[test]
fn a_file_of_ones_own_waits_for_the_contact_and_ends_with_the_talk() {
    let mut model = talking();
    let path = "my file.pdf".to_owned();
    assert_eq!(enter(&mut model, "/file my file.pdf"), [Effect::Offer { name: "bob".into(), path }]);
    for number in 1..=3 {
        file(&mut model, FileId::Own(number), offered(&format!("{number}.pdf")));
    }
    assert_eq!(lines(&model)[0], "you offer 1.pdf (3.0 MB); bob can take it");
    file(&mut model, FileId::Own(1), FileEvent::Whole { place: None });
    file(&mut model, FileId::Own(2), FileEvent::Dropped);
    talk(&mut model, "bob", TalkEvent::Over);
    assert_eq!(
        lines(&model),
        [
            "1.pdf (3.0 MB) has arrived",
            "bob does not take 2.pdf",
            "3.pdf has not arrived: the talk has ended"
        ]
    );
    // Without a talk the contact is called first.
    let effects = enter(&mut model, "/file x");
    assert!(
        matches!(
            effects.as_slice(),
            [Effect::Begin { .. }, Effect::Send { .. }, Effect::Call { .. }, Effect::Offer { .. }]
        ),
        "{effects:?}"
    );
    let mut model = Model::new(setup("ann"), Vec::new());
    enter(&mut model, "/open bob");
    assert_eq!(enter(&mut model, "/file x"), []);
    assert_eq!(model.notice.as_deref(), Some("offline: offer the file again when you are online"));
}
