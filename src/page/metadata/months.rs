//! Names of months.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Names and short forms of each month, lower case, in the languages whose dates are read:
/// English, German, French, Spanish, Portuguese, Italian, Dutch, Polish, Russian, Ukrainian,
/// Greek, Czech, Swedish, Danish, Turkish, Hungarian, Romanian, Finnish, Indonesian. Declined
/// languages have the genitive, in which dates stand, beside the nominative.
const NAMES: [&str; 12] = [
    "january jan januar jänner jän janvier janv enero ene janeiro gennaio gen januari stycznia \
     styczeń sty января январь янв січня січень ιανουαρίου ιανουάριος ιανουαριου ιαν ledna leden \
     ocak oca január ianuarie ian tammikuuta tammikuu",
    "february feb februar feber février févr fév febrero fevereiro fev febbraio febbr februari \
     lutego luty lut февраля февраль фев лютого лютий φεβρουαρίου φεβρουάριος φεβρουαριου φεβ \
     února únor şubat şub február februarie helmikuuta helmikuu",
    "march mar märz mär mrz mars marzo março maart mrt marca marzec марта март мар березня \
     березень μαρτίου μάρτιος μαρτιου μαρ března březen mart március martie maaliskuuta \
     maaliskuu maret marts",
    "april apr avril avr abril abr aprile kwietnia kwiecień kwi апреля апрель апр квітня квітень \
     απριλίου απρίλιος απριλιου απρ dubna duben nisan nis április aprilie huhtikuuta huhtikuu",
    "may mai mayo maio maggio mag mei maja maj мая май травня травень μαΐου μαΪου μαίου μάιος \
     μαιου μαι μάι května květen mayıs május toukokuuta toukokuu",
    "june jun juni juin junio junho giugno giu czerwca czerwiec cze июня июнь июн червня червень \
     ιουνίου ιούνιος ιουνιου ιουν června červen haziran haz június iunie kesäkuuta kesäkuu",
    "july jul juli juillet juil julio julho luglio lug lipca lipiec lip июля июль июл липня \
     липень ιουλίου ιούλιος ιουλιου ιουλ července červenec temmuz tem július iulie heinäkuuta \
     heinäkuu",
    "august aug août aout agosto ago augustus sierpnia sierpień sie августа август авг серпня \
     серпень αυγούστου αύγουστος αυγουστου αυγ srpna srpen augusti ağustos ağu augusztus \
     elokuuta elokuu agustus",
    "september sep sept septembre septiembre setiembre setembro set settembre września wrzesień \
     wrz сентября сентябрь сен сент вересня вересень σεπτεμβρίου σεπτέμβριος σεπτεμβριου σεπ \
     σεπτ září eylül eyl szeptember septembrie syyskuuta syyskuu",
    "october oct oktober okt octobre octubre outubro out ottobre ott października październik \
     paź октября октябрь окт жовтня жовтень οκτωβρίου οκτώβριος οκτωβριου οκτ října říjen ekim \
     eki október octombrie lokakuuta lokakuu",
    "november nov novembre noviembre novembro listopada listopad lis ноября ноябрь ноя \
     листопада νοεμβρίου νοέμβριος νοεμβριου νοε kasım kas noiembrie marraskuuta marraskuu",
    "december dec dezember dez décembre déc diciembre dic dezembro dicembre grudnia grudzień gru \
     декабря декабрь дек грудня грудень δεκεμβρίου δεκέμβριος δεκεμβριου δεκ prosince prosinec \
     aralık ara decembrie joulukuuta joulukuu desember des",
];

/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 26;

static TABLE: LazyLock<HashMap<&'static str, i8>> = LazyLock::new(|| {
    let months = NAMES.iter().zip(1i8..);
    months.flat_map(|(names, month)| names.split(' ').map(move |name| (name, month))).collect()
});

/// Returns the number of the month that a word names.
pub(super) fn month(word: &str) -> Option<i8> {
    if word.len() < 3 || word.len() > NAME_BYTES_MAX {
        return None;
    }
    if let Some(month) = TABLE.get(word) {
        return Some(*month);
    }
    TABLE.get(word.to_lowercase().as_str()).copied()
}
