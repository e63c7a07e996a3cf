//! A crawl that waits for its pages while others write to its store.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use uniqcrawl::corpus::index::Index;
use uniqcrawl::corpus::tables::{CONTENTS, KEYS};
use uniqcrawl::crawl::{self, Context};
use uniqcrawl::localweb::{Page, Site};
use uniqcrawl::neardup::segment::BlockId;
use uniqcrawl::store::{Store, Update as _, View as _};

use crate::support::{Web, check_clean, config, page, prose};

#[test]
fn a_crawl_that_waits_for_its_pages_keeps_no_page_of_the_store_from_being_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(folder.path(), 1 << 20).unwrap();
    let settings = config().settings();
    let index = Arc::new(Mutex::new(Index::open(&store, &settings.dedup).unwrap()));
    let slow = Page::html(page("Slow", &prose(2, 150), &[])).after(Duration::from_secs(4));
    let front = page("Front", &prose(1, 150), &["/slow"]);
    let web = Web::one(Site::new().html("/", front).page("/slow", slow));
    let context = Context { index: Some(index), ..Context::default() };
    let size = || store.path().metadata().unwrap().len();
    thread::scope(|scope| {
        let crawl = scope.spawn(|| crawl::run(&store, &settings, &web.seeds(), &context).unwrap());
        let end = Instant::now() + Duration::from_mins(1);
        while store.snapshot().unwrap().len(CONTENTS).unwrap() == 0 {
            assert!(Instant::now() < end && !crawl.is_finished(), "no page is stored");
            thread::sleep(Duration::from_millis(5));
        }
        // It has asked for the slow page and waits.
        thread::sleep(Duration::from_millis(600));
        let before = size();
        for byte in 0..40_u8 {
            let _turn = store.turn();
            let mut batch = store.begin().unwrap();
            batch.put(KEYS, BlockId::filter(200, 1, 0), &vec![byte; 1 << 20]).unwrap();
            batch.commit().unwrap();
        }
        assert!(!crawl.is_finished(), "the slow page has come");
        let grown = (size() - before) >> 20;
        assert!(grown < 16, "by {grown} MiB, for one row of 1 MiB");
        let mut batch = store.begin().unwrap();
        batch.remove(KEYS, BlockId::filter(200, 1, 0)).unwrap();
        batch.commit().unwrap();
        assert_eq!(crawl.join().unwrap().new, 2);
    });
    check_clean(&store);
}
