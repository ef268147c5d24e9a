package org.apache.flink.connector.file.src.assigners;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.flink.connector.file.src.FileSourceSplit;

/**
 * Hands out files in the order of their names; it stands before Flink's own class of this name on the classpath.
 *
 * <p>Flink's own hands them out in any order. Event time would then jump back, and rows would be late that are not.
 * Whoever writes Java sets an assigner; SQL has no option for it.
 */
public class LocalityAwareSplitAssigner implements FileSplitAssigner {

    private final TreeMap<String, FileSourceSplit> splits = new TreeMap<String, FileSourceSplit>();

    public LocalityAwareSplitAssigner(Collection<FileSourceSplit> splits) {
        addSplits(splits);
    }

    public Optional<FileSourceSplit> getNext(String host) {
        if (splits.isEmpty()) {
            return Optional.empty();
        }
        return Optional.of(splits.remove(splits.firstKey()));
    }

    public void addSplits(Collection<FileSourceSplit> more) {
        // The compiler knows no generics: hence the casts.
        for (Iterator<FileSourceSplit> each = more.iterator(); each.hasNext(); ) {
            FileSourceSplit split = (FileSourceSplit) each.next();
            splits.put(split.path() + String.format("#%020d", new Object[] {Long.valueOf(split.offset())}), split);
        }
    }

    public Collection<FileSourceSplit> remainingSplits() {
        return new ArrayList<FileSourceSplit>(splits.values());
    }
}
