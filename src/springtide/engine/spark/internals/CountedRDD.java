package springtide;

import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The same rows, counted while a task reads them. The task then tells its partition, the rows of each source, and the
 * rows with each marked column set. A row's first column is the number of its source, if there are several.
 */
public final class CountedRDD extends RDD {
    private final CollectionAccumulator told;
    private final int sources;
    private final int[] structs;
    private final int[] sizes;
    private final int[] columns;

    /**
     * Each mark is three numbers: the place of a struct in the row, how many fields it has, and the place of the marked
     * column in it. If the struct's place is negative, the column is the row's own. A space stands between numbers.
     */
    public CountedRDD(RDD parent, CollectionAccumulator told, int sources, String marks) {
        super(parent, parent.elementClassTag());
        this.told = told;
        this.sources = sources;
        String[] numbers = marks.isEmpty() ? new String[0] : marks.split(" ");
        structs = new int[numbers.length / 3];
        sizes = new int[structs.length];
        columns = new int[structs.length];
        for (int i = 0; i < structs.length; i++) {
            structs[i] = Integer.parseInt(numbers[3 * i]);
            sizes[i] = Integer.parseInt(numbers[3 * i + 1]);
            columns[i] = Integer.parseInt(numbers[3 * i + 2]);
        }
    }

    public Iterator compute(Partition partition, TaskContext context) {
        AtomicLongArray counts = new AtomicLongArray(sources + columns.length);
        context.addTaskCompletionListener(new Tell(told, partition.index(), counts));
        return new Counting(firstParent(elementClassTag()).iterator(partition, context), counts, this);
    }

    public Partition[] getPartitions() {
        return firstParent(elementClassTag()).partitions();
    }

    private boolean marked(InternalRow row, int i) {
        if (structs[i] < 0) {
            return !row.isNullAt(columns[i]);
        }
        return !row.isNullAt(structs[i]) && !row.getStruct(structs[i], sizes[i]).isNullAt(columns[i]);
    }

    private static final class Counting extends AbstractIterator {
        private final Iterator rows;
        private final AtomicLongArray counts;
        private final CountedRDD of;

        Counting(Iterator rows, AtomicLongArray counts, CountedRDD of) {
            this.rows = rows;
            this.counts = counts;
            this.of = of;
        }

        public boolean hasNext() {
            return rows.hasNext();
        }

        public Object next() {
            InternalRow row = (InternalRow) rows.next();
            add(of.sources > 1 ? row.getInt(0) : 0);
            for (int i = 0; i < of.columns.length; i++) {
                if (of.marked(row, i)) {
                    add(of.sources + i);
                }
            }
            return row;
        }

        private void add(int place) {
            counts.lazySet(place, counts.get(place) + 1); // One thread reads a partition; another may tell.
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
            for (int place = 0; place < counts.length(); place++) {
                line.append(' ').append(counts.get(place));
            }
            told.add(line.toString());
        }
    }
}
