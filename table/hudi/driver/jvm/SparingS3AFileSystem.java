package org.apache.hadoop.fs.s3a;

import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.hadoop.fs.CanSetReadahead;
import org.apache.hadoop.fs.CanUnbuffer;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.hadoop.fs.impl.OpenFileParameters;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.fs.s3a.impl.StatusProbeEnum;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSource;
import org.apache.hadoop.util.Progressable;

/**
 * Hadoop's connector, of whose open files only so many keep a connection, and which does not ask what it knows.
 *
 * <p>Hudi 1.2.0 leaves two files open for each block of parquet that it reads from a log, and nobody ever closes them.
 * With Hadoop's own connector each keeps a connection until the whole connector is closed, and once the pool is empty
 * nothing can be read any more. Here, where one more file wants to read than may at once, the one that has been reading
 * for longest gives its connection back; should it be read again, it takes one, at the place where it was.
 *
 * <p>A third of what a commit asks of the store asks for nothing that is not known. Hadoop's looks for a file and for a
 * folder of each name: here names of Hudi's own below .hoodie, by which it knows which of the two they are, are looked
 * for as that. Where something was removed it looks whether the folder is still to be seen; of folders that Hudi makes
 * for each instant nobody wants to know. And Hudi reads the table's properties a dozen times a commit: what was read is
 * good for two seconds, unless the table lock was taken since, or they were written.
 *
 * <p>In Hadoop's own package, for what it opens to nobody else. Compiled when it is needed
 * (table/hudi/driver/compiled.py): Java as it was before generics, and no lambdas.
 */
public final class SparingS3AFileSystem extends S3AFileSystem {
  /** How many, of one bucket and user in this JVM. Fewer than its pool has (fs.s3a.connection.maximum). */
  public static final String READING_MAX = "fs.s3a.lockstep.reading.max";

  public static final int READING_MAX_DEFAULT = 96;

  private static final String HOODIE = "/.hoodie/";
  private static final String PROPERTIES = HOODIE + "hoodie.properties";
  private static final String TEMPORARY = HOODIE + ".temp/";
  private static final String HEARTBEATS = HOODIE + ".heartbeat/";
  private static final String TIMELINE = "/timeline/";
  private static final String MARKER = ".marker.";
  private static final String MARKERS = "MARKERS";
  private static final String LOG = ".log.";
  private static final int PROPERTIES_BYTES_MAX = 1 << 20;
  private static final long KNOWN_NS = TimeUnit.SECONDS.toNanos(2);
  private static final long CHANGING_NS = TimeUnit.MINUTES.toNanos(2);

  /** Holds another object whenever the table lock was taken here; null where nobody says so: then nothing is kept. */
  private static volatile AtomicReference taken;

  private final Reading reading = new Reading();

  /** Of properties' paths -> what was read. */
  private final Map known = new ConcurrentHashMap();

  private volatile long changed_ns = System.nanoTime() - CHANGING_NS;

  /** Properties are read anew whenever this holds another object. */
  public static void readAnewAfter(AtomicReference change) {
    taken = change;
  }

  // --- what is known --------------------------------------------------------------------------------------

  /** As Hadoop's, which looks for a file, for a folder, or for both. */
  S3AFileStatus innerGetFileStatus(Path path, boolean needEmptyDirectoryFlag, Set probes) throws IOException {
    return super.innerGetFileStatus(
        path, needEmptyDirectoryFlag, needEmptyDirectoryFlag ? probes : wanted(path, probes));
  }

  private static Set wanted(Path path, Set probes) throws FileNotFoundException {
    StatusProbeEnum needless = isFileOfHudis(path) ? StatusProbeEnum.List : null;
    needless = isFolderOfHudis(path) ? StatusProbeEnum.Head : needless;
    if (needless == null || !probes.contains(needless)) {
      return probes;
    }
    Set left = EnumSet.copyOf(probes);
    left.remove(needless);
    if (left.isEmpty()) {
      throw new FileNotFoundException("Not asked, since Hudi makes nothing of that kind there: " + path);
    }
    return left;
  }

  /** Instants, markers, log files of the metadata table. */
  private static boolean isFileOfHudis(Path path) {
    String whole = path.toUri().getPath();
    String name = path.getName();
    if (!whole.contains(HOODIE) || name.isEmpty()) {
      return false;
    }
    boolean instant = path.getParent().toString().endsWith(TIMELINE.substring(0, TIMELINE.length() - 1));
    boolean dated = Character.isDigit(name.charAt(0)) && name.indexOf('.') > 0;
    return instant && dated || name.contains(MARKER) || name.charAt(0) == '.' && name.contains(LOG);
  }

  /** Of the markers of an instant; a table partition's, below it, may have any name but that of a marker, or of the
   * files in which others keep theirs together. */
  private static boolean isFolderOfHudis(Path path) {
    String name = path.getName();
    return path.toUri().getPath().contains(TEMPORARY) && !name.contains(MARKER) && !name.startsWith(MARKERS);
  }

  protected void maybeCreateFakeParentDirectory(Path path) throws IOException {
    String whole = path.toUri().getPath();
    if (!whole.contains(TEMPORARY) && !whole.contains(HEARTBEATS)) {
      super.maybeCreateFakeParentDirectory(path);
    }
  }

  // --- properties -----------------------------------------------------------------------------------------

  private static boolean areProperties(Path path) {
    return path.toUri().getPath().endsWith(PROPERTIES);
  }

  private FSDataInputStream properties(Path path, int bufferBytes) throws IOException {
    AtomicReference change = taken;
    if (change == null) {
      return null;
    }
    Object since = change.get();
    if (System.nanoTime() - changed_ns < CHANGING_NS) {
      return null;
    }
    Known before = (Known) known.get(path);
    if (before == null || before.since != since || System.nanoTime() - before.at_ns > KNOWN_NS) {
      before = new Known(since, System.nanoTime(), whole(path, bufferBytes));
      known.put(path, before);
    }
    return before.content == null ? null : new FSDataInputStream(new Content(before.content));
  }

  /** Null where it is more than properties are. */
  private byte[] whole(Path path, int bufferBytes) throws IOException {
    FSDataInputStream file = super.open(path, bufferBytes);
    try {
      byte[] content = file.readNBytes(PROPERTIES_BYTES_MAX + 1);
      return content.length > PROPERTIES_BYTES_MAX ? null : content;
    } finally {
      file.close();
    }
  }

  public FSDataOutputStream create(
      Path path,
      FsPermission permission,
      boolean overwrite,
      int bufferBytes,
      short replication,
      long blockBytes,
      Progressable progress)
      throws IOException {
    if (areProperties(path)) {
      forget();
    }
    return super.create(path, permission, overwrite, bufferBytes, replication, blockBytes, progress);
  }

  public boolean rename(Path from, Path to) throws IOException {
    forget();
    return super.rename(from, to);
  }

  public boolean delete(Path path, boolean recursive) throws IOException {
    if (areProperties(path) || recursive && !path.toUri().getPath().contains(HOODIE)) {
      forget();
    }
    return super.delete(path, recursive);
  }

  /** Somebody here begins to change properties: until that must be over, each look is at what is there. */
  private void forget() {
    changed_ns = System.nanoTime();
    known.clear();
  }

  private static final class Known {
    final Object since;
    final long at_ns;
    final byte[] content;

    Known(Object since, long at_ns, byte[] content) {
      this.since = since;
      this.at_ns = at_ns;
      this.content = content;
    }
  }

  /** A file that was read whole. */
  private static final class Content extends FSInputStream {
    private final byte[] content;
    private int at;

    Content(byte[] content) {
      this.content = content;
    }

    public int read() {
      return at < content.length ? content[at++] & 0xff : -1;
    }

    public int read(byte[] into, int from, int length) {
      if (length > 0 && at >= content.length) {
        return -1;
      }
      int some = Math.min(length, content.length - at);
      System.arraycopy(content, at, into, from, some);
      at += some;
      return some;
    }

    public void seek(long position) throws IOException {
      if (position < 0 || position > content.length) {
        throw new EOFException("beyond the file: " + position);
      }
      at = (int) position;
    }

    public long getPos() {
      return at;
    }

    public boolean seekToNewSource(long position) {
      return false;
    }

    public int available() {
      return content.length - at;
    }
  }

  // --- connections ----------------------------------------------------------------------------------------

  public FSDataInputStream open(Path path, int bufferBytes) throws IOException {
    FSDataInputStream kept = areProperties(path) ? properties(path, bufferBytes) : null;
    return kept != null ? kept : sparing(super.open(path, bufferBytes));
  }

  public CompletableFuture openFileWithOptions(Path path, OpenFileParameters parameters) throws IOException {
    // Hadoop has opened it, but for a thread that it wants no more: waiting costs nobody anything.
    CompletableFuture opened = new CompletableFuture();
    try {
      opened.complete(sparing((FSDataInputStream) super.openFileWithOptions(path, parameters).get()));
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      opened.completeExceptionally(error);
    } catch (java.util.concurrent.ExecutionException error) {
      opened.completeExceptionally(error.getCause());
    }
    return opened;
  }

  private FSDataInputStream sparing(FSDataInputStream file) {
    reading.max = getConf().getInt(READING_MAX, READING_MAX_DEFAULT);
    return new FSDataInputStream(new Sparing(file, reading));
  }

  /** How many files keep a connection now. */
  public int reading() {
    return reading.size();
  }

  /** The files that may have a connection, those that have had one for longest first. */
  private static final class Reading {
    private final Set files = new LinkedHashSet();
    volatile int max = READING_MAX_DEFAULT;

    synchronized int size() {
      return files.size();
    }

    synchronized void remove(Sparing file) {
      files.remove(file);
    }

    synchronized void add(Sparing file) {
      files.add(file);
    }

    synchronized List oldest() {
      List found = new ArrayList();
      Iterator all = files.iterator();
      for (int more = files.size() - max; more > 0 && all.hasNext(); more--) {
        found.add(all.next());
      }
      return found;
    }

    /** One that is being read from keeps its connection: its reader would wait for this thread, and may hold others up. */
    void spare() {
      Iterator old = oldest().iterator();
      while (old.hasNext()) {
        ((Sparing) old.next()).rest();
      }
    }
  }

  /** A file that somebody has opened. One reads from it at a time, as with Hadoop's own. */
  private static final class Sparing extends FSInputStream
      implements CanSetReadahead, CanUnbuffer, StreamCapabilities, IOStatisticsSource {
    private final FSDataInputStream file;
    private final Reading reading;
    private final ReentrantLock busy = new ReentrantLock();
    private boolean listed;

    Sparing(FSDataInputStream file, Reading reading) {
      this.file = file;
      this.reading = reading;
    }

    /** Somebody is about to read. */
    private void begin() {
      busy.lock();
      if (!listed) {
        listed = true;
        reading.add(this);
      }
    }

    private void end() {
      busy.unlock();
      reading.spare();
    }

    /** Give the connection back, unless somebody reads. */
    void rest() {
      if (busy.tryLock()) {
        try {
          unlist();
          file.unbuffer();
        } finally {
          busy.unlock();
        }
      }
    }

    private void unlist() {
      if (listed) {
        listed = false;
        reading.remove(this);
      }
    }

    public int read() throws IOException {
      begin();
      try {
        return file.read();
      } finally {
        end();
      }
    }

    public int read(byte[] into, int at, int length) throws IOException {
      begin();
      try {
        return file.read(into, at, length);
      } finally {
        end();
      }
    }

    public int read(long position, byte[] into, int at, int length) throws IOException {
      begin();
      try {
        return file.read(position, into, at, length);
      } finally {
        end();
      }
    }

    public void readFully(long position, byte[] into, int at, int length) throws IOException {
      begin();
      try {
        file.readFully(position, into, at, length);
      } finally {
        end();
      }
    }

    public void seek(long position) throws IOException {
      if (position < 0) {
        throw new EOFException("before the begin of the file: " + position);
      }
      busy.lock();
      try {
        file.seek(position);
      } finally {
        busy.unlock();
      }
    }

    public long getPos() throws IOException {
      return file.getPos();
    }

    public boolean seekToNewSource(long position) throws IOException {
      return file.seekToNewSource(position);
    }

    public int available() throws IOException {
      return file.available();
    }

    public void close() throws IOException {
      busy.lock();
      try {
        unlist();
        file.close();
      } finally {
        busy.unlock();
      }
    }

    public void unbuffer() {
      busy.lock();
      try {
        unlist();
        file.unbuffer();
      } finally {
        busy.unlock();
      }
    }

    public void setReadahead(Long bytes) throws IOException {
      file.setReadahead(bytes);
    }

    public boolean hasCapability(String capability) {
      return file.hasCapability(capability);
    }

    public IOStatistics getIOStatistics() {
      return file.getIOStatistics();
    }

    public String toString() {
      return file.toString();
    }
  }
}
