"""Word count: the smallest app with state.

    springtide run examples/wordcount.py

counts generated text until Ctrl-C. To count books of your own, plain text files that may go on arriving:

    BOOKS='books/*.txt' springtide run examples/wordcount.py
"""

import os

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from springtide import App, agg, sinks, sources


def text():
    """Text files if there are any, else 1,000 made-up lines a second."""
    if "BOOKS" in os.environ:
        return sources.files(os.environ["BOOKS"])
    return sources.generator(1_000, words_per_row=8, keys=5_000, skew=1.1, max_rows_per_epoch=10_000)


def split(lines: DataFrame) -> DataFrame:
    """One row a word. Files call their lines `value`, the generator calls them `text`."""
    line = "text" if "text" in lines.columns else "value"
    words = F.split(F.lower(line), r"[^\p{L}\p{N}']+")
    return lines.select(F.explode(words).alias("word")).filter("word <> ''")


def build(source=None, sink=None) -> App:
    app = App("wordcount")
    lines = app.source("lines", source or text())
    words = lines.transform("words", split)
    counts = words.key_by("word").aggregate("counts", n=agg.count())
    counts.sink("top", sink or sinks.console(top=10, by="n"))
    return app


app = build()

if __name__ == "__main__":
    app.run()
