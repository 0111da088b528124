//! What `pdpp doctor` tells of an erasure at several nodes, until all of it is done.

use super::ready::{Own, at_database, declared};
use super::{Nodes, import};

#[test]
fn doctor_tells_each_step_of_an_erasure_that_is_open() {
    let Some(mut nodes) = Nodes::new() else {
        return;
    };
    let _own = Own::of(&mut nodes);
    let [a, b] = ["a", "b"].map(|node| nodes.start(node));
    declared(&nodes);
    import(&nodes, "a", "m1", "Overdraft notice");
    nodes.run("b", "search overdraft").succeeds();
    nodes.run("a", "doctor").succeeds().hides("erased");
    b.stop();
    let remove = "connections remove mail-work --yes";
    nodes.run("a", remove).succeeds();
    let open = || {
        let told = nodes.run("a", "doctor --json").json();
        let found = told["findings"].as_array().unwrap().iter();
        let erased = found.filter(|finding| finding["check"] == "erased");
        let open = erased.filter(|finding| finding["ok"] == false);
        open.map(|finding| format!("{} {}", finding["message"], finding["remedy"]))
            .collect::<Vec<_>>()
    };
    let name = nodes.name("b");
    let steps = open();
    assert_eq!(steps.len(), 2, "{steps:?}");
    let forget = format!("nodes forget {name}");
    assert!(steps[0].contains(&format!("on the disk of node {name}")));
    assert!(steps[0].contains(&forget), "{steps:?}");
    assert!(steps[1].contains("VACUUM FULL"), "{steps:?}");
    assert!(steps[1].contains("records_") && steps[1].contains("versions"));
    // Written anew, the tables hold it no more; the disk of the node that is away does until it is forgotten.
    at_database(&nodes.url, "VACUUM FULL");
    let steps = open();
    assert_eq!(steps.len(), 1, "{steps:?}");
    assert!(steps[0].contains(&forget), "{steps:?}");
    nodes.run("a", &forget).succeeds();
    let done = nodes.run("a", "doctor").succeeds();
    done.shows("the log and the backups of the database from before");
    // A purge erases too.
    nodes
        .run("a", "connections add mail --name Work")
        .succeeds();
    import(&nodes, "a", "m2", "Overdraft again");
    nodes
        .run("a", "delete mail-work/messages:m2 --yes")
        .succeeds();
    nodes.run("a", "purge").succeeds();
    let steps = open();
    assert_eq!(steps.len(), 1, "{steps:?}");
    assert!(steps[0].contains("VACUUM FULL"), "{steps:?}");
    drop(a);
}
