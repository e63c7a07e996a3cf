#!/usr/bin/env python3
"""Trains the model of the main text, and measures it by cross-validation.

  train.py --crawl BINARY --data DIR --scorer eval.py [--folds 5 | --leave-one-set-out]
  train.py --crawl BINARY --data DIR --scorer eval.py --final --out model.txt

--crawl: the program whose features are learned from; `crawl extract --jsonl --why` tells them.
--data: the labelled sets, as the scorer reads them. --scorer: the scorer; `load_scorer` in
labels.py says what it must have.

Without --final, each page is judged by a model that has seen no page of its host (or, with
--leave-one-set-out, no page of its set), and the text so chosen is scored: F1 of each set by the
metric of that set, and the mean token F1 of the pages of each kind or language. The rules that the
program applies after the choice (headings between kept blocks, pages with little text, text from
structured data) are left out, and a segment is weighed by its tokens.

With --final, all pages are learned from, and the model is written in the format that
src/page/main_text/model.rs describes; figures of that model on the same pages say nothing.

The kinds are told by features of the page and of the text that the program chose with the model it
has. So a changed model takes two rounds: train, build the program with the model, train again.
"""

import argparse
import collections
import json
import os
import tempfile

import numpy as np
from catboost import CatBoost, Pool

import labels

# The settings of the model in the repository. A border is a byte in the file, and the depth is at
# most that of model.rs; `rsm` and `subsample` make the trees differ.
SEGMENTS = dict(
    loss_function="CrossEntropy", iterations=220, learning_rate=0.13, depth=6, border_count=32,
    l2_leaf_reg=6, rsm=0.4, bootstrap_type="Bernoulli", subsample=0.5,
    feature_border_type="GreedyLogSum", random_seed=1, verbose=0,
)  # fmt: skip
KINDS_OF_PAGES = dict(
    loss_function="Logloss", iterations=60, learning_rate=0.15, depth=4, border_count=32,
    l2_leaf_reg=5, random_seed=1, verbose=0,
)  # fmt: skip

# In the order of `Kind` in src/page/main_text/kind.rs.
KINDS = ["article", "collection", "documentation", "forum", "listing", "product", "service"]
# The set whose kinds were assigned one page at a time; in the others, a kind is that of the set.
SET_OF_KINDS, OTHER_SETS_WEIGHT = "wcxb_dev", 0.3
# What the program knows of a page only after its choice, in the order of `CHOICE` in kind.rs.
CHOICE = [
    "kept_share", "kept_weight", "kept_count", "kept_mean", "kept_links", "kept_prose",
    "kept_stops", "quality",
]  # fmt: skip

# Every third page is learned from a second time with no meaning in its class names, at half the
# weight: pages whose names say nothing, or say it in another language, are rare in the sets.
NAMELESS_EVERY, NAMELESS_WEIGHT = 3, 0.5


def samples(pages, names):
    """Features, labels and weights of all segments of which something is known."""
    named = [at for at, name in enumerate(names) if name.startswith("name_")]
    rows, truth, weights = [], [], []
    for page in pages:
        known = page.weights > 0
        if not known.any():
            continue
        rows.append(page.features[known])
        truth.append(page.labels[known])
        weights.append(page.weights[known])
        if labels.number("nameless" + page.id) % NAMELESS_EVERY == 0:
            nameless = page.features[known].copy()
            nameless[:, named] = 0
            rows.append(nameless)
            truth.append(page.labels[known])
            weights.append(page.weights[known] * NAMELESS_WEIGHT)
    return np.vstack(rows), np.concatenate(truth), np.concatenate(weights)


def fit(rows, truth, weights, settings):
    model = CatBoost(settings)
    model.fit(Pool(rows, truth, weight=weights))
    return model


def chances(model, pages):
    """How likely each segment of each page is part of the main text."""
    odds = model.predict(np.vstack([page.features for page in pages]))
    ends = np.cumsum([len(page.features) for page in pages])
    return np.split(1 / (1 + np.exp(-odds)), ends[:-1])


def choose(chance, tokens):
    """The choice of the highest expected F1: see `choose` in src/page/main_text/mod.rs."""
    kept = np.zeros(len(chance), bool)
    if len(chance):
        order = np.argsort(-chance, kind="stable")
        right = np.cumsum((chance * tokens)[order])
        f1 = 2 * right / (np.cumsum(tokens[order]) + right[-1] + 1e-9)
        kept[order[: np.argmax(f1) + 1]] = True
    return kept


def report(scorer, pages, judged):
    """Prints the scores of the texts that are chosen by the chances of their segments."""
    by_set, groups = collections.defaultdict(list), collections.defaultdict(list)
    for page, chance in zip(pages, judged, strict=True):
        tokens = np.array([len(scorer.tok(text)) for text in page.segments], float)
        kept = choose(chance, tokens)
        text = "\n".join(own.strip() for own, kept in zip(page.segments, kept) if kept)
        score = scorer.score_page(page.set, {"gt": page.truth}, text)
        by_set[page.set].append(score)
        if "text" in page.truth:
            group = page.kind if page.set == SET_OF_KINDS else page.language
            groups[page.set, group].append(scorer.pagef1(page.set, score))
    figures = {name: scorer.aggregate(name, scores) for name, scores in by_set.items()}
    for name, (f1, precision, recall) in figures.items():
        print(f"{name:<14} F1 {f1:.4f}  P {precision:.4f}  R {recall:.4f}  {len(by_set[name])} pages")
    print(f"{'mean':<14} F1 {np.mean([figure[0] for figure in figures.values()]):.4f}")
    for (name, group), scores in sorted(groups.items()):
        print(f"  {name + ' ' + group:<26} token F1 {np.mean(scores):.3f}  {len(scores)} pages")


def cross_validate(scorer, pages, names, part_of, settings):
    """Judges each page by a model that has seen no page of its part, and prints the scores."""
    judged = [None] * len(pages)
    for part in sorted({part_of(page) for page in pages}):
        learned = [page for page in pages if part_of(page) != part]
        asked = [at for at, page in enumerate(pages) if part_of(page) == part]
        model = fit(*samples(learned, names), settings)
        for at, chance in zip(asked, chances(model, [pages[at] for at in asked])):
            judged[at] = chance
        print(f"without part {part}: {len(learned)} pages learned, {len(asked)} judged", flush=True)
    report(scorer, pages, judged)


def kind_samples(pages):
    rows = np.array([page.whole for page in pages])
    truth = np.array([KINDS.index(page.kind) for page in pages])
    own = np.array([page.set == SET_OF_KINDS for page in pages])
    return rows, truth, np.where(own, 1.0, OTHER_SETS_WEIGHT)


def fit_kind(kind, rows, truth, weights, settings):
    """The model of one kind; none if the pages are all of it, or none is."""
    one = (truth == kind).astype(int)
    return fit(rows, one, weights, settings) if 0 < one.sum() < len(one) else None


def cross_validate_kinds(pages, part_of, settings):
    """Prints how many kinds are told rightly, where each page's kind was assigned."""
    rows, truth, weights = kind_samples(pages)
    parts = np.array([part_of(page) for page in pages])
    odds = np.full((len(pages), len(KINDS)), -np.inf)
    for part in sorted(set(parts)):
        learned, asked = parts != part, parts == part
        for kind in range(len(KINDS)):
            known = rows[learned], truth[learned], weights[learned]
            model = fit_kind(kind, *known, settings)
            if model:
                odds[asked, kind] = model.predict(rows[asked])
    told, own = odds.argmax(1), weights == 1.0
    if not own.any():
        return
    print(f"kinds told rightly: {(told == truth)[own].mean():.4f}")
    for kind, name in enumerate(KINDS):
        true, said = own & (truth == kind), own & (told == kind)
        if true.any():
            precision = (truth == kind)[said].mean() if said.any() else 0.0
            print(f"  {name:<14} P {precision:.3f}  R {(told == kind)[true].mean():.3f}")


def lines_of(model, names):
    """The bias of a model, and a line for each of its trees."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        model.save_model(path, format="json")
        with open(path, encoding="utf-8") as file:
            whole = json.load(file)
    scale, bias = whole["scale_and_bias"]
    bias = bias[0] if isinstance(bias, list) else bias
    columns = [one["flat_feature_index"] for one in whole["features_info"]["float_features"]]
    lines = []
    for tree in whole["oblivious_trees"]:
        questions = [
            # Features are whole numbers, so the part behind the point decides nothing.
            f"{names[columns[split['float_feature_index']]]}>{int(np.floor(split['border']))}"
            for split in tree["splits"] or []
        ]
        leaves = [str(round(value * scale * 1000)) for value in tree["leaf_values"]]
        lines.append(f"{' '.join(questions)} : {' '.join(leaves)}")
    return bias, lines


def write_final(path, pages, names, settings, settings_of_kinds):
    """Learns from all pages and writes the model."""
    rows, truth, weights = samples(pages, names)
    bias, lines = lines_of(fit(rows, truth, weights, settings), names)
    of_page = len(pages[0].whole) - len(CHOICE)  # these come first in a segment's row
    usual = np.median(rows[:, of_page:], axis=0).astype(int)
    usual = [f"{name}={value}" for name, value in zip(names[of_page:], usual) if value]
    out = ["uniqcrawl trees 1", f"model segments {bias:.6f}", *lines, "usual " + " ".join(usual)]
    for kind, name in enumerate(KINDS):
        model = fit_kind(kind, *kind_samples(pages), settings_of_kinds)
        if model:
            bias, lines = lines_of(model, names[:of_page] + CHOICE)
            out += [f"model {name} {bias:.6f}", *lines]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")
    print(f"{path}: {len(out)} lines from {len(pages)} pages with {len(rows)} segments")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--crawl", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--scorer", required=True)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--folds", type=int, default=5)
    mode.add_argument("--leave-one-set-out", action="store_true")
    mode.add_argument("--final", action="store_true")
    parser.add_argument("--out", help="where --final writes the model")
    parser.add_argument("--pages", type=int, help="so many pages of each set, to try this script")
    parser.add_argument("--trees", type=int, help="so many trees a model, to try this script")
    parser.add_argument("--threads", type=int, default=-1, help="all cores if it is not given")
    args = parser.parse_args()
    if args.final != bool(args.out):
        parser.error("--final and --out belong together")

    changed = {"thread_count": args.threads, "allow_writing_files": False}
    if args.trees:
        changed["iterations"] = args.trees
    settings, settings_of_kinds = {**SEGMENTS, **changed}, {**KINDS_OF_PAGES, **changed}
    scorer = labels.load_scorer(args.scorer, args.data)
    names, pages = labels.read(args.crawl, scorer, args.pages)
    print(f"{len(pages)} pages, {sum(len(page.segments) for page in pages)} segments", flush=True)
    if args.final:
        write_final(args.out, pages, names, settings, settings_of_kinds)
    elif args.leave_one_set_out:
        cross_validate(scorer, pages, names, lambda page: page.set, settings)
    else:
        fold = lambda page: labels.number("fold" + page.host) % args.folds
        cross_validate(scorer, pages, names, fold, settings)
        cross_validate_kinds(pages, fold, settings_of_kinds)


if __name__ == "__main__":
    main()
