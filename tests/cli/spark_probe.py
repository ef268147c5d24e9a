"""A Spark of its own that tries to talk to an endpoint of another: `spark_probe.py PORT ENDPOINT`, secrets on stdin.

For each line of stdin it says whether the other one answers who knows that secret; an empty one is none at all.
"""

import sys
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from springtide.engine.spark.internals import start_jvm
from springtide.engine.spark.own_machine import ENVIRONMENT


def answers(jvm: Any, port: int, endpoint: str, secret: str) -> bool:
    conf = jvm.SparkConf(False).set("spark.rpc.askTimeout", "20s")
    if secret:
        conf = conf.set("spark.authenticate", "true").set("spark.authenticate.secret", secret)
    usual = getattr(getattr(jvm.org.apache.spark, "SecurityManager$"), "MODULE$")
    no_file = getattr(usual, "$lessinit$greater$default$3")()
    manager = jvm.org.apache.spark.SecurityManager(conf, jvm.scala.Option.empty(), no_file)
    room = jvm.org.apache.spark.rpc.RpcEnv.create("probe", "127.0.0.1", 0, conf, manager, True)
    try:
        room.setupEndpointRef(jvm.org.apache.spark.rpc.RpcAddress("127.0.0.1", port), endpoint)
    except Py4JJavaError:
        return False
    finally:
        room.shutdown()
    return True


if __name__ == "__main__":
    start_jvm({"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}, ENVIRONMENT)
    for line in sys.stdin:
        print(answers(SparkContext._jvm, int(sys.argv[1]), sys.argv[2], line.strip()))
