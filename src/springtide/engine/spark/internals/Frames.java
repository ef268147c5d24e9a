package springtide;

import java.lang.reflect.Constructor;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.OneToOneDependency;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.UnionRDD;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * DataFrames for Python, each in one call. Spark's own ways take a call for every column and every part of a function,
 * and each of them is a round trip to this JVM.
 */
public final class Frames {
    /** PythonEvalType.SQL_MAP_ARROW_ITER_UDF. */
    private static final int MAP_IN_ARROW = 207;

    private final PythonFunction like;
    private final Map schemas = new ConcurrentHashMap();

    /** `like` has the environment that all functions of a session share. */
    public Frames(PythonFunction like) {
        this.like = like;
    }

    /** Rows with the columns of these expressions, which stand apart by a zero character. */
    public Dataset select(Dataset rows, String expressions) {
        return rows.selectExpr(expressions.split("\0"));
    }

    /** What a pickled function from batches to batches makes of rows; the schema of its own rows is JSON. */
    public Dataset mapInArrow(Dataset rows, byte[] function, String name, String schema) {
        LogicalPlan plan = rows.queryExecution().analyzed();
        PythonFunction command = new SimplePythonFunction(
                function,
                like.envVars(),
                like.pythonIncludes(),
                like.pythonExec(),
                like.pythonVer(),
                like.broadcastVars(),
                like.accumulator());
        StructType output = schemaOf(schema);
        Seq input = plan.output();
        PythonUDF udf =
                new PythonUDF(name, command, output, input, MAP_IN_ARROW, true, NamedExpression$.MODULE$.newExprId());
        Seq attributes = DataTypeUtils.toAttributes(output);
        return Dataset.ofRows(rows.sparkSession(), new MapInArrow(udf, attributes, plan, false, Option.empty()));
    }

    /** Rows in partitions by the number in a column. */
    public Dataset repartitionById(Dataset rows, int partitions, String column) {
        return rows.repartitionById(partitions, functions.col(column));
    }

    /** The RDD that a micro-batch is. */
    public RDD rddOf(Dataset batch) {
        return ((LogicalRDD) batch.queryExecution().logical()).rdd();
    }

    /**
     * How many partitions each part of a union has, one after the other; of anything else, its own number. A space
     * stands between them.
     */
    public String partsOf(RDD rdd) {
        RDD one = rdd;
        while (!(one instanceof UnionRDD)) {
            Seq dependencies = one.dependencies();
            if (dependencies.size() != 1 || !(dependencies.apply(0) instanceof OneToOneDependency)) {
                return String.valueOf(rdd.getNumPartitions());
            }
            one = ((OneToOneDependency) dependencies.apply(0)).rdd();
        }
        Seq parts = ((UnionRDD) one).rdds();
        StringBuilder sizes = new StringBuilder();
        for (int i = 0; i < parts.size(); i++) {
            sizes.append(((RDD) parts.apply(i)).getNumPartitions()).append(' ');
        }
        return sizes.toString().trim();
    }

    /** What tasks can tell the driver, those that fail as well. */
    public CollectionAccumulator accumulator(SparkContext context) {
        CollectionAccumulator told = new CollectionAccumulator();
        told.register(context, Option.empty(), true);
        return told;
    }

    /** The rows of an RDD that a class of ours makes of others, with the columns of a DataFrame like it. */
    public Dataset made(Constructor kind, Dataset like, Object parent, Object first, Object second, Object third)
            throws ReflectiveOperationException {
        Object[] all = new Object[] {parent, first, second, third};
        Object[] wanted = Arrays.copyOf(all, kind.getParameterTypes().length);
        RDD rdd = (RDD) kind.newInstance(wanted);
        return like.sparkSession().internalCreateDataFrame(rdd, like.schema(), false);
    }

    private StructType schemaOf(String json) {
        Object found = schemas.get(json);
        if (found == null) {
            found = DataType.fromJson(json);
            schemas.put(json, found);
        }
        return (StructType) found;
    }
}
