package springtide;

import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** An RDD of rows as they are. Each task that succeeds tells how many rows of its partition have a marked column set. */
public final class CountedRDD extends RDD {
    private final int[] structs;
    private final int[] sizes;
    private final int[] columns;
    private final CollectionAccumulator told;

    /**
     * Mark i is column columns[i] of the row if structs[i] is negative, or else of the struct at structs[i], which has
     * sizes[i] fields. What is told has the form "mark partition rows".
     */
    public CountedRDD(RDD parent, int[] structs, int[] sizes, int[] columns, CollectionAccumulator told) {
        super(parent, parent.elementClassTag());
        this.structs = structs;
        this.sizes = sizes;
        this.columns = columns;
        this.told = told;
    }

    public Iterator compute(Partition partition, TaskContext context) {
        final Iterator rows = firstParent(elementClassTag()).iterator(partition, context);
        final AtomicLongArray found = new AtomicLongArray(columns.length);
        final int number = partition.index();
        TaskCompletionListener tell = new TaskCompletionListener() {
            public void onTaskCompletion(TaskContext ended) {
                for (int i = 0; i < found.length(); i++) {
                    if (found.get(i) > 0) {
                        told.add(i + " " + number + " " + found.get(i));
                    }
                }
            }
        };
        context.addTaskCompletionListener(tell);
        return CollectionConverters.asScala(new java.util.Iterator() {
            public boolean hasNext() {
                return rows.hasNext();
            }

            public Object next() {
                InternalRow row = (InternalRow) rows.next();
                for (int i = 0; i < columns.length; i++) {
                    if (marked(row, i)) {
                        found.incrementAndGet(i);
                    }
                }
                return row;
            }

            public void remove() {
                throw new UnsupportedOperationException();
            }
        });
    }

    private boolean marked(InternalRow row, int i) {
        if (structs[i] < 0) {
            return !row.isNullAt(columns[i]);
        }
        return !row.isNullAt(structs[i]) && !row.getStruct(structs[i], sizes[i]).isNullAt(columns[i]);
    }

    public Partition[] getPartitions() {
        return firstParent(elementClassTag()).partitions();
    }

    public Seq getPreferredLocations(Partition partition) {
        return firstParent(elementClassTag()).preferredLocations(partition);
    }
}
