"""Calls of every command that are right, and ways to make them wrong."""

from collections.abc import Callable, Sequence

import numpy as np

CALLS = {
    "compare": "compare ../a.npy ../b.npy",
    "compare, interval": "compare ../a.npy ../b.npy --level 0.9 --permutations 99 --weights balanced --seed 3",
    "compare, margin": "compare ../a.npy ../b.npy --fused-within 0.1 --json",
    "compare, distances": "compare ../a.npy ../b.npy --distance cfd,mmd,energy --option bandwidth=2.0",
    "compare, picture": "compare ../a.npy ../b.npy --trim 0.1 --plot own.svg",
    "summarize": "summarize ../x.parquet --by site,label -o own.parquet",
    "summarize, text": "summarize ../x.csv --by week --vectors v* --nan drop --min-count 3 --small merge "
    "-o own.parquet",
    "summarize, append": "summarize ../x.parquet --by site,patient --tag a=b --append --wait 1 -o own.parquet",
    "summarize, manifest": "summarize ../x.npy --manifest ../keys.csv --by site -o own.parquet",
    "merge": "merge ../north.parquet ../south.parquet -o own.parquet",
    "matrix": "matrix ../s.parquet --between site --given label --weights balanced",
    "matrix, units": "matrix ../s.parquet --between site --units patient --level 0.9 --permutations 49 --adjust bh",
    "matrix, rows": "matrix ../x.parquet --between site,scanner --level 0.9 --plug-in",
    "matrix, table": "matrix ../x.csv --between site --vectors v* --csv",
    "hierarchy": "hierarchy ../s.parquet --factors site,scanner --weights balanced",
    "attribution": "attribution ../s.parquet --between site --given label --over patient --top 3",
    "attribution, features": "attribution ../x.parquet --between site",
    "separability": "separability ../x.parquet --between site --given label --units patient --level 0.9 --seed 1",
    "test": "test ../s.parquet --between site --units patient --permutations 99 --level 0.9 --seed 2",
    "test, rows": "test ../x.parquet --between scanner --given label --permutations 49",
    "test, paired": "test ../s.parquet --between scanner --pairs patient --permutations 49",
    "drift": "drift ../s.parquet --time week --reference first:4 --alarm 0.05 --window 2 --step 1 --seed 1",
    "drift, latest": "drift ../x.parquet --time week --reference previous --given label --latest --adjust holm",
    "drift, stretch": "drift ../s.parquet --time week --reference 0..3 --units patient --over site",
    "report": "report ../s.parquet --between site --given label --units patient --permutations 49 -o own.html",
    "report, rows": "report ../x.parquet --between site --time week --title T --permutations 19 -o own.html",
    "corrections": "corrections raw=../x.parquet half=../half.parquet --between site --given label --units patient",
    "integration": "integration ../cells.h5ad --batch site --label label --donor patient --obsm a,b",
    "mixing": "mixing ../x.parquet --between site --permutations 49 --top 3",
    "check": "check ../policy.toml ../s.parquet --json",
    "projection": "projection ../x.parquet --between site --points 50 --seed 1",
    "degradation": "degradation ../x.parquet --between site --label label --distance cfd --correction none,center "
    "--folds 2 --rows 20 --repeats 2",
    "rdr": "rdr ../x.parquet --between site --distance cfd,mmd --repeats 3 --rows 10",
    "cddr": "cddr ../x.parquet --between site --label label --folds 2 --metric accuracy",
    "tiles": "tiles ../images/m.csv --size 32 --tissue 0.1 --per-slide 2",
    "embed": "embed ../images/m.csv --encoder random --size 32 --batch 2 --workers 1 -o own.parquet",
    "completion": "completion bash",
    "lens, fit": "lens fit standardize+kernel ../x.parquet --by site --features 32 --seed 1 -o own.safetensors",
    "lens, named": "matrix ../x.parquet --between site --given label --lens standardize",
    "sql": "matrix --sql from'../x.parquet' --between site",
}
# Those that would run for minutes are given what no command can do.
LONG = {
    "demo": "demo --rows 0 --out own",
    "histopathology": "histopathology --quick --data ../nowhere --encoder random --out own",
}
_FILES = (
    "x.parquet half.parquet x.csv keys.csv policy.toml a.npy b.npy s.parquet north.parquet cells.h5ad images "
    "images/m.csv "
    "empty.parquet torn.parquet torn_s.parquet text.parquet none.csv odd.csv s.h5ad x.unknown nan.parquet same.parquet "
    "huge.parquet one.parquet no_rows.parquet names.parquet folder.parquet loop.parquet gone.parquet pipe.parquet "
    "missing.parquet missing/x.parquet"
)
_NAMES = "site scanner label patient week v v0 count mean checksum <script>alert(1)</script> nothing"
FILES, NAMES = _FILES.split(), _NAMES.split()
VALUES = (
    *("", " ", ",", "site,", "site,site", "-1", "0", "1", "2", "0.5", "1.0", "-0.0", "nan", "inf", "-inf", "1e-320"),
    *("1e308", "1e999", "0x10", "1_0", "٣", "99999999999999999999999", "2.5", "true", "None", "*", "[", "?", "**"),
    *("%s", "{}", "{0}", "$HOME", "~", "/", ".", "..", "-", "--", "--json", "-o", "\n", "a\nb", "\t", "\x1b[31m"),
    *("\u202e", "é", "🙂", "\udcff", "x" * 3000, "a" * 300 + ".parquet", "'", '"', "';--", "[bold]", "first:0"),
    *("first:99", "first:-1", "first:x", "previous", "..", "0..", "9..0", "A,B", "=", "=x", "a=", "a=b=c"),
    *("epsilon=nan", "bandwidth=0", "x=1", "/dev/null", "/dev/full", "/proc/self/mem", "http://127.0.0.1:9/x", "a://"),
    *("own.parquet", "own.png", "own.html", "own", "missing/own.parquet", "pooled", "balanced", "drop", "merge"),
)
MANY = ("-1", "0", "1", "2", "7", "x", "", "1e3", "2.0", "-99999999999999999999999")  # where a number is work
WORK = {"--permutations", "--repeats", "--points", "--folds", "--rows", "--wait", "--size"}
WORK |= {"--batch", "--workers", "--trials", "--per-slide", "--mpp", "--slide-mpp", "--gigabytes", "--dim"}
WORK |= {"--features", "--regions"}
OPTIONS = (
    *("--json", "--csv", "--by", "--between", "--given", "--units", "--factors", "--level", "--permutations", "--seed"),
    "--weights",
    *("--vectors", "--nan", "--sql", "--manifest", "--on", "--engine", "--min-count", "--small", "--tag", "--append"),
    *("--time", "--reference", "--window", "--step", "--alarm", "--over", "--top", "--plot", "-o", "--title"),
    *("--method", "--only-matched", "--statistic", "--min-units"),
    *("--lens", "--features", "--regions", "--bandwidth", "--rank", "--shrinkage", "--after"),
    *("--distance", "--option", "--trim", "--adjust", "--points", "--help", "--plug-in", "--no-such", "-x", "--label"),
)
Mutation = Callable[[list[str], np.random.Generator], list[str]]


def pick(choices: Sequence[str], draw: np.random.Generator) -> str:
    return choices[int(draw.integers(len(choices)))]


def value_for(option: str, draw: np.random.Generator) -> str:
    """Something to follow an option: a name, a file, or anything."""
    if option in WORK:
        return pick(MANY, draw)
    kind = draw.random()
    return pick(NAMES, draw) if kind < 0.3 else f"../{pick(FILES, draw)}" if kind < 0.4 else pick(VALUES, draw)


def change_value(words: list[str], draw: np.random.Generator) -> list[str]:
    """Another value of an option."""
    places = [k for k in range(1, len(words)) if words[k - 1].startswith("-")]
    if not places:
        return change_file(words, draw)
    k = places[int(draw.integers(len(places)))]
    return [*words[:k], value_for(words[k - 1], draw), *words[k + 1 :]]


def change_file(words: list[str], draw: np.random.Generator) -> list[str]:
    """Another file."""
    places = [k for k, word in enumerate(words) if "../" in word and not words[k - 1].startswith("-")]
    if not places:
        return add_option(words, draw)
    k = places[int(draw.integers(len(places)))]
    name, equals, _ = words[k].rpartition("=")
    return [*words[:k], f"{name}{equals}../{pick(FILES, draw)}", *words[k + 1 :]]


def add_option(words: list[str], draw: np.random.Generator) -> list[str]:
    """One more option, its own or another command's."""
    option = pick(OPTIONS, draw)
    return [*words, option] if draw.random() < 0.3 else [*words, option, value_for(option, draw)]


def leave_out(words: list[str], draw: np.random.Generator) -> list[str]:
    """One word less."""
    k = int(draw.integers(len(words)))
    return [*words[:k], *words[k + 1 :]]


def exchange(words: list[str], draw: np.random.Generator) -> list[str]:
    """Two words in each other's place; not the commands."""
    a, b = (int(k) for k in draw.integers(min(1, len(words) - 1), len(words), 2))
    found = list(words)
    found[a], found[b] = words[b], words[a]
    return found


MUTATIONS: tuple[Mutation, ...] = (change_value, change_value, change_value, change_file, change_file, add_option,
                                   leave_out, exchange)  # fmt: skip


def broken(words: list[str], draw: np.random.Generator) -> list[str]:
    """A call with one to three things wrong."""
    for _ in range(int(draw.integers(1, 4))):
        if words:
            words = MUTATIONS[int(draw.integers(len(MUTATIONS)))](words, draw)
    return words
