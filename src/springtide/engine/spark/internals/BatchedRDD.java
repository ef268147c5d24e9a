package springtide;

import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The same rows, for a Python function right behind it. Spark weighs the columns of a batch anew after each row, to keep
 * it small; that takes as long as all else on the way to Python. Here rows are weighed as they come by, and where a
 * batch is to end there seem to be no more rows for once: Spark then closes it, and asks again.
 */
public final class BatchedRDD extends RDD {
    /** Bytes of a batch, at which Spark would end it; as a property of a task it is that of the functions in it. */
    private static final String MOST = "spark.sql.execution.arrow.maxBytesPerBatch";

    /** What a row is taken to weigh that does not tell. */
    private static final long UNKNOWN = 1 << 16;

    private final long most;

    public BatchedRDD(RDD parent, long most) {
        super(parent, parent.elementClassTag());
        this.most = most;
    }

    public Iterator compute(Partition partition, TaskContext context) {
        // A function before this one has been given its own limit by now.
        Cut rows = new Cut(firstParent(elementClassTag()).iterator(partition, context), most);
        context.getLocalProperties().setProperty(MOST, String.valueOf(Integer.MAX_VALUE));
        context.addTaskCompletionListener(new AllRead(rows));
        return rows;
    }

    public Partition[] getPartitions() {
        return firstParent(elementClassTag()).partitions();
    }

    private static final class Cut extends AbstractIterator {
        private final Iterator rows;
        private final long most;
        private long bytes;
        private boolean ended;

        Cut(Iterator rows, long most) {
            this.rows = rows;
            this.most = most;
        }

        public boolean hasNext() {
            if (bytes >= most) {
                bytes = 0;
                return false;
            }
            ended = !rows.hasNext();
            return !ended;
        }

        public Object next() {
            Object row = rows.next();
            bytes += row instanceof UnsafeRow ? ((UnsafeRow) row).getSizeInBytes() : UNKNOWN;
            return row;
        }
    }

    /** Whoever took the end of a batch for the end of all rows would lose the others: rather the task fails. */
    private static final class AllRead implements TaskCompletionListener {
        private final Cut rows;

        AllRead(Cut rows) {
            this.rows = rows;
        }

        public void onTaskCompletion(TaskContext context) {
            if (!rows.ended && !context.isFailed() && !context.isInterrupted()) {
                throw new IllegalStateException("expected all rows of the partition to be read");
            }
        }
    }
}
