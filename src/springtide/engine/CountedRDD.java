package springtide;

import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The same rows, counted while a task reads them. The task then tells its partition and the counts, by source.
 * A row's first column is the number of its source, if there are several.
 */
public final class CountedRDD extends RDD {
    private final CollectionAccumulator told;
    private final int sources;

    public CountedRDD(RDD parent, CollectionAccumulator told, int sources) {
        super(parent, parent.elementClassTag());
        this.told = told;
        this.sources = sources;
    }

    public Iterator compute(Partition partition, TaskContext context) {
        AtomicLongArray counts = new AtomicLongArray(sources);
        context.addTaskCompletionListener(new Tell(told, partition.index(), counts));
        return new Counting(firstParent(elementClassTag()).iterator(partition, context), counts);
    }

    public Partition[] getPartitions() {
        return firstParent(elementClassTag()).partitions();
    }

    private static final class Counting extends AbstractIterator {
        private final Iterator rows;
        private final AtomicLongArray counts;
        private final boolean several;

        Counting(Iterator rows, AtomicLongArray counts) {
            this.rows = rows;
            this.counts = counts;
            this.several = counts.length() > 1;
        }

        public boolean hasNext() {
            return rows.hasNext();
        }

        public Object next() {
            Object row = rows.next();
            int source = several ? ((SpecializedGetters) row).getInt(0) : 0;
            counts.lazySet(source, counts.get(source) + 1); // One thread reads a partition; another may tell.
            return row;
        }
    }

    private static final class Tell implements TaskCompletionListener {
        private final CollectionAccumulator told;
        private final int partition;
        private final AtomicLongArray counts;

        Tell(CollectionAccumulator told, int partition, AtomicLongArray counts) {
            this.told = told;
            this.partition = partition;
            this.counts = counts;
        }

        public void onTaskCompletion(TaskContext context) {
            StringBuilder line = new StringBuilder().append(partition);
            for (int source = 0; source < counts.length(); source++) {
                line.append(' ').append(counts.get(source));
            }
            told.add(line.toString());
        }
    }
}
