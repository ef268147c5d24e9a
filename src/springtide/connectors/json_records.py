"""Records that are to be one JSON object each: their columns, and whether they are what they should be."""

import secrets
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from springtide.dataflow.source_spec import CORRUPT
from springtide.errors import BadValue

TEXT = "__text"
"""The column with a record's text."""
_ROW, _SOUND = "__row", "__sound"
STRICT = {"allowSingleQuotes": "false"}
"""What Spark's parser lets pass unless it is told; users' own options come after."""


class JsonRecords:
    """Parses the column `TEXT` of records.

    Spark's parser reads one value and does not look at what comes after it. So each text is put into an array, before
    an object that marks the end: `{"record_x": [TEXT, {"end_x": 1}]}`. Whatever is not one object then breaks the
    array, makes it longer, or hides the mark. No text can give the mark itself, as it can't know the names.
    """

    def __init__(self, schema: str, options: Mapping[str, str], *, lenient: bool) -> None:
        columns = StructType.fromDDL(schema)
        if not isinstance(columns, StructType):
            raise BadValue(f"expected a schema such as 'user STRING, n INT', got {schema!r}")
        self._columns = columns
        self._lenient = lenient
        self._options = {**({} if lenient else STRICT), **options}
        self._options |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        secret = secrets.token_hex(8)
        self._record, self._end = f"record_{secret}", f"end_{secret}"

    @property
    def names(self) -> list[str]:
        """The columns of the schema."""
        return self._columns.fieldNames()

    def parsed(self, records: DataFrame) -> DataFrame:
        """The records with what their text holds; `columns` and `corrupt` are columns of this DataFrame."""
        return records.withColumn(_ROW, self._row()).withColumn(_SOUND, F.coalesce(self._sound(), F.lit(False)))

    def columns(self) -> list[Column]:
        """The columns of the schema; of a corrupt record, they mean nothing."""
        row = F.col(_ROW) if self._lenient else self._at(0)
        return [row.getField(name).alias(name) for name in self.names]

    def corrupt(self) -> Column:
        """The text of a record that is not one object of the schema, else null; one without a text is empty."""
        return F.when(~F.col(_SOUND), F.coalesce(F.col(TEXT), F.lit("")))

    def _row(self) -> Column:
        text, told = F.col(TEXT), StructField(CORRUPT, StringType())
        if self._lenient:
            return F.from_json(text, StructType([*self._columns.fields, told]), self._options)
        element = StructType([*self._columns.fields, StructField(self._end, IntegerType())])
        whole = F.concat(F.lit(f'{{"{self._record}":['), text, F.lit(f',{{"{self._end}":1}}]}}'))
        return F.from_json(whole, StructType([StructField(self._record, ArrayType(element)), told]), self._options)

    def _sound(self) -> Column:
        parsed = F.col(f"{_ROW}.{CORRUPT}").isNull()
        if self._lenient:
            # Spark takes the first of several objects in an array, and nothing from what is no object.
            return F.col(_ROW).isNotNull() & parsed & ~F.col(TEXT).rlike(r"^\s*\[")
        alone = (F.size(f"{_ROW}.{self._record}") == 2) & (self._at(1).getField(self._end) == 1)
        return parsed & alone & self._at(0).isNotNull() & F.is_valid_utf8(F.col(TEXT))

    def _at(self, place: int) -> Column:
        return F.get(f"{_ROW}.{self._record}", F.lit(place))


def refused(step: str, where: Column, corrupt: Column) -> Column:
    """True for sound records; one that is corrupt ends the epoch with an error that names the step and the record."""
    told = F.concat(
        F.lit(f"step '{step}' failed while reading its records: expected one JSON object of its schema in "),
        where,
        F.lit(", got "),
        F.substring(corrupt, 1, 80),
    )
    return F.when(corrupt.isNull(), F.lit(True)).otherwise(F.raise_error(told).cast("boolean"))
