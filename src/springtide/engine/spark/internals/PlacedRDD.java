package springtide;

import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** An RDD whose partitions ask for an executor each, and whose tasks know the one they got. */
public final class PlacedRDD extends RDD {
    private final String[] places;
    private final String property;

    /** A space stands between the places. */
    public PlacedRDD(RDD parent, String places, String property) {
        super(parent, parent.elementClassTag());
        this.places = places.split(" ");
        this.property = property;
    }

    public Iterator compute(Partition partition, TaskContext context) {
        context.getLocalProperties().setProperty(property, executorId());
        return firstParent(elementClassTag()).iterator(partition, context);
    }

    /** Through handles: the compiler can't read SparkEnv, some of its types are not in the distribution. */
    private static String executorId() {
        try {
            Class env = Class.forName("org.apache.spark.SparkEnv");
            MethodHandles.Lookup lookup = MethodHandles.publicLookup();
            Object here = lookup.findStatic(env, "get", MethodType.methodType(env)).invokeWithArguments(new Object[0]);
            MethodType text = MethodType.methodType(String.class);
            return (String) lookup.findVirtual(env, "executorId", text).invokeWithArguments(new Object[] {here});
        } catch (Throwable error) {
            throw new IllegalStateException("expected SparkEnv.get().executorId()", error);
        }
    }

    public Partition[] getPartitions() {
        return firstParent(elementClassTag()).partitions();
    }

    public Seq getPreferredLocations(Partition partition) {
        Object[] place = new Object[] {places[partition.index() % places.length]};
        return CollectionConverters.asScala(java.util.Arrays.asList(place)).toSeq();
    }
}
