"""What is header, names, features and classes; what looks like them stops the run."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat
from sklearn.datasets import load_digits, load_iris, load_wine

from mdec.tables.clusterings import read_base_clusterings
from mdec.tables.columns import is_class_name, is_id_name
from mdec.tables.reading import read_table
from mdec.tables.roles import AmbiguousTableError

pandas = pytest.importorskip("pandas")

WINE = load_wine()
FRAME = pandas.DataFrame(WINE.data, columns=WINE.feature_names)
COUNTS = pandas.DataFrame(
    np.random.default_rng(0).poisson(5000, size=(60, 13)),
    columns=[f"g{i}" for i in range(13)],
)


def written(frame, folder, ending="csv", **options):
    path = folder / f"a.{ending}"
    if ending == "csv":
        frame.to_csv(path, **options)
    elif ending == "parquet":
        pytest.importorskip("pyarrow")
        frame.columns = frame.columns.map(str)
        frame.to_parquet(path)
    else:
        pytest.importorskip("openpyxl")
        frame.to_excel(path, **options)
    return path


HEADERS = {
    "positions": list(range(13)),
    "positions from 1": list(range(1, 14)),
    "years": list(range(1991, 2004)),
    "Entrez": np.random.default_rng(0).integers(1000, 99999, 13).tolist(),
}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_numbers_as_names_of_columns_are_no_sample(tmp_path, name, index, ending):
    frame = FRAME.set_axis(HEADERS[name], axis=1)
    table = read_table(written(frame, tmp_path, ending, index=index))
    np.testing.assert_array_equal(table.values, WINE.data)
    assert table.feature_names == [str(each) for each in HEADERS[name]]
    first = 0 if index else 1
    assert table.sample_names == [str(i + first) for i in range(178)]


@pytest.mark.parametrize("name", ["positions", "years"])
def test_numbers_as_names_over_counts(tmp_path, name):
    frame = COUNTS.set_axis(HEADERS[name], axis=1)
    table = read_table(written(frame, tmp_path, index=False))
    np.testing.assert_array_equal(table.values, COUNTS)


def test_a_first_row_that_may_be_either_stops(tmp_path):
    small = pandas.DataFrame(np.random.default_rng(0).poisson(5, size=(60, 13)))
    path = written(small.set_axis(HEADERS["Entrez"], axis=1), tmp_path, index=False)
    with pytest.raises(AmbiguousTableError, match="header=True or header=False"):
        read_table(path)
    assert read_table(path, header=True).values.shape == (60, 13)
    assert read_table(path, header=False).values.shape == (61, 13)
    mixed = FRAME.set_axis(["1.5", *FRAME.columns[1:]], axis=1)
    with pytest.raises(AmbiguousTableError, match="header=True or header=False"):
        read_table(written(mixed, tmp_path, index=False))


def test_standard_input_is_asked_about_as_a_file_is(tmp_path, monkeypatch):
    gaps = FRAME.set_axis(["1.5", *FRAME.columns[1:]], axis=1).astype(object)
    gaps.iloc[3, 2] = None
    path = written(gaps, tmp_path, index=False)
    errors = []
    for source in (path, "-"):
        monkeypatch.setattr(
            "sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes()))
        )
        with pytest.raises(AmbiguousTableError, match="several ways") as caught:
            read_table(source)
        errors.append(caught.value)
    assert errors[0].cure == errors[1].cure == {"header": True, "impute": "median"}


@pytest.mark.parametrize(
    "given", [{"index": False}, {"features": ["", "g1", "g2"]}, {"features": ["", "*"]}]
)
def test_words_are_no_numbers_whoever_calls_them_features(tmp_path, given):
    path = tmp_path / "a.csv"
    path.write_text(",g1,g2\ns0,1,2\ns1,3,4\ns2,5,6\n")
    with pytest.raises(AmbiguousTableError, match="'' holds no numbers but 's0'") as e:
        read_table(path, **given)
    table = read_table(path, **given | e.value.cure)
    assert table.sample_names == ["s0", "s1", "s2"]
    np.testing.assert_array_equal(table.values, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize("frame", [FRAME, COUNTS], ids=["wine", "counts"])
def test_bare_numbers_lose_no_sample(tmp_path, frame):
    table = read_table(written(frame, tmp_path, header=False, index=False))
    np.testing.assert_array_equal(table.values, frame)


def test_a_word_in_the_first_row_is_no_header(tmp_path):
    iris = load_iris()
    frame = pandas.DataFrame(iris.data)
    frame["species"] = iris.target_names[iris.target]
    path = written(frame, tmp_path, header=False, index=False)
    table = read_table(path, label_column="5")
    np.testing.assert_array_equal(table.values, iris.data)
    assert table.labels[0] == "setosa"
    with pytest.raises(AmbiguousTableError, match=r"'5' .*setosa.* holds no numbers"):
        read_table(path)


IDS = ["patient_id", "Sample ID", "Unnamed: 0", "barcode", "cell", "subject", "id", ""]


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
@pytest.mark.parametrize("place", [0, 13])
def test_identifiers_name_the_samples(tmp_path, name, ending, place):
    if place and not name:
        pytest.skip("an unnamed column is an index in the first place only")
    ids = np.random.default_rng(1).permutation(178) + 1000
    frame = FRAME.copy()
    frame.insert(place, name, ids)
    options = {} if ending == "parquet" else {"index": False}
    table = read_table(written(frame, tmp_path, ending, **options))
    np.testing.assert_array_equal(table.values, WINE.data)
    assert table.sample_names == [str(each) for each in ids]
    assert table.reading["sample_names"] == f"column {name!r}"


def test_names_keep_their_zeros(tmp_path):
    frame = FRAME.assign(id=[f"{i:04d}" for i in range(178)])
    table = read_table(written(frame, tmp_path, index=False))
    assert table.sample_names[:2] == ["0000", "0001"]


LEADS = {
    "counted": np.arange(1, 179),
    "rising": np.cumsum(np.random.default_rng(0).integers(1, 9, 178)),
    "all different": np.random.default_rng(0).permutation(178) * 7 + 3,
}


@pytest.mark.parametrize("name", LEADS)
@pytest.mark.parametrize("ending", ["csv", "parquet", "npy"])
def test_what_looks_like_an_identifier_stops(tmp_path, name, ending):
    frame = FRAME.copy()
    frame.insert(0, "xyz", LEADS[name])
    if ending == "npy":
        path, column = tmp_path / "a.npy", "1"
        np.save(path, frame.to_numpy())
    else:
        options = {"index": False} if ending == "csv" else {}
        path, column = written(frame, tmp_path, ending, **options), "xyz"
    with pytest.raises(
        AmbiguousTableError, match=f"'{column}' .* identifier.*id_column="
    ) as got:
        read_table(path)
    assert "\n" not in str(got.value)
    named = read_table(path, id_column=column)
    assert named.sample_names[1] == str(LEADS[name][1])
    for table in (named, read_table(path, drop=[column])):
        np.testing.assert_array_equal(table.values, WINE.data)
    assert read_table(path, features=["*"]).values.shape == (178, 14)
    assert read_table(path, index=False).values.shape == (178, 14)


def test_a_second_identifier_stops(tmp_path):
    frame = FRAME.assign(patient_id=np.arange(178) // 2)
    frame.insert(0, "sample", [f"s{i}" for i in range(178)])
    path = written(frame, tmp_path, index=False)
    with pytest.raises(AmbiguousTableError, match="drop=\\['patient_id'\\]"):
        read_table(path)


CODES = {"from 0": [0, 1, 2], "from 1": [1, 2, 3], "signs": [-1, 1, 1]}


@pytest.mark.parametrize("codes", CODES)
@pytest.mark.parametrize("name", ["target", "Class", "zz"])
@pytest.mark.parametrize("place", [0, 13])
def test_what_looks_like_classes_stops(tmp_path, codes, name, place):
    classes = np.array(CODES[codes])[WINE.target]
    frame = FRAME.copy()
    frame.insert(place, name, classes)
    path = written(frame, tmp_path, index=False)
    with pytest.raises(
        AmbiguousTableError, match=f"'{name}' .* known classes.*label_column="
    ):
        read_table(path)
    table = read_table(path, label_column=name)
    np.testing.assert_array_equal(table.values, WINE.data)
    assert table.labels.tolist() == [str(each) for each in classes]
    assert read_table(path, features=["*"]).values.shape == (178, 14)


@pytest.mark.parametrize("codes", [[0, 2, 3], [1, 3, 4], [2, 3, 4], [-1, 0, 1]])
def test_whole_numbers_that_skip_some_are_measurements(tmp_path, codes):
    frame = FRAME.assign(zz=np.array(codes)[WINE.target])
    path = written(frame, tmp_path, index=False)
    assert read_table(path).values.shape == (178, 14)


def test_classes_in_the_first_column_of_an_array(tmp_path):
    values = np.column_stack([WINE.target + 1.0, WINE.data])
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "a.npz", data=values)
    savemat(tmp_path / "a.mat", {"fea": values})
    for ending in ("npy", "npz", "mat"):
        path = tmp_path / f"a.{ending}"
        with pytest.raises(AmbiguousTableError, match="label_column='1'"):
            read_table(path)
        table = read_table(path, label_column="1")
        np.testing.assert_array_equal(table.values, WINE.data)
        assert set(table.labels) == {"1", "2", "3"}


def test_real_tables_are_not_refused(tmp_path):
    digits = load_digits().data
    for name, values in (("digits", digits), ("whole", digits.astype(int))):
        frame = pandas.DataFrame(values).add_prefix("pixel")
        table = read_table(written(frame, tmp_path, index=False))
        np.testing.assert_array_equal(table.values, digits, err_msg=name)
        np.save(tmp_path / "a.npy", values)
        assert read_table(tmp_path / "a.npy").values.shape == (1797, 64)
    assert len(set(COUNTS["g0"])) > 50
    unique = COUNTS.assign(g3=np.random.default_rng(2).permutation(60) + 900)
    assert read_table(written(unique, tmp_path, index=False)).values.shape == (60, 13)


def test_drop_and_features_take_patterns(tmp_path):
    path = written(FRAME, tmp_path, index=False)
    assert read_table(path, drop=["alc*", "hue"]).values.shape == (178, 10)
    table = read_table(path, features=["*phenols", "hue"])
    assert table.feature_names == ["total_phenols", "nonflavanoid_phenols", "hue"]
    assert table.reading["n_left_out"] == 10
    with pytest.raises(ValueError, match=r"no column 'hu'; it has 'hue'"):
        read_table(path, drop=["hu"])


def test_missing_values_are_counted_and_filled_in_on_request(tmp_path):
    holes = FRAME.copy()
    holes.iloc[3, [2, 5]] = np.nan
    holes.iloc[9, 2] = np.nan
    path = written(holes, tmp_path, index=False)
    with pytest.raises(ValueError, match="3 missing values, in 2 of 178 samples and 2"):
        read_table(path)
    table = read_table(path, impute="median")
    assert table.values[3, 2] == table.values[9, 2] == np.nanmedian(holes["ash"])
    assert table.reading["missing"] == 3
    near = read_table(path, impute="knn").values
    gaps = np.sqrt(
        ((FRAME.drop(columns="ash").values[9] - FRAME.drop(columns="ash")) ** 2).sum(
            axis=1
        )
    )
    gaps[[3, 9]] = np.inf
    nearest = np.argsort(gaps.to_numpy(), kind="stable")[:5]
    assert near[9, 2] == pytest.approx(FRAME["ash"].to_numpy()[nearest].mean())
    holes["hue"] = np.nan
    path = written(holes, tmp_path, index=False)
    with pytest.raises(ValueError, match="no value at all in column 'hue'"):
        read_table(path, impute="median")
    with pytest.raises(ValueError, match="not one of median, knn"):
        read_table(path, impute="mean")


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_samples_without_a_class(tmp_path, ending):
    classes = pandas.array([["a", "b", "none"][k] for k in WINE.target], dtype=object)
    classes[[0, 5]] = None
    frame = FRAME.assign(kind=classes)
    options = {} if ending == "parquet" else {"index": False}
    path = written(frame, tmp_path, ending, **options)
    table = read_table(path, label_column="kind")
    assert sorted(set(table.labels)) == ["", "a", "b", "none"]
    assert np.flatnonzero(table.labels == "").tolist() == [0, 5]
    assert table.reading["n_without_class"] == 2
    coded = FRAME.assign(kind=pandas.array(WINE.target, dtype="Int64"))
    coded.loc[4, "kind"] = pandas.NA
    path = written(coded, tmp_path, ending, **options)
    found = read_table(path, label_column="kind").labels
    assert found[[3, 4]].tolist() == ["0", ""]
    assert set(found) == {"", "0", "1", "2"}


def test_names_of_columns():
    yes = ["sample_id", "PatientID", "sampleId", "cell", "Cell ID", "row.names", "gene"]
    assert all(is_id_name(name) for name in yes)
    no = ["BID", "ARID1A", "acid", "malic_acid", "cell_count", "proline", "humid"]
    assert not any(is_id_name(name) for name in no)
    assert all(is_class_name(name) for name in ("y", "Cell type", "GROUP", "target"))
    assert not any(is_class_name(name) for name in ("y1", "TP53", "grouping"))


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.floats(-1e300, 1e300),
        min_size=4,
        max_size=4,
    ),
    st.integers(1, 30),
)
def test_text_gives_the_numbers_of_python(tmp_path, numbers, digits):
    forms = [f"{x:.{digits}e}" for x in numbers]
    (tmp_path / "a.csv").write_text(
        "id,a,b\n"
        + "\n".join(
            f"s{i},{form},{x!r}"
            for i, (form, x) in enumerate(zip(forms, numbers, strict=True))
        )
    )
    table = read_table(tmp_path / "a.csv", features=["*"])
    expected = [[float(form), x] for form, x in zip(forms, numbers, strict=True)]
    np.testing.assert_array_equal(table.values, np.array(expected, dtype=np.float64))


LABELS = np.random.default_rng(0).integers(0, 3, size=(20, 5))


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("index", [True, False])
def test_labels_of_pandas(tmp_path, header, index):
    path = tmp_path / "a.csv"
    pandas.DataFrame(LABELS).to_csv(path, header=header, index=index)
    labels, samples, members = read_base_clusterings(path)
    assert labels.tolist() == LABELS.astype(str).tolist()
    assert samples[0] == ("0" if index else "1")
    assert members[0] == ("0" if header else "clustering 1")


COLUMNS = {
    "words": ("a\na\nb\nb\n", 4),
    "numbers": ("0\n0\n1\n1\n", 4),
    "named": ("cluster\na\na\nb\nb\n", 4),
    "named numbers": ("km\n0\n0\n1\n", 3),
    "either": ("x\na\na\nb\nb\n", None),
    "three": ("0,1,2\n0,1,0\n1,0,2\n2,1,0\n0,0,0\n", None),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_labels_keeps_its_first_sample(tmp_path, name):
    content, n_samples = COLUMNS[name]
    (tmp_path / "a.csv").write_text(content)
    if n_samples is None:
        with pytest.raises(AmbiguousTableError, match="header=True or header=False"):
            read_base_clusterings(tmp_path / "a.csv")
        n_lines = content.count("\n")
        for header in (True, False):
            found = read_base_clusterings(tmp_path / "a.csv", header=header)[0]
            assert len(found) == n_lines - header
    else:
        assert len(read_base_clusterings(tmp_path / "a.csv")[0]) == n_samples


def test_words_that_may_mark_missing_numbers_are_labels(tmp_path):
    words = ["unknown", "-", "missing", "a"]
    rows = [f"s{i},{words[i % 4]},{i % 2}" for i in range(12)]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(["sample,kind,cluster", *rows]))
    labels = read_base_clusterings(path)[0]
    assert labels[:4, 0].tolist() == words


def test_measurements_are_no_clusterings(tmp_path):
    rows = [f"s{i},{i % 2},0.{i}3" for i in range(9)]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(["sample,cluster,confidence", *rows]))
    with pytest.raises(AmbiguousTableError, match="drop=\\['confidence'\\]"):
        read_base_clusterings(path)
    labels, samples, members = read_base_clusterings(path, drop=["conf*"])
    assert (labels.shape, samples[0], members) == ((9, 1), "s0", ["cluster"])
