"""Options that several commands have: one name, one sentence, one meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mdec.consensus import CONSENSUS
from mdec.tables.door import MAX_BYTES
from mdec.tables.values import IMPUTATIONS
from mdec.weights import WEIGHTINGS

Out = Annotated[Path, typer.Option("--out", "-o", help="Folder of the results.")]
Number = Annotated[
    str, typer.Option("--k", help="Number of clusters: 5, auto, or a range 2:12.")
]
Consensus = Annotated[str, typer.Option(help=f"One of {', '.join(CONSENSUS)}.")]
Weighting = Annotated[str, typer.Option(help=f"One of {', '.join(WEIGHTINGS)}.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed, the same result.")]
Jobs = Annotated[
    int | None, typer.Option(help="Work done at the same time; -1 for all cores.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
Header = Annotated[
    bool | None,
    typer.Option(help="Whether the first row holds names; looks if absent."),
]
Index = Annotated[
    bool | None, typer.Option(help="Whether the first column does; looks if absent.")
]
IdColumn = Annotated[
    str | None, typer.Option(help="Column that holds the samples' names.")
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help="Column to leave out, a name or pattern; may be repeated."),
]
Transpose = Annotated[
    bool, typer.Option("--transpose", help="The file has features in rows.")
]
Variable = Annotated[
    str | None,
    typer.Option(
        help="Array of an npz or mat file, sheet of an xlsx, layers/NAME or obsm/NAME "
        "of an h5ad."
    ),
]
Impute = Annotated[
    str | None,
    typer.Option(help=f"Fill in missing values: {' or '.join(IMPUTATIONS)}."),
]
MaxGb = Annotated[float, typer.Option(help="Refuse files that unpack to more.")]
DEFAULT_GB = MAX_BYTES / 2**30
