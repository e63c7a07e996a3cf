//! What a page says of itself, beside its title: carried with each copy, exported with the
//! canonical one.

use crate::store::{Number, Text, row};

row! {
    /// Statements of a page about itself. A field of which nothing is known is empty.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct Facts: part {
        /// Authors, joined by `, `.
        pub author: String = Text;
        /// When it was published: ISO 8601, as precise as the page was.
        pub published: String = Text;
        /// When it was last changed, in the same form.
        pub modified: String = Text;
        /// Name of the site.
        pub site: String = Text;
        /// Description.
        pub description: String = Text;
        /// Category, as whoever sent the article names it.
        pub category: String = Text;
        /// Images in it, as whoever sent the article counted them.
        pub images: u64 = Number;
    }
}
