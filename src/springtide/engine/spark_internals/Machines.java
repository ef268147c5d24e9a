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
    /** A machine whose executors do not end is stopped after so long all the same. */
    private static final long PATIENCE_NS = 10000000000L;

    private final List machines = new ArrayList();
    private final List stopping = new ArrayList();
    private final Object question;
    private final ClassTag answer;

    /** With Spark's own question for the state of a machine, and the type of the answer. */
    public Machines(Object question, ClassTag answer) {
        this.question = question;
        this.answer = answer;
    }

    public synchronized void add(RpcEnv machine) {
        machines.add(machine);
    }

    public synchronized int count() {
        return machines.size();
    }

    /**
     * Begins to stop at most so many machines, the last first. Those that have an executor of `keep` (ids, with commas
     * between them) stay. Returns the ids of the executors that have to end before their machines do.
     */
    public synchronized List stop(int most, String keep) throws Exception {
        List needed = Arrays.asList(keep.split(","));
        List ending = new ArrayList();
        int stopped = 0;
        for (int i = machines.size() - 1; i >= 0 && stopped < most; i--) {
            RpcEnv machine = (RpcEnv) machines.get(i);
            List here = executors(machine);
            if (Collections.disjoint(needed, here)) {
                machines.remove(i);
                ending.addAll(here);
                stop(machine);
                stopped++;
            }
        }
        return ending;
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
    private List executors(RpcEnv machine) throws Exception {
        Object state = machine.setupEndpointRef(machine.address(), "Worker").askSync(question, answer);
        List ids = new ArrayList();
        for (Iterator all = ((scala.collection.Iterable) call(state, "executors")).iterator(); all.hasNext(); ) {
            ids.add(String.valueOf(call(all.next(), "execId")));
        }
        return ids;
    }

    /** Once its executors have ended: what it still had to tell the master of them would fail loudly. */
    private void stop(final RpcEnv machine) {
        Thread thread = new Thread(new Runnable() {
            public void run() {
                long deadline = System.nanoTime() + PATIENCE_NS;
                try {
                    while (System.nanoTime() < deadline && !executors(machine).isEmpty()) {
                        Thread.sleep(50);
                    }
                } catch (Exception gone) {
                    // It does not answer any more: nothing is left to wait for.
                }
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
