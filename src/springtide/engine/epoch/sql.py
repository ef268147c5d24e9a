"""Names and types as they stand in SQL."""

from pyspark.sql.types import ArrayType, DataType, MapType, StructType


def sql_type(kind: DataType) -> str:
    """A type as SQL has it, whatever its fields are called; all of them may be null, as the struct itself may be.

    >>> from pyspark.sql.types import LongType, StructField
    >>> sql_type(StructType([StructField("a b", LongType(), nullable=False)]))
    'STRUCT<`a b`: bigint>'
    """
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(f'{quoted(field.name)}: {sql_type(field.dataType)}' for field in kind)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{sql_type(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{sql_type(kind.keyType)}, {sql_type(kind.valueType)}>"
    return kind.simpleString()


def quoted(name: str) -> str:
    """A column's name as it stands in SQL."""
    return "`" + name.replace("`", "``") + "`"
