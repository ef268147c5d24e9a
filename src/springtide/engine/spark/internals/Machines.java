package springtide;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.ui.WebUI;
import scala.Option;
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
    private boolean ended = false;
    private final Object question;
    private final ClassTag answer;

    /** With Spark's own question for the state of a machine, and the type of the answer. */
    public Machines(Object question, ClassTag answer) {
        this.question = question;
        this.answer = answer;
    }

    public synchronized void add(RpcEnv machine) throws Exception {
        machines.add(machine);
        executors(machine);  // Its page is there when it answers.
        closePage(machine);
    }

    /** Closes the web pages of the master and the machines that the box began with. */
    public void closePages() throws Exception {
        Object module = Class.forName("org.apache.spark.deploy.LocalSparkCluster$").getField("MODULE$").get(null);
        Option box = (Option) call(module, "get");
        if (box.isDefined()) {
            for (Iterator each = iterator(field(box.get(), "masterRpcEnvs")); each.hasNext(); ) {
                closePage((RpcEnv) each.next());
            }
            for (Iterator each = iterator(field(box.get(), "workerRpcEnvs")); each.hasNext(); ) {
                RpcEnv machine = (RpcEnv) each.next();
                executors(machine);
                closePage(machine);
            }
        }
    }

    /** Spark starts a page with each master and each machine, and has no setting against it. */
    private static void closePage(RpcEnv of) throws Exception {
        Map endpoints = (Map) field(field(of, "dispatcher"), "endpointRefs");
        for (java.util.Iterator each = endpoints.keySet().iterator(); each.hasNext(); ) {
            Object endpoint = each.next();
            Field[] fields = endpoint.getClass().getDeclaredFields();
            for (int i = 0; i < fields.length; i++) {
                if (WebUI.class.isAssignableFrom(fields[i].getType())) {
                    fields[i].setAccessible(true);
                    ((WebUI) fields[i].get(endpoint)).stop();
                }
            }
        }
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
                stop(machine, here);
                stopped++;
            }
        }
        return ending;
    }

    /** Stops all machines, and sees them end. */
    public void end() throws Exception {
        synchronized (this) {
            for (int i = 0; i < machines.size(); i++) {
                stop((RpcEnv) machines.get(i), new ArrayList());
            }
            machines.clear();
            ended = true;
        }
        for (int i = 0; i < stopping.size(); i++) {
            ((Thread) stopping.get(i)).join();
        }
    }

    /** The ids of a machine's executors, registered or not. */
    private List executors(RpcEnv machine) throws Exception {
        Object state = machine.setupEndpointRef(machine.address(), "Worker").askSync(question, answer);
        List ids = new ArrayList();
        for (Iterator all = iterator(call(state, "executors")); all.hasNext(); ) {
            ids.add(String.valueOf(call(all.next(), "execId")));
        }
        return ids;
    }

    /**
     * Once its executors have ended: what it still had to tell the master of them would fail loudly. Until then the
     * master may give it a new one, and then it stays.
     */
    private void stop(final RpcEnv machine, final List ending) {
        Thread thread = new Thread(new Runnable() {
            public void run() {
                if (!employedAnew(machine, ending)) {
                    machine.shutdown();
                }
            }
        }, "springtide-stopping-a-machine");
        thread.setDaemon(true);
        thread.start();
        for (int i = stopping.size() - 1; i >= 0; i--) {
            if (!((Thread) stopping.get(i)).isAlive()) {
                stopping.remove(i);
            }
        }
        stopping.add(thread);
    }

    /** Whether a machine has got a new executor by the time when its old ones have ended; it is counted again then. */
    private boolean employedAnew(RpcEnv machine, List ending) {
        long deadline = System.nanoTime() + PATIENCE_NS;
        try {
            List here = executors(machine);
            while (!Collections.disjoint(here, ending)) {
                if (System.nanoTime() > deadline) {
                    return false;
                }
                Thread.sleep(50);
                here = executors(machine);
            }
            synchronized (this) {
                if (here.isEmpty() || ended) {
                    return false;
                }
                machines.add(machine);
                return true;
            }
        } catch (Exception gone) {
            return false;  // It does not answer any more: nothing is left to wait for.
        }
    }

    private static Iterator iterator(Object all) {
        return ((scala.collection.Iterable) all).iterator();
    }

    private static Object field(Object of, String name) throws Exception {
        Field field = of.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
    }

    private static Object call(Object on, String method) throws Exception {
        return on.getClass().getMethod(method, new Class[0]).invoke(on, new Object[0]);
    }
}
