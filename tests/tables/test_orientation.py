"""Features in rows: told by names, asked for where these do not tell, and said."""

from __future__ import annotations

import numpy as np
import pytest

from mdec.tables import read_table
from mdec.tables.roles import AmbiguousTableError

pandas = pytest.importorskip("pandas")

PROBES = [f"{200_000 + 7 * i}_s_at" for i in range(40)]
ENSEMBL = [f"ENSG{i:011d}.{i % 9}" for i in range(40)]
COUNTED = [f"gene {i}" for i in range(40)]
SYMBOLS = ["TP53", "MYC", "EGFR", "GAPDH", "ACTB", "BRCA1", "KRAS", "CDK4", "RB1"]
ENTREZ = [str(100 + 13 * i) for i in range(40)]
WORDS = [f"{a}{b}" for a in "klmnp" for b in "abcdefgh"]
GEO = [f"GSM{4711 + i}" for i in range(12)]
BARCODES = [f"TCGA-{i:02d}-A{i % 7}" for i in range(12)]
CODES = [f"DLCL-{i:04d}" for i in range(12)]
SHORT = [f"s{i}" for i in range(12)]
TISSUES = ["liver", "kidney", "brain", "heart", "lung", "skin"]


def table(rows, columns, corner=""):
    """Genes in rows, as R and databases write them."""
    values = np.random.default_rng(0).gamma(2.0, 40.0, (len(rows), len(columns)))
    frame = pandas.DataFrame(values.round(2), index=list(rows), columns=list(columns))
    return frame.rename_axis(corner)


def with_classes(frame, name="", classes=("tumour", "normal")):
    """The same with a row of classes below the names of the samples."""
    row = np.resize(np.array(classes), frame.shape[1])
    top = pandas.DataFrame([row], index=[name], columns=frame.columns)
    return pandas.concat([top, frame.astype(object)]).rename_axis(frame.index.name)


@pytest.mark.parametrize(
    ("rows", "columns", "corner"),
    [
        (PROBES, SHORT, ""),
        (ENSEMBL, CODES, ""),
        (COUNTED, SHORT, ""),
        (SYMBOLS, BARCODES, "Hugo_Symbol"),
        (SYMBOLS, CODES, ""),
        (ENTREZ, GEO, "ENTREZ_GENE_ID"),
        (WORDS, CODES, "Gene Symbol"),
        (PROBES, SHORT, "ID_REF"),
        (WORDS, GEO, ""),
        (WORDS, [f"patient_{i}" for i in range(12)], "name"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_genes_in_rows_are_turned_and_the_notes_say_so(
    rows, columns, corner, ending, tmp_path
):
    path, made = tmp_path / f"a.{ending}", table(rows, columns, corner)
    if ending == "parquet":
        pytest.importorskip("pyarrow")
        (made.reset_index() if corner else made).to_parquet(path)
    else:
        made.to_csv(path, sep="\t" if ending == "tsv" else ",")
    found = read_table(path)
    np.testing.assert_array_equal(found.values, made.to_numpy().T)
    assert (found.sample_names, found.feature_names) == (list(columns), list(rows))
    assert found.reading["features_in_rows"]
    assert found.reading["notes"][0].startswith("the file is read with features in row")
    as_it_is = read_table(path, transpose=False)
    assert as_it_is.sample_names == list(rows)
    assert not as_it_is.reading["features_in_rows"]


@pytest.mark.parametrize(
    ("rows", "columns", "corner"),
    [
        ([f"sample{i}" for i in range(40)], SYMBOLS, ""),
        (GEO, PROBES, ""),
        (WORDS, ["age", "income", "height", "weight"], "name"),
        (WORDS, [f"x{i}" for i in range(9)], ""),
        (WORDS, [f"PC{i}" for i in range(9)], "cell"),
        (COUNTED, COUNTED[:12], "gene"),
        ([f"2020-01-{i + 1:02d}" for i in range(31)], ["a1", "b2", "c3"], "date"),
        (SHORT, [f"m{i}" for i in range(20)], "id"),
        ([f"g{i}" for i in range(20)], ["math1", "math2", "art1", "art2"], ""),
        ([f"{a}_st" for a in WORDS], ["day1", "b2", "c3", "d4"], "street"),
    ],
)
def test_samples_in_rows_stay_there(rows, columns, corner, tmp_path):
    table(rows, columns, corner).to_csv(tmp_path / "a.csv")
    found = read_table(tmp_path / "a.csv")
    assert found.sample_names == list(rows)
    assert found.feature_names == list(columns)
    assert found.reading["notes"] == []


def test_a_name_of_rows_alone_is_noted(tmp_path):
    table(WORDS, ["price", "volume", "earnings"], "Symbol").to_csv(tmp_path / "a.csv")
    found = read_table(tmp_path / "a.csv")
    assert found.sample_names == WORDS
    note = "if features are in rows ('Symbol' names the rows), say transpose=True"
    assert found.reading["notes"] == [note]
    turned = read_table(tmp_path / "a.csv", transpose=True)
    assert turned.feature_names == WORDS


@pytest.mark.parametrize("rows", [ENSEMBL, SYMBOLS])
def test_what_names_do_not_tell_is_asked_for(rows, tmp_path):
    made = table(rows, TISSUES)
    made.to_csv(tmp_path / "a.csv")
    with pytest.raises(AmbiguousTableError, match="may have features in rows") as error:
        read_table(tmp_path / "a.csv")
    assert error.value.cure == {"transpose": True}
    turned = read_table(tmp_path / "a.csv", transpose=True)
    np.testing.assert_array_equal(turned.values, made.to_numpy().T)
    assert read_table(tmp_path / "a.csv", transpose=False).sample_names == list(rows)


@pytest.mark.parametrize(
    ("rows", "columns", "name"),
    [
        (PROBES, CODES, ""),
        (ENTREZ, GEO, ""),
        (ENTREZ, CODES, "class"),
        (WORDS, SHORT, "tissue"),
    ],
)
def test_a_row_of_text_is_asked_for_once(rows, columns, name, tmp_path):
    made = with_classes(table(rows, columns), name)
    made.to_csv(tmp_path / "a.txt", sep="\t")
    with pytest.raises(AmbiguousTableError) as error:
        read_table(tmp_path / "a.txt")
    words = f"row 2, {name!r}, holds text in every column: are these the classes (2"
    assert str(error.value).count(words) == 1
    for given in ({"label_column": name}, {"label_column": "2"}, error.value.cure):
        found = read_table(tmp_path / "a.txt", **given)
        assert found.labels.tolist() == made.iloc[0].tolist()
        assert found.sample_names == list(columns)
        assert found.values.shape == (12, len(rows))


def test_columns_of_words_beside_genes_are_no_samples(tmp_path):
    made = table(ENSEMBL, ["length", "content"], "gene")
    made["strand"], made["kind"] = np.resize(["+", "-"], 40), np.resize(["x", "y"], 40)
    made.to_csv(tmp_path / "a.csv")
    with pytest.raises(AmbiguousTableError) as error:
        read_table(tmp_path / "a.csv")
    assert error.value.cure == {"categories": "encode"}
    assert read_table(tmp_path / "a.csv", **error.value.cure).sample_names == ENSEMBL


def test_several_rows_of_text_and_a_gap_come_in_one_list(tmp_path):
    made = with_classes(with_classes(table(PROBES, GEO), "site", ("x", "y", "z")))
    made.iloc[9, 3] = ""
    made.to_csv(tmp_path / "a.csv")
    with pytest.raises(AmbiguousTableError) as error:
        read_table(tmp_path / "a.csv")
    kinds = {"label_column": "", "categories": "encode", "impute": "median"}
    assert error.value.cure == kinds
    assert "row 3, 'site', (3 values: x, y, z) holds categories" in str(error.value)
    found = read_table(tmp_path / "a.csv", **kinds)
    assert found.values.shape == (12, 43)
    assert found.encoding == {"site": ["x", "y", "z"]}


def test_descriptions_of_genes_are_asked_for_together(tmp_path):
    made = table(SYMBOLS, CODES, "symbol")
    made.insert(0, "chromosome", [f"chr{i}" for i in range(9)])
    made.insert(1, "description", [f"gene of {i}" for i in range(9)])
    made.to_csv(tmp_path / "a.csv")
    with pytest.raises(AmbiguousTableError) as error:
        read_table(tmp_path / "a.csv")
    cure = {"transpose": True, "drop": ["chromosome", "description"]}
    assert error.value.cure == cure
    found = read_table(tmp_path / "a.csv", **cure)
    np.testing.assert_array_equal(found.values, made[CODES].to_numpy().T)


def test_samples_of_one_name_are_numbered_and_their_names_may_be_classes(tmp_path):
    names = ["ALL-B", "ALL-T", "AML"] * 4
    table(PROBES, names).to_csv(tmp_path / "a.csv")
    found = read_table(tmp_path / "a.csv")
    assert found.sample_names == [str(i + 1) for i in range(12)]
    assert found.columns["name"] == names
    assert found.reading["sample_names"] == "numbers from 1"
    assert "say label_column='1'" in found.reading["notes"][1]
    assert read_table(tmp_path / "a.csv", label_column="1").labels.tolist() == names


def test_the_class_that_is_named_tells_where_features_are(tmp_path):
    made = with_classes(table(WORDS, TISSUES), "kind")
    made.to_csv(tmp_path / "a.csv")
    found = read_table(tmp_path / "a.csv", label_column="kind")
    assert found.sample_names == TISSUES
    made.T.to_csv(tmp_path / "b.csv")
    again = read_table(tmp_path / "b.csv", label_column="kind")
    np.testing.assert_array_equal(found.values, again.values)
    assert found.labels.tolist() == again.labels.tolist()


def test_units_below_the_names_are_left_out(tmp_path):
    values = np.random.default_rng(0).normal(10.0, 2.0, (30, 4)).round(2)
    values[:, 2] = values[:, 2].round()
    rows = [["cm", "kg", "years", "EUR"], *values.tolist()]
    names = ["height", "weight", "age", "income"]
    frame = pandas.DataFrame(rows, columns=names)
    frame.to_csv(tmp_path / "a.csv", index=False)
    found = read_table(tmp_path / "a.csv")
    np.testing.assert_array_equal(found.values, values)
    note = "row 2 holds text in every column ('cm', 'kg', ...) and is left out"
    assert found.reading["notes"] == [note]


def test_a_new_table_is_turned_if_its_rows_are_the_models_features(tmp_path):
    made = table(WORDS, TISSUES)
    made.to_csv(tmp_path / "a.csv")
    found = read_table(tmp_path / "a.csv", known_features=WORDS[::-1])
    np.testing.assert_array_equal(found.values, made.to_numpy().T[:, ::-1])
    with pytest.raises(ValueError, match="lacks 1 of the model's 2 features"):
        read_table(tmp_path / "a.csv", known_features=["liver", "none"])


FILES = ["alizadeh-2000-v2", "bredel-2005", "golub-1999-v1", "risinger-2003"]


@pytest.mark.parametrize("name", FILES)
def test_gene_tables_of_the_paper_are_read_right(name, shared):
    (path,) = (shared / "datasets/raw").rglob(f"{name}_database.txt")
    (kept,) = (shared / "datasets/prepared").glob(f"DS-*_{name.capitalize()}.npz")
    with pytest.raises(AmbiguousTableError, match="are these the classes") as error:
        read_table(path)
    for given in (error.value.cure, {"label_column": "2"}):
        found = read_table(path, **given)
        with np.load(kept) as arrays:
            np.testing.assert_allclose(found.values, arrays["X"], rtol=1e-6)
            y = arrays["y"]
        same = found.labels[:, None] == found.labels
        np.testing.assert_array_equal(same, y[:, None] == y)


def test_categories_beside_expression_are_set_aside(tmp_path):
    rng = np.random.default_rng(0)
    values = np.exp(rng.normal(5.0, 1.8, (150, 1)) + rng.normal(0, 0.5, (150, 12)))
    rows = [f"g{i}" for i in range(150)]
    made = pandas.DataFrame(values.round(2), index=rows, columns=GEO)
    both = with_classes(with_classes(made, "sex", ("f", "m", "m")), "diagnosis")
    both.to_csv(tmp_path / "a.csv")
    with pytest.raises(AmbiguousTableError) as error:
        read_table(tmp_path / "a.csv")
    assert error.value.cure == {"label_column": "diagnosis", "categories": "annotate"}
    found = read_table(tmp_path / "a.csv", **error.value.cure)
    np.testing.assert_array_equal(found.values, made.to_numpy().T)
    assert list(found.columns) == ["sex"]


def test_features_are_named_by_the_column_that_has_their_names(tmp_path):
    made = table(ENSEMBL, GEO, "accession")
    made.insert(0, "kind of gene", np.resize(["one", "two", "two"], 40))
    made = made.reset_index()[["kind of gene", "accession", *GEO]]
    made.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(AmbiguousTableError) as error:
        read_table(tmp_path / "a.csv")
    assert error.value.cure == {"transpose": True, "drop": ["kind of gene"]}
    found = read_table(tmp_path / "a.csv", **error.value.cure)
    assert (found.feature_names, found.sample_names) == (ENSEMBL, GEO)
    np.testing.assert_array_equal(found.values, made[GEO].to_numpy().T)


def test_classes_that_name_the_samples_too_are_asked_for(tmp_path):
    made = table(PROBES, np.resize(["ALL", "AML"], 12))
    with_classes(made, "", ("ALL", "AML")).to_csv(tmp_path / "a.txt", sep="\t")
    with pytest.raises(AmbiguousTableError, match="are these the classes"):
        read_table(tmp_path / "a.txt")
    found = read_table(tmp_path / "a.txt", label_column="")
    assert found.labels.tolist() == ["ALL", "AML"] * 6
