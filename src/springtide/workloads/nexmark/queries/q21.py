"""Number of the channel: of the four large ones as a table says, of the others from the URL of the bid."""

from springtide.dataflow.stream import Stream
from springtide.workloads.nexmark.inputs import Inputs

CHANNEL_ID = """
CASE lower(channel)
    WHEN 'apple' THEN '0'
    WHEN 'google' THEN '1'
    WHEN 'facebook' THEN '2'
    WHEN 'baidu' THEN '3'
    ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)
END AS channel_id
"""


def query(inputs: Inputs) -> Stream:

    known = inputs.bid("auction", "bidder", "price", "channel", "url").filter(
        "known",
        "lower(channel) IN ('apple', 'google', 'facebook', 'baidu') OR url RLIKE '(&|^)channel_id=([^&]*)'",
    )
    return known.transform("numbered", lambda df: df.selectExpr("auction", "bidder", "price", "channel", CHANNEL_ID))
