package springtide;

import org.apache.spark.ExecutorAllocationClient;
import scala.collection.Iterator;

/** The executors that take tasks: registered, and neither about to be removed nor being decommissioned. */
public final class ActiveExecutors {
    private ActiveExecutors() {}

    public static java.util.List of(Object backend) {
        java.util.ArrayList active = new java.util.ArrayList();
        if (!(backend instanceof ExecutorAllocationClient)) {
            return active; // Spark in one process: there are none.
        }
        ExecutorAllocationClient client = (ExecutorAllocationClient) backend;
        for (Iterator ids = client.getExecutorIds().iterator(); ids.hasNext(); ) {
            String id = (String) ids.next();
            if (client.isExecutorActive(id)) {
                active.add(id);
            }
        }
        return active;
    }
}
