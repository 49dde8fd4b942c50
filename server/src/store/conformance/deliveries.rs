//! Messages: owed from the moment a score starts or ends, in the order of scores, and gone only when they are over.

use super::*;

fn message(id: &str, target: &str, subject: Option<&str>) -> Message {
    Message {
        id: id.to_owned(),
        target: target.to_owned(),
        subject: subject.map(str::to_owned),
        body: format!("{{\"{id}\":\"\u{1f600}\\n\"}}"),
    }
}

fn ids(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|d| d.message.id.as_str()).collect()
}

pub(super) fn ends_are_told_once_and_messages_wait_until_they_are_over(store: &dyn Store) {
    let (one, two) = (make(store, 1, 1), make(store, 2, 1));
    assert!(store.untold(9).unwrap().is_empty());
    let aborted = Aborted::new(AbortedCode::Internal, "it broke");
    store.abort_score(&two, at(5), &aborted).unwrap();
    store.complete_score(&one, at(6), &completion()).unwrap();
    let three = make(store, 3, 1);
    store.abort_unfinished(at(7), &aborted).unwrap();
    let untold = store.untold(9).unwrap();
    let names: Vec<_> = untold.iter().map(|r| r.asked.id.clone()).collect();
    assert_eq!(names, [one.clone(), two.clone(), three.clone()]);
    assert_eq!(untold[0].state, ScoreState::Completed(WORDS));
    assert_eq!(store.untold(1).unwrap().len(), 1);

    let first = [
        message("a", "hook", None),
        message("b", "forge", Some("head/src_score")),
    ];
    let told =
        |score, state, time, messages: &[Message]| store.tell(score, state, at(time), messages);
    told(&one, StateName::Completed, 8, &first).unwrap();
    assert!(matches!(
        told(&one, StateName::Completed, 8, &first),
        Err(StoreError::Missing(_))
    ));
    assert_eq!(store.untold(9).unwrap().len(), 2);
    // A newer word about the same takes the place of one that waits; messages without a subject never do.
    let second = [
        message("c", "hook", None),
        message("d", "forge", Some("head/src_score")),
        message("e", "other", Some("head/src_score")),
    ];
    told(&two, StateName::Aborted, 9, &second).unwrap();
    told(&three, StateName::Aborted, 9, &[]).unwrap();
    assert!(store.untold(9).unwrap().is_empty());
    assert_eq!(ids(&store.due(at(8), 9).unwrap()), ["a"]);
    let due = store.due(at(9), 9).unwrap();
    assert_eq!(ids(&due), ["a", "c", "d", "e"]);
    assert_eq!(ids(&store.due(at(9), 1).unwrap()), ["a", "d", "e"]);
    assert_eq!(due[0].message, first[0]);
    assert_eq!((due[0].tries, due[0].created), (0, at(8)));
    assert_eq!(due[0].score, one);

    store.put_off(due[0].number, at(60)).unwrap();
    store.over(due[1].number).unwrap();
    // What is gone already is no trouble: a newer word may have taken its place meanwhile.
    store.over(due[1].number).unwrap();
    store.put_off(due[1].number, at(60)).unwrap();
    assert_eq!(ids(&store.due(at(59), 9).unwrap()), ["d", "e"]);
    let later = store.due(at(60), 9).unwrap();
    assert_eq!(ids(&later), ["a", "d", "e"]);
    assert_eq!(later[0].tries, 1);
    assert_eq!(store.deliveries().unwrap(), 3);
    // Scores may be forgotten before their messages have arrived.
    store.gc(at(1000)).unwrap();
    assert_eq!(store.deliveries().unwrap(), 3);
    assert!(store.untold(9).unwrap().is_empty());
}

pub(super) fn a_start_is_told_before_its_end_or_not_at_all(store: &dyn Store) {
    let (seen, missed) = (make(store, 1, 1), make(store, 2, 1));
    for score in [&seen, &missed] {
        store.start_score(score, at(2)).unwrap();
    }
    let names = || -> Vec<_> {
        let untold = store.untold(9).unwrap();
        let names = untold.iter().map(|r| (r.asked.id.clone(), r.state.name()));
        names.collect()
    };
    let (running, over) = (StateName::Running, StateName::Completed);
    assert_eq!(
        names(),
        [(seen.clone(), running), (missed.clone(), running)]
    );
    let begun = [message("p", "forge", Some("head/src_score"))];
    store.tell(&seen, running, at(3), &begun).unwrap();
    assert_eq!(names(), [(missed.clone(), running)]);
    // A start that somebody looked at and has not told yet when the end comes is never told, and the end is.
    for score in [&missed, &seen] {
        store.complete_score(score, at(4), &completion()).unwrap();
        let late = store.tell(score, running, at(5), &begun);
        assert!(matches!(late, Err(StoreError::Missing(_))));
    }
    assert_eq!(names(), [(seen.clone(), over), (missed.clone(), over)]);
    let ended = [message("e", "forge", Some("head/src_score"))];
    store.tell(&seen, over, at(6), &ended).unwrap();
    store.tell(&missed, over, at(6), &[]).unwrap();
    assert_eq!(ids(&store.due(at(9), 9).unwrap()), ["e"]);
    assert!(names().is_empty());
}
