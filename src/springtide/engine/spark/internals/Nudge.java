package springtide;

import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A source that never has a row. Its offset is the last nudge: Spark runs an epoch for it as for any new offset, with
 * whatever the other sources have, and if they have nothing, without rows.
 */
public final class Nudge implements TableProvider, SupportsRead, ScanBuilder, Scan, MicroBatchStream,
        SupportsTriggerAvailableNow {
    /** The last nudge; null before the first of this driver. Every app compiles this class for itself. */
    public static final AtomicReference LAST = new AtomicReference();

    private final StructType schema;

    public Nudge() {
        this(new StructType());
    }

    private Nudge(StructType schema) {
        this.schema = schema;
    }

    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return (StructType) DataType.fromJson(options.get("rows"));
    }

    public Table getTable(StructType schema, Transform[] partitioning, java.util.Map properties) {
        return new Nudge(schema);
    }

    public String name() {
        return "nudge";
    }

    public StructType schema() {
        return schema;
    }

    public StructType readSchema() {
        return schema;
    }

    public java.util.Set capabilities() {
        return java.util.Collections.singleton(TableCapability.MICRO_BATCH_READ);
    }

    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return this;
    }

    public Scan build() {
        return this;
    }

    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        return this;
    }

    /** A query that ends with its input goes on as long as it is nudged before the end of each epoch. */
    public void prepareForTriggerAvailableNow() {}

    public Offset latestOffset() {
        Object last = LAST.get();
        return last == null ? null : new At((String) last);
    }

    public Offset latestOffset(Offset start, ReadLimit limit) {
        return latestOffset();
    }

    public Offset initialOffset() {
        return new At("none");
    }

    public Offset deserializeOffset(String json) {
        return new At(json.substring(1, json.length() - 1));
    }

    public void commit(Offset end) {}

    public void stop() {}

    public InputPartition[] planInputPartitions(Offset start, Offset end) {
        return new InputPartition[0];
    }

    /** Nobody asks it for a reader, as there is nothing to read. */
    public PartitionReaderFactory createReaderFactory() {
        return null;
    }

    /** Two are equal if they read the same. */
    private static final class At extends Offset {
        private final String nudge;

        At(String nudge) {
            this.nudge = nudge;
        }

        public String json() {
            return "\"" + nudge + "\"";
        }
    }
}
