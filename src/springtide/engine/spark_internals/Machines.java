package springtide;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.spark.rpc.RpcEnv;
import scala.collection.Iterator;
import scala.reflect.ClassTag;

/**
 * The machines that were added to a cluster in a box. All is done in one call for all of them: a computer that has its
 * hands full answers each call slowly.
 */
public final class Machines {
    private final List machines = new ArrayList();
    private final List stopping = new ArrayList();

    public Machines() {}

    public synchronized void add(RpcEnv machine) {
        machines.add(machine);
    }

    /**
     * Begins to stop at most so many machines, the last first, each with its executors. Those that have an executor of
     * `keep` (ids, with commas between them) stay. Question and answer are Spark's own message and its answer's type.
     */
    public synchronized int stop(int most, String keep, Object question, ClassTag answer) throws Exception {
        List needed = Arrays.asList(keep.split(","));
        int stopped = 0;
        for (int i = machines.size() - 1; i >= 0 && stopped < most; i--) {
            RpcEnv machine = (RpcEnv) machines.get(i);
            if (Collections.disjoint(needed, executors(machine, question, answer))) {
                machines.remove(i);
                stop(machine);
                stopped++;
            }
        }
        return stopped;
    }

    /** Stops all machines, and sees them end. */
    public void end() throws Exception {
        synchronized (this) {
            for (int i = 0; i < machines.size(); i++) {
                stop((RpcEnv) machines.get(i));
            }
            machines.clear();
        }
        for (int i = 0; i < stopping.size(); i++) {
            ((Thread) stopping.get(i)).join();
        }
    }

    /** The ids of a machine's executors, registered or not. */
    private static List executors(RpcEnv machine, Object question, ClassTag answer) throws Exception {
        Object state = machine.setupEndpointRef(machine.address(), "Worker").askSync(question, answer);
        List ids = new ArrayList();
        for (Iterator all = ((scala.collection.Iterable) call(state, "executors")).iterator(); all.hasNext(); ) {
            ids.add(String.valueOf(call(all.next(), "execId")));
        }
        return ids;
    }

    private void stop(final RpcEnv machine) {
        Thread thread = new Thread(new Runnable() {
            public void run() {
                machine.shutdown();
            }
        }, "springtide-stopping-a-machine");
        thread.setDaemon(true);
        thread.start();
        stopping.add(thread);
    }

    private static Object call(Object on, String method) throws Exception {
        return on.getClass().getMethod(method, new Class[0]).invoke(on, new Object[0]);
    }
}
