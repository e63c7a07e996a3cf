//! Lines in, lines out: order, turns, limits, and readers that go away.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_crawl"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn line(id: usize, paragraphs: usize) -> String {
    let html = format!("<p>Page {id} says something.</p>").repeat(paragraphs);
    serde_json::json!({"id": id, "html": html}).to_string() + "\n"
}

#[test]
fn answers_come_in_the_order_of_the_lines_on_any_number_of_threads() {
    let sizes = |id: usize| if id.is_multiple_of(40) { 3_000 } else { 1 + id % 7 };
    let input: String = (0..400).map(|id| line(id, sizes(id))).collect();
    let mut outputs = Vec::new();
    for threads in ["1", "2", "5"] {
        let mut child = start(&["extract", "--jsonl", "--threads", threads]);
        let mut stdin = child.stdin.take().unwrap();
        let input = input.clone();
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
        let mut answers = Vec::new();
        for (id, answer) in BufReader::new(child.stdout.take().unwrap()).lines().enumerate() {
            let mut answer: Value = serde_json::from_str(&answer.unwrap()).unwrap();
            assert_eq!(answer["id"], id);
            let spent = answer["cpu_ms"].take();
            assert!(spent.as_f64().is_some_and(|spent| (0.0..60_000.0).contains(&spent)));
            answers.push(answer);
        }
        writer.join().unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(answers.len(), 400);
        outputs.push(answers);
    }
    assert!(outputs.windows(2).all(|two| two[0] == two[1]));
}

#[test]
fn a_line_is_answered_before_the_next_one_is_sent() {
    for arguments in [&["extract", "--jsonl"][..], &["simhash", "--jsonl"]] {
        let mut child = start(arguments);
        let mut stdin = child.stdin.take().unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
        for id in 0..20 {
            let line = serde_json::json!({"id": id, "html": "<p>x", "text": "some words"});
            writeln!(stdin, "{line}").unwrap();
            let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
            assert_eq!(answer["id"], id);
        }
        // The last line may have no end.
        write!(stdin, "{}", line(20, 1).trim_end()).unwrap();
        drop(stdin);
        assert_eq!(answers.count(), 1);
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn lines_that_cannot_be_answered_get_an_error_at_their_place() {
    let mut child = start(&["extract", "--jsonl", "--threads", "2"]);
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        stdin.write_all(line(0, 1).as_bytes()).unwrap();
        stdin.write_all(b"\n\xFF\xFE nonsense\n").unwrap();
        // Longer than any line may be, without an end for a long time.
        stdin.write_all(b"{\"id\":3,\"html\":\"").unwrap();
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..70 {
            stdin.write_all(&piece).unwrap();
        }
        stdin.write_all(b"\"}\n").unwrap();
        stdin.write_all(line(4, 1).as_bytes()).unwrap();
    });
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    let answers: Vec<Value> =
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 5);
    assert_eq!((&answers[0]["id"], &answers[4]["id"]), (&0.into(), &4.into()));
    for bad in &answers[1..4] {
        assert!(bad["error"].is_string() && bad["id"].is_null(), "{bad}");
    }
    assert!(answers[3]["error"].as_str().unwrap().contains("longer than"));
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let mut child = start(&["extract", "--jsonl"]);
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    stdin.write_all(line(0, 1).as_bytes()).unwrap();
    // The input stays open: it must not be waited for.
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(started.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(status.success());
    let mut says = String::new();
    child.stderr.take().unwrap().read_to_string(&mut says).unwrap();
    assert_eq!(says, "");
}
