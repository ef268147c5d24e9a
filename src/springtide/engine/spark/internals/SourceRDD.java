package springtide;

import java.io.Serializable;
import org.apache.spark.Partition;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.PartitionPruningRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Some neighbouring partitions of another RDD: those with the rows of one source, whose number each row begins with. */
public final class SourceRDD extends RDD {
    private final int source;

    public SourceRDD(RDD whole, int source, int first, int end) {
        super(new PartitionPruningRDD(whole, new Between(first, end), whole.elementClassTag()), whole.elementClassTag());
        this.source = source;
    }

    public Iterator compute(Partition partition, TaskContext context) {
        return new Checked(firstParent(elementClassTag()).iterator(partition, context), source);
    }

    public Partition[] getPartitions() {
        return firstParent(elementClassTag()).partitions();
    }

    private static final class Between extends AbstractFunction1 implements Serializable {
        private final int first;
        private final int end;

        Between(int first, int end) {
            this.first = first;
            this.end = end;
        }

        public Object apply(Object number) {
            int partition = ((Integer) number).intValue();
            return Boolean.valueOf(partition >= first && partition < end);
        }
    }

    /** A row of another source would be lost here, and count for this one: rather none is read. */
    private static final class Checked extends AbstractIterator {
        private final Iterator rows;
        private final int source;

        Checked(Iterator rows, int source) {
            this.rows = rows;
            this.source = source;
        }

        public boolean hasNext() {
            return rows.hasNext();
        }

        public Object next() {
            InternalRow row = (InternalRow) rows.next();
            if (row.getInt(0) != source) {
                throw new IllegalStateException(
                        "expected rows of source " + source + " alone, got one of source " + row.getInt(0));
            }
            return row;
        }
    }
}
