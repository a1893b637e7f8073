"""Tables as people have them: read right, or refused with what reads them right.

Each has its truth: values, samples, classes, categories, and what is set aside.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from sklearn import datasets

from mdec.tables import read_table
from mdec.tables.roles import AmbiguousTableError

pandas = pytest.importorskip("pandas")

N = 60


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def frame_of(load: Callable[..., Any], **options: Any) -> Any:
    found = load(as_frame=True, **options)
    return found.data, np.asarray(found.target)


IRIS, SPECIES = frame_of(datasets.load_iris)
WINE, CULTIVAR = frame_of(datasets.load_wine)
CANCER, MALIGNANT = frame_of(datasets.load_breast_cancer)
DIABETES, _ = frame_of(datasets.load_diabetes, scaled=False)
FITNESS = datasets.load_linnerud(as_frame=True).frame
DIGITS = datasets.load_digits(as_frame=True).data[:200]
KINDS = np.array(["setosa", "versicolor", "virginica"])[SPECIES]


def numbers(n_columns: int = 4, n_rows: int = N) -> Any:
    """Measurements of two decimals."""
    values = rng().normal(10.0, 3.0, (n_rows, n_columns)).round(2)
    return pandas.DataFrame(values, columns=[f"m{j}" for j in range(n_columns)])


def days(form: str) -> list[str]:
    start = np.datetime64("2019-11-13")
    steps = rng().integers(0, 900, N)
    return [pandas.Timestamp(start + int(s)).strftime(form) for s in steps]


def since_1970() -> np.ndarray:
    start = np.datetime64("2019-11-13").astype(int)
    return start + rng().integers(0, 900, N).astype(float)


def words(*values: str) -> np.ndarray:
    return np.array(values)[rng().integers(0, len(values), N)]


def customers() -> Any:
    draw = rng()
    return pandas.DataFrame(
        {
            "age": draw.integers(18, 80, N),
            "income": [f"{x:,}" for x in draw.integers(900, 90_000, N) * 10],
            "city": words("Berlin", "Paris", "Rome"),
            "joined": days("%Y-%m-%d"),
            "spent": draw.gamma(2.0, 50.0, N).round(2),
        }
    )


CUSTOMERS = customers()
AMOUNTS = [float(each.replace(",", "")) for each in CUSTOMERS["income"]]


@dataclass
class Case:
    """A file, what is said of it, and what is true of it."""

    name: str
    table: Any
    values: Any
    ending: str = "csv"
    how: dict[str, Any] = field(default_factory=lambda: {"index": False})
    given: dict[str, Any] = field(default_factory=dict)
    samples: Any = None
    classes: Any = None
    encoded: dict[str, Any] = field(default_factory=dict)
    aside: list[str] = field(default_factory=list)
    refused: bool = False
    cure: dict[str, Any] | None = None


def cases() -> list[Case]:
    names = [f"s{i}" for i in range(N)]
    plain = numbers()
    made: list[Case] = []

    def add(name: str, table: Any, values: Any, **truth: Any) -> None:
        made.append(Case(name, table, np.asarray(values, dtype=float), **truth))

    # Nothing but numbers, in every spelling.
    add("numbers", plain, plain)
    add("no header", plain, plain, how={"index": False, "header": False})
    add("index of pandas", plain, plain, how={}, samples=[str(i) for i in range(N)])
    add("tabs", plain, plain, ending="tsv", how={"index": False, "sep": "\t"})
    add("spaces", plain, plain, ending="txt", how={"index": False, "sep": " "})
    add("bars", plain, plain, ending="txt", how={"index": False, "sep": "|"})
    add("semicolons", plain, plain, how={"index": False, "sep": ";"})
    europe = {"index": False, "sep": ";", "decimal": ","}
    add("decimal commas", plain, plain, how=europe)
    add("compressed", plain, plain, ending="csv.gz")
    add("workbook", plain, plain, ending="xlsx")
    add("parquet", plain, plain, ending="parquet", how={})
    add("array", plain.to_numpy(), plain, ending="npy", how={})
    add("arrays", plain.to_numpy(), plain, ending="npz", how={})
    add("exponents", plain, plain, how={"index": False, "float_format": "%.15e"})
    quoted = {"index": False, "quoting": 1}
    add("everything quoted", plain, plain, how=quoted)
    add("negative", -plain, -plain)
    add("windows lines", plain, plain, how={"index": False, "lineterminator": "\r\n"})

    # Names.
    named = plain.set_axis(names)
    add("named rows", named, plain, how={}, samples=names)
    add("write.table of R", named, plain, ending="txt", how={"sep": " "}, samples=names)
    for header in ("id", "Sample ID", "patient_id", "name", "barcode", ""):
        with_ids = plain.copy()
        with_ids.insert(0, header, names)
        add(f"names under {header!r}", with_ids, plain, samples=names)
    counted = IRIS.copy()
    counted.insert(0, "Id", np.arange(1, 151))
    given = {"label_column": "species"}
    add(
        "iris with an id",
        counted.assign(species=KINDS),
        IRIS,
        given=given,
        samples=[str(i) for i in range(1, 151)],
        classes=KINDS,
    )
    lead = plain.copy()
    lead.insert(0, "xyz", np.arange(1, N + 1))
    counts = [str(i) for i in range(1, N + 1)]
    add("a column that counts", lead, plain, samples=counts, refused=True)
    last = plain.assign(patient_id=[f"p{i}" for i in range(N)])
    ids = last["patient_id"].tolist()
    add("names at the end", last, plain, samples=ids)

    # Known classes.
    for name, table, classes in (
        ("wine", WINE, CULTIVAR),
        ("breast cancer", CANCER, MALIGNANT),
        ("iris", IRIS, SPECIES),
    ):
        whole = table.assign(target=classes)
        text = classes.astype(str)
        add(f"{name}, classes named", whole, table, given={"label_column": "target"})
        made[-1].classes = text
        add(f"{name}, classes found", whole, table, classes=text, refused=True)
    add("words at the end", IRIS.assign(kind=KINDS), IRIS, classes=KINDS, refused=True)
    first = IRIS.copy()
    first.insert(0, "species", KINDS)
    add("words at the start", first, IRIS, classes=KINDS, refused=True)
    bare = {"index": False, "header": False}
    add("words, no header", first, IRIS, how=bare, classes=KINDS, refused=True)
    add("diabetes", DIABETES, DIABETES)
    add("fitness", FITNESS, FITNESS)
    add("digits", DIGITS, DIGITS)

    # Categories and flags.
    city = words("Berlin", "Paris", "Rome")
    two = plain.assign(city=city, member=words("yes", "no"))
    spots = {"city": ["Berlin", "Paris", "Rome"], "member": ["no", "yes"]}
    add("categories", two, plain, encoded=spots, refused=True)
    given = {"categories": "encode"}
    add("categories encoded", two, plain, encoded=spots, given=given)
    given = {"categories": "annotate"}
    add("categories aside", two, plain, aside=["city", "member"], given=given)
    add("categories of a workbook", two, plain, encoded=spots, ending="xlsx")
    made[-1].refused = True
    add("categories of parquet", two, plain, encoded=spots, ending="parquet", how={})
    made[-1].refused = True
    gaps = two.assign(city=np.where(np.arange(N) % 7, city, ""))
    add("a category is missing", gaps, plain, encoded=spots, refused=True)
    flags = plain.copy()
    flags.insert(1, "flag", rng().random(N) < 0.5)
    add("true and false", flags, flags)
    codes = plain.copy()
    codes.insert(2, "city", rng().integers(1, 4, N))
    add("codes as amounts", codes, codes)
    given = {"category_columns": ["city"]}
    three = {"city": ["1", "2", "3"]}
    add("codes as categories", codes, plain, given=given, encoded=three)
    known = plain.assign(species=words("a", "b"), island=words("x", "y", "z"))
    isles = {"island": ["x", "y", "z"]}
    add("classes beside categories", known, plain, encoded=isles, refused=True)
    made[-1].classes = known["species"].to_numpy()

    # Dates.
    for form in (
        "%Y-%m-%d",
        "%d.%m.%Y",
        "%d/%m/%Y",
        "%Y/%m/%d",
        "%d %b %Y",
        "%b %d %Y",
        "%Y.%m.%d",
        "%Y%m%d",
        "%A, %d %B %Y",
    ):
        dated = plain.assign(joined=days(form))
        true = plain.assign(joined=since_1970())
        add(f"dates as {days(form)[0]}", dated, true, refused=True)
    timed = plain.assign(seen=[f"{day} 12:00:00" for day in days("%Y-%m-%d")])
    true = plain.assign(seen=since_1970() + 0.5)
    add("times", timed, true, refused=True)
    clock = [f"{i % 24}:{i % 60:02d}" for i in range(N)]
    hours = np.array([(i % 24) / 24 + (i % 60) / 1440 for i in range(N)])
    add("times of the day", plain.assign(at=clock), plain.assign(at=hours))
    made[-1].refused = True
    add("dates aside", dated, plain, given={"dates": "annotate"}, aside=["joined"])
    stamps = plain.assign(joined=pandas.to_datetime(days("%Y-%m-%d")))
    true = plain.assign(joined=since_1970())
    add("dates of a workbook", stamps, true, ending="xlsx", refused=True)
    add("dates of feather", stamps, true, ending="feather", how={}, refused=True)
    add("dates of parquet", stamps, true, ending="parquet", how={}, refused=True)

    # Thousands, and what is missing.
    money = rng().integers(1_000, 9_000_000, N)
    thousands = plain.assign(money=[f"{x:,}" for x in money])
    true = plain.assign(money=money)
    add("thousands", thousands, true)
    tabs = {"index": False, "sep": "\t"}
    add("thousands between tabs", thousands, true, ending="tsv", how=tabs)
    for word in ("", "NA", "?", "nan", "."):
        holes = plain.astype(object)
        holes.iloc[3, 1] = word
        filled = plain.copy()
        filled.iloc[3, 1] = plain["m1"].drop(3).median()
        add(f"missing as {word!r}", holes, filled, refused=True)
    empty = plain.assign(notes="")
    empty["m9"] = plain["m0"]
    true = plain.assign(m9=plain["m0"])
    add("an empty column", empty, true, aside=["notes"], refused=True)
    odd = plain.astype(object)
    odd.iloc[5, 2] = "broken"
    rest = plain.drop(columns="m2")
    add("one word among numbers", odd, rest, aside=["m2"], refused=True)
    notes = plain.assign(remark=[f"called on day {i // 2}" for i in range(N)])
    add("free text", notes, plain, aside=["remark"], refused=True)

    for mark in ("-", "--", "unknown", "N.A.", "#DIV/0!", "(null)"):
        holes = plain.astype(object)
        holes.iloc[[3, 7], 1] = mark
        filled = plain.copy()
        filled.iloc[[3, 7], 1] = plain["m1"].drop([3, 7]).median()
        add(f"missing as {mark!r}", holes, filled, refused=True)
    holes = plain.astype(object)
    holes.iloc[[3, 7], 1] = -999
    holes.iloc[[3, 7], 2] = "lost"
    filled["m2"] = plain["m2"]
    filled.iloc[[3, 7], 2] = plain["m2"].drop([3, 7]).median()
    given = {"missing": ["-999", "lost"]}
    add("marks of its own", holes, filled, given=given, refused=True)

    for word, mark in (("inf", "inf"), ("-1e400", "-inf")):
        holes = plain.astype(object)
        holes.iloc[3, 1] = word
        filled = plain.copy()
        filled.iloc[3, 1] = plain["m1"].drop(3).median()
        add(f"infinite as {word}", holes, filled, refused=True)
        made[-1].cure = {"missing": [mark], "impute": "median"}
    cells = [Decimal(str(x)) for x in plain["m0"]]
    add("decimals", plain.assign(m0=cells), plain, ending="parquet", how={})

    # Signs beside numbers.
    europe = {"index": False, "sep": ";", "decimal": ","}
    for name, form in (
        ("dollars", "${:,.2f}"),
        ("euros", "{:.2f} \N{EURO SIGN}"),
        ("percent", "{:.2f}%"),
        ("centimetres", "{:.2f} cm"),
        ("kilograms", "{:.2f}kg"),
        ("spaces in thousands", "{:,.2f}"),
        ("apostrophes in thousands", "{:,.2f}"),
    ):
        sign = {"spaces": " ", "apostrophes": "'"}.get(name.split()[0], ",")
        cells = [form.format(x).replace(",", sign) for x in money]
        add(name, plain.assign(money=cells), plain.assign(money=money))
    cells = [f"{x:,}".replace(",", ".") for x in money]
    true = plain.assign(money=money)
    add("points in thousands", plain.assign(money=cells), true, how=europe)
    cells = [f"{x:,.2f} \N{EURO SIGN}".translate({44: 46, 46: 44}) for x in money]
    add("euros in Germany", plain.assign(money=cells), true, how=europe)
    cells = [f"({x})" if x % 2 else f"{x}" for x in money]
    true = plain.assign(money=np.where(money % 2, -money, money))
    add("losses in parentheses", plain.assign(money=cells), true)
    cells = plain.map(lambda x: f"{x:.2f} %".replace(".", ","))
    add("shares in Germany", cells, plain, how={"index": False, "sep": ";"})
    cells = plain.map(lambda x: f"{x:.2f}".replace(".", ","))
    add("decimal commas of a workbook", cells, plain, ending="xlsx")
    quoted = {"index": False, "decimal": ",", "quoting": 1}
    add("quoted decimal commas", plain, plain, how=quoted)
    typeset = (5.0 - plain).to_csv(index=False).replace("-", "\N{MINUS SIGN}")
    add("minus as it is typeset", typeset, 5.0 - plain)
    ranges = plain.assign(age=words("18-25", "26-35"), z=plain["m0"])
    ages, true = {"age": ["18-25", "26-35"]}, plain.assign(z=plain["m0"])
    add("ranges", ranges, true, encoded=ages, refused=True)

    # What stands around a table.
    text = plain.to_csv(index=False)
    add("a title", f"Measurements,,,\n{text}", plain)
    add("titles", f"Measurements\nof 2024\n\n{text}", plain)
    add("a source", f"{text}Source: the bureau of statistics\n", plain)
    add("a wide source", f"{text}Source: the bureau,,,\n", plain)
    wide = plain.to_string(index=False)
    add("fixed widths", f"# one\n{wide}\n", plain, ending="txt")
    add("comments", f"# one\n% two\n{text}", plain)
    add("a separator named", "sep=;\n" + text.replace(",", ";"), plain)
    add("separators at the ends", text.replace("\n", ",\n"), plain)
    head, below = text.split("\n", 1)
    add("separators below the names", f"{head}\n" + below.replace("\n", ",\n"), plain)
    for name, row in (("Total", plain.sum()), ("Mean", plain.mean())):
        more = plain.T.assign(last=row.round(2)).T
        more.insert(0, "name", [*names, name])
        add(f"a last row called {name}", more, plain, samples=names)
    more = plain.T.assign(last=plain.iloc[3]).T
    more.insert(0, "name", [*names, "Total"])
    add("a sample called Total", more, more[plain.columns])
    tops = pandas.MultiIndex.from_product([["x", "y"], ["a", "b"]])
    add("names in two rows", plain.set_axis(tops, axis=1), plain)
    add("names in two rows, an index", plain.set_axis(tops, axis=1), plain, how={})
    halves = [f"one\nof {i // 2}" for i in range(N)]
    remarks = plain.assign(remark=halves)
    add("cells of two lines", remarks, plain, aside=["remark"], refused=True)
    series = f'!Series_title,"x"\n!table_begin\n{text}!table_end\n'
    add("lines of a database", series, plain)
    for code in ("latin-1", "utf-16", "utf-8-sig"):
        named = plain.assign(**{"Gr\u00f6\u00dfe": plain["m0"]})
        add(f"encoded as {code}", named.to_csv(index=False).encode(code), named)

    more = text.replace("\n", ",,,\n")
    add("several separators at the ends", f"{more},,,,,,\n", plain)
    more = plain.assign(**{"Unnamed: 32": ""})
    add("an empty column that pandas names", more, plain)
    ids = plain.copy()
    ids.insert(0, "plant", names)
    head, below = ids.to_csv(index=False).split("\n", 1)
    add("units beside names", f"{head}\n,cm,kg,s,mg/l\n{below}", plain, samples=names)
    some = f"{head}\n,(cm),,(s),\n{below}"
    add("a unit for some", some, plain, samples=names)
    lines = text.strip().split("\n")
    bars = [f"| {line.replace(',', ' | ')} |" for line in lines]
    bars.insert(1, "|---:|:---:|---|---|")
    add("a table of Markdown", "\n".join(bars), plain, ending="txt")
    joined = ids.iloc[:30].to_csv(index=False) + ids.iloc[30:].to_csv(index=False)
    add("names of columns again", joined, plain, samples=names)
    tabs = [line.replace(",", "\t", 2).replace(",", "\t\t") for line in lines]
    add("runs of tabs", "\n".join(tabs), plain, ending="txt")
    plants = plain.set_axis(["length\n(cm)", "width\n(cm)", "c", "d"], axis=1)
    add("names of two lines", plants.assign(m3=halves), plants, refused=True)
    made[-1].aside = ["m3"]
    elements = plain.set_axis(["Si", "Na", "Ca", "K"], axis=1)
    add("sodium", elements, elements)

    # Doubts that others hide, and tables of few columns.
    few = plain[["m0"]].assign(group=rng().integers(1, 3, N), dead=words("1", "0"))
    add("codes at both ends", few, few, refused=True)
    counted = plain[["m0"]].copy()
    counted.insert(0, "time", np.arange(N))
    add("a count beside one column", counted, counted, refused=True)
    feeds = plain[["m0"]].assign(feed=words("oats", "hay"))
    eaten = {"feed": ["hay", "oats"]}
    add("words beside one column", feeds, plain[["m0"]], encoded=eaten, refused=True)
    years = plain.copy()
    years.insert(0, "year", np.arange(1900, 1900 + N))
    index = [str(i) for i in range(N)]
    add("years beside an index", years, years, how={}, samples=index)
    lead = plain.copy()
    lead.insert(0, "n", np.arange(N))
    lead["m0"] = np.arange(N) * 7 + 3
    rest = lead.drop(columns="n")
    add("a first column behind the first", lead, rest, refused=True)

    coded = plain.copy()
    coded.insert(0, "", np.arange(N) % 2)
    both = np.arange(N) % 2
    add("codes without a name", coded, plain, classes=both, refused=True)
    grouped = plain.copy()
    grouped.insert(0, "", np.repeat(["wet", "dry"], N // 2))
    add("groups without a name", grouped, plain, classes=grouped[""], refused=True)
    amounts = pandas.DataFrame(rng().poisson(5, (N, 3)), columns=["p", "q", "r"])
    bought = amounts.copy()
    bought.insert(0, "Kundennummer", rng().permutation(99_999)[:N])
    ids = bought["Kundennummer"].astype(str)
    add("numbers of customers", bought, amounts, samples=ids, refused=True)
    twice = amounts.copy()
    twice.insert(0, "Sample code number", np.arange(N) // 2 + 61_634)
    add("numbers of samples, some twice", twice, amounts, refused=True)
    made[-1].aside = ["Sample code number"]
    ranked = plain.copy()
    ranked.insert(0, "country", [f"Land {i}" for i in range(N)])
    ranked.insert(0, "rank", np.arange(1, N + 1))
    add("ranks before names", ranked, plain, samples=ranked["country"], refused=True)
    made[-1].aside = ["rank"]

    # Values below a limit, and signs of units.
    for marks in (["Undetermined"] * 2, ["<0.1", "<0.2"]):
        holes = plain.astype(object)
        holes.iloc[[3, 7], 1] = marks
        filled = plain.copy()
        filled.iloc[[3, 7], 1] = plain["m1"].drop([3, 7]).median()
        add(f"{marks[0]} among numbers", holes, filled, refused=True)
        made[-1].cure = {"missing": sorted({*marks}), "impute": "median"}
    blood = pandas.DataFrame(
        {
            "heat": [f"{x:.2f} \N{DEGREE SIGN}C" for x in plain["m0"]],
            "iron": [f"{x:.2f} mg/dL" for x in plain["m1"]],
        }
    )
    add("degrees and shares", blood, plain[["m0", "m1"]])

    # Everything at once.
    true = CUSTOMERS[["age", "income", "joined", "spent"]].assign(
        income=AMOUNTS, joined=since_1970()
    )
    sights = {"city": ["Berlin", "Paris", "Rome"]}
    add("customers", CUSTOMERS, true, encoded=sights, refused=True)
    given = {"categories": "encode", "dates": "number"}
    add("customers, said", CUSTOMERS, true, encoded=sights, given=given)
    worse = CUSTOMERS.assign(target=rng().integers(0, 2, N), remark=notes["remark"])
    worse["spent"] = worse["spent"].astype(object)
    worse.iloc[7, 4] = "NA"
    true.loc[7, "spent"] = true["spent"].drop(7).median()
    add("customers with gaps", worse, true, encoded=sights, refused=True)
    made[-1].classes, made[-1].aside = worse["target"].astype(str), ["remark"]

    # Features in rows.
    genes = numbers(12, 40).T.set_axis([f"GENE{j}" for j in range(12)])
    genes.columns = [f"s{i}" for i in range(40)]
    add("genes in rows", genes, genes.T, how={}, given={"transpose": True})
    made[-1].samples = list(genes.columns)
    heads = [f"ENSG{j:011d}" for j in range(12)]
    probes = genes.set_axis(heads)
    told = probes.assign(Chr="chr1", Start=np.arange(12), Length=np.arange(12) + 500)
    told = told[["Chr", "Start", "Length", *genes.columns]].rename_axis("Geneid")
    how = {"sep": "\t"}
    add("featureCounts", told, genes.T, how=how, ending="txt", refused=True)
    told = probes.rename_axis("Hugo_Symbol")
    told.insert(0, "Entrez_Gene_Id", np.arange(12) + 1000)
    add("symbols beside numbers of genes", told, genes.T, how={}, refused=True)
    for tallies in (["__no_feature", "__ambiguous"], ["N_unmapped", "N_ambiguous"]):
        more = pandas.concat([genes.iloc[:2].set_axis(tallies), probes])
        add(f"{tallies[0]} beside genes", more, genes.T, how={}, refused=True)
        made[-1].aside = tallies
    twice = genes.set_axis(["GENE1"] * 2 + list(genes.index[2:]))
    add("genes twice", twice, genes.T, how={}, given={"transpose": True})
    return made


CASES = {case.name: case for case in cases()}


def write(case: Case, folder: Any) -> Any:
    path = folder / f"table.{case.ending}"
    if isinstance(case.table, str | bytes):
        table = case.table
        path.write_bytes(table if isinstance(table, bytes) else table.encode())
    elif case.ending == "npy":
        np.save(path, case.table)
    elif case.ending == "npz":
        np.savez(path, X=case.table)
    elif case.ending == "parquet":
        pytest.importorskip("pyarrow")
        case.table.to_parquet(path)
    elif case.ending == "feather":
        pytest.importorskip("pyarrow")
        case.table.to_feather(path)
    elif case.ending == "xlsx":
        pytest.importorskip("openpyxl")
        case.table.to_excel(path, **case.how)
    elif case.ending == "csv.gz":
        text = io.StringIO()
        case.table.to_csv(text, **case.how)
        path.write_bytes(gzip.compress(text.getvalue().encode()))
    else:
        case.table.to_csv(path, **case.how)
    if case.name.startswith("write.table"):
        path.write_text(path.read_text().lstrip('" '))
    return path


@pytest.mark.parametrize("name", CASES)
def test_a_table_is_read_right_at_once_or_as_the_refusal_says(name, tmp_path):
    case = CASES[name]
    path, given = write(case, tmp_path), case.given
    if case.refused:
        with pytest.raises(AmbiguousTableError) as caught:
            read_table(path, **given)
        assert caught.value.cure
        assert case.cure in (None, caught.value.cure)
        given = given | caught.value.cure
    table = read_table(path, **given)
    n_encoded = sum(len(values) for values in case.encoded.values())
    found = table.values[:, : table.values.shape[1] - n_encoded]
    np.testing.assert_allclose(found, case.values, rtol=1e-12)
    assert {k: list(v) for k, v in table.encoding.items()} == case.encoded
    ones = table.values[:, found.shape[1] :]
    assert set(np.unique(ones)) <= {0.0, 1.0}
    if case.samples is not None:
        assert table.sample_names == list(case.samples)
    if case.classes is not None:
        assert table.labels.tolist() == [str(each) for each in case.classes]
    else:
        assert table.labels is None
    assert list(table.columns) == case.aside


def test_the_corpus_is_large_enough():
    assert len(CASES) >= 60
