package springtide;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.util.zip.CRC32;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * Writes the files of Spark's logs to a local directory without a process for each file's permissions, and with the
 * same checksums beside them.
 */
public final class QuickLogs extends FileSystemBasedCheckpointFileManager {
    /** As many bytes have a checksum of their own. */
    private static final int CHUNK = 512;

    public QuickLogs(Path path, Configuration conf) {
        super(path, conf);
    }

    public FSDataOutputStream createTempFile(Path path) {
        return new FSDataOutputStream(new Whole(path), null);
    }

    private static Path checksums(Path path) {
        return new Path(path.getParent(), "." + path.getName() + ".crc");
    }

    private static java.nio.file.Path local(Path path) {
        return new File(path.toUri().getPath()).toPath();
    }

    /** Written when it is closed, as these files are small. */
    private static final class Whole extends ByteArrayOutputStream {
        private final Path path;

        Whole(Path path) {
            this.path = path;
        }

        public void close() throws IOException {
            byte[] data = toByteArray();
            int chunks = (data.length + CHUNK - 1) / CHUNK;
            ByteBuffer sums = ByteBuffer.allocate(8 + 4 * chunks);
            sums.put("crc".getBytes(StandardCharsets.US_ASCII)).put((byte) 0).putInt(CHUNK);
            for (int i = 0; i < chunks; i++) {
                CRC32 sum = new CRC32();
                sum.update(data, i * CHUNK, Math.min(CHUNK, data.length - i * CHUNK));
                sums.putInt((int) sum.getValue());
            }
            Files.write(local(checksums(path)), sums.array(), new OpenOption[0]);
            Files.write(local(path), data, new OpenOption[0]);
        }
    }
}
