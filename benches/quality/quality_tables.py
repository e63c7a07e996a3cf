#!/usr/bin/env python3
"""Makes src/text/quality/classes.txt and exceptions.txt from the packages that the filters are compared with.

  quality_tables.py FOLDER        (with `datatrove[io]==0.10.1` and `spacy==3.8.18` installed)

classes.txt has a line for each class of characters: its name, then hexadecimal code points and ranges. exceptions.txt
has a line for each text that spaCy's English tokenizer does not cut by its patterns: the text, a tab, its parts.
Sources: spaCy (MIT) for `alpha`, `lower`, `upper`, `icons` and `sentence_ends`, datatrove (Apache-2.0) for `symbols`
and `stops`, the Unicode database for `letters` and `punctuation`.
"""

import re, sys, unicodedata

import spacy
from datatrove.utils.text import PUNCTUATION_SET, TERMINAL_PUNCTUATION
from spacy.lang.char_classes import ALPHA, ALPHA_LOWER, ALPHA_UPPER, ICONS
from spacy.pipeline import Sentencizer

EVERY = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def of_pattern(pattern):
    """The characters that a class of a regular expression has."""
    return set(re.findall(f"[{pattern}]", "".join(EVERY)))


def of_category(start):
    return {char for char in EVERY if unicodedata.category(char).startswith(start)}


def ranges(chars):
    """Runs of code points, `41-5A`; those of every second one, as letters in pairs of cases are, `100-17E/2`."""
    codes, out, at = sorted(map(ord, chars)), [], 0
    while at < len(codes):
        step = codes[at + 1] - codes[at] if at + 1 < len(codes) else 1
        step = step if step in (1, 2) else 1
        end = at
        while end + 1 < len(codes) and codes[end + 1] - codes[end] == step:
            end += 1
        if step == 2 and end - at < 2:
            end, step = at, 1
        if end == at:
            out.append(f"{codes[at]:X}")
        else:
            out.append(f"{codes[at]:X}-{codes[end]:X}" + ("/2" if step == 2 else ""))
        at = end + 1
    return " ".join(out)


def main(folder):
    classes = {
        "alpha": of_pattern(ALPHA),
        "lower": of_pattern(ALPHA_LOWER),
        "upper": of_pattern(ALPHA_UPPER),
        "icons": of_pattern(ICONS),
        "symbols": PUNCTUATION_SET,
        "stops": TERMINAL_PUNCTUATION,
        "sentence_ends": set(Sentencizer.default_punct_chars),
        "letters": of_category("L"),
        "punctuation": of_category("P"),
    }
    with open(f"{folder}/classes.txt", "w", encoding="utf-8") as file:
        file.writelines(f"{name} {ranges(chars)}\n" for name, chars in classes.items())
    rules = spacy.blank("en").tokenizer.rules
    with open(f"{folder}/exceptions.txt", "w", encoding="utf-8") as file:
        for text, parts in sorted(rules.items()):
            if text.strip():
                file.write(f"{text}\t{' '.join(part[65] for part in parts)}\n")


main(sys.argv[1])
